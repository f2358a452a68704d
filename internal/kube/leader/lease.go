package leader

import (
	"bytes"
	"context"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lease is a resource lock that tracks by this process's own clock how long it is
// held: no other replica takes it earlier. It also reports a lost lease at once.
// The elector itself reacts only RenewDeadline later, even if it sees another
// holder.
type lease struct {
	resourcelock.Interface

	duration time.Duration
	// lost is called when another replica holds the lease that this one held.
	lost func()
	// renewed is when the latest successful acquire or renew request was sent; nil
	// while the lease is not held.
	renewed atomic.Pointer[time.Time]
	// seen is when somebody was last seen to have renewed it, and raw what it said then.
	// Only the elector uses raw.
	seen atomic.Pointer[time.Time]
	raw  []byte
}

func (l *lease) held() bool {
	renewed := l.renewed.Load()
	return renewed != nil && time.Since(*renewed) < l.duration
}

// Get implements resourcelock.Interface.
func (l *lease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	sent := time.Now()
	record, raw, err := l.Interface.Get(ctx)
	if err != nil {
		return record, raw, err
	}
	if !bytes.Equal(raw, l.raw) {
		l.raw = raw
		l.seen.Store(&sent)
	}
	if record.HolderIdentity != l.Identity() && l.renewed.Swap(nil) != nil {
		l.lost()
	}
	return record, raw, nil
}

// Create implements resourcelock.Interface.
func (l *lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(record, func() error { return l.Interface.Create(ctx, record) })
}

// Update implements resourcelock.Interface.
func (l *lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(record, func() error { return l.Interface.Update(ctx, record) })
}

func (l *lease) write(record resourcelock.LeaderElectionRecord, send func() error) error {
	sent := time.Now()
	err := send()
	switch {
	case err != nil:
	case record.HolderIdentity == l.Identity():
		l.renewed.Store(&sent)
		l.seen.Store(&sent)
	default: // released
		l.renewed.Store(nil)
	}
	return err
}
