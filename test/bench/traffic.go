package main

import (
	"context"
	"fmt"
	"regexp"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/test/bench/measure"
)

// byHeadwater is how the API server says which webhook or policy refused. Of a
// webhook that it could not ask it says something else.
var byHeadwater = regexp.MustCompile(`admission webhook "[a-z0-9.-]+\.protect\.headwater\.dev" denied|ValidatingAdmissionPolicy 'headwater-[a-z]+'`)

// writeTimeout bounds one write while there may be nobody to judge it.
const writeTimeout = 30 * time.Second

// tally is what came of writes.
type tally struct {
	all, passed, failed int
	// since and until are when the first and the last one began that failed,
	// longest how long that was in any of those that were added, why an example.
	since, until time.Time
	longest      time.Duration
	why          error
}

// wrong counts those that had another outcome than they should have.
func (t tally) wrong() int { return t.passed + t.failed }

func (t tally) outage() time.Duration { return t.until.Sub(t.since) }

// add counts what came of others too.
func (t *tally) add(o tally) {
	t.all, t.passed, t.failed = t.all+o.all, t.passed+o.passed, t.failed+o.failed
	t.longest = max(t.longest, o.outage())
}

func (t tally) explain() {
	if t.why != nil {
		measure.Progress("%d passed that should not have; %d failed, for %s: %v", t.passed, t.failed, t.outage(), t.why)
	}
}

// traffic writes at an even rate: to the source as one who may and as one who may
// not, and to a Secret that nothing protects.
type traffic struct {
	ends context.CancelFunc
	done sync.WaitGroup

	mu    sync.Mutex
	tally tally
}

// write is one of them: do must be refused by Headwater, or pass.
type write struct {
	what    string
	do      func(context.Context) error
	refused bool
}

func (a *arena) newTraffic(ctx context.Context, may, mayNot kubernetes.Interface) *traffic {
	ctx, ends := context.WithCancel(ctx)
	t := &traffic{ends: ends}
	writes := []write{
		{"edit of the source by one who may", untimed(may, sourceNamespace, shared), false},
		{"edit of the source by one who may not", untimed(mayNot, sourceNamespace, shared), true},
		{"edit of an unprotected Secret", untimed(mayNot, sourceNamespace, bare), false},
	}
	t.done.Go(func() {
		ticker := time.NewTicker(time.Second / time.Duration(a.options.rate))
		defer ticker.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				t.done.Go(func() { t.try(ctx, writes[i%len(writes)]) })
			}
		}
	})
	return t
}

func untimed(as kubernetes.Interface, namespace, name string) func(context.Context) error {
	do := edit(as, namespace, name)
	return func(ctx context.Context) error {
		_, err := do(ctx)
		return err
	}
}

// try lets a write end that has begun.
func (t *traffic) try(ctx context.Context, w write) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	began := time.Now()
	err := w.do(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tally.all++
	switch {
	case w.refused && err == nil:
		t.tally.passed++
		t.tally.why = fmt.Errorf("%s passed", w.what)
	case (err != nil) == w.refused && (err == nil || byHeadwater.MatchString(err.Error())):
	default:
		t.tally.fail(began, fmt.Errorf("%s: %w", w.what, err))
	}
}

func (t *tally) fail(at time.Time, why error) {
	if t.failed++; t.since.IsZero() || at.Before(t.since) {
		t.since, t.why = at, why
	}
	if at.After(t.until) {
		t.until = at
	}
}

// stop returns what came of all writes.
func (t *traffic) stop() tally {
	t.ends()
	t.done.Wait()
	return t.tally
}
