package reload

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// turns make the refreshes of pods come one after the other, at a rate. Each
// pod is given its turn once, and comes back for it. A confirmation needs none: it
// follows its refresh by the same time for all, so at the same rate, and behind the
// refreshes of others it would come too late to be of use.
type turns struct {
	mu      sync.Mutex
	limiter *rate.Limiter
	given   map[key]time.Time
}

// wait returns how long it is until the turn of k; perSecond 0 is no limit.
func (t *turns) wait(k key, perSecond int, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if perSecond == 0 {
		t.limiter, t.given = nil, nil
		return 0
	}
	if t.limiter == nil || t.limiter.Limit() != rate.Limit(perSecond) {
		t.limiter, t.given = rate.NewLimiter(rate.Limit(perSecond), 1), map[key]time.Time{}
	}
	turn, given := t.given[k]
	if !given {
		turn = now.Add(t.limiter.ReserveN(now, 1).DelayFrom(now))
		t.given[k] = turn
	}
	return max(0, turn.Sub(now))
}

// forget gives up the turn of k, which was refreshed or is not to be.
func (t *turns) forget(k key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.given, k)
}
