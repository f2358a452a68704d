package survey

import (
	"context"
	"fmt"
	"time"

	"github.com/headwater-k8s/headwater/sync/plan"
)

// RemovalsName is the ConfigMap in Headwater's own namespace in which the leader
// records, for each rule name, the removals of the last minute, those that wait, and whether
// further removals are held. Only the leader writes it.
const RemovalsName = "headwater-removals"

// StoredRemovals is the cached content of that ConfigMap.
type StoredRemovals = Recorded[plan.RemovalLog]

// removals reads and writes the removals ConfigMap.
type removals struct {
	*records[plan.RemovalLog]

	now func() time.Time
}

func decodeRemovals(text string, into *plan.RemovalLog) error {
	return into.UnmarshalText([]byte(text))
}

// Holding returns the rules whose removals are held according to the cached record.
func (r *removals) Holding() []string {
	var held []string
	for rule, log := range r.All() {
		if log.Holding() {
			held = append(held, rule)
		}
	}
	return held
}

// Read reads the record from the API server, because the cache may be outdated
// after a change of leader.
func (r *removals) Read(ctx context.Context) (map[string]plan.RemovalLog, error) {
	stored, err := r.store().Read(ctx)
	if err != nil {
		return nil, err
	}
	byRule, _ := decodeAll(stored, decodeRemovals)
	return byRule, nil
}

// Write stores byRule as the whole record.
func (r *removals) Write(ctx context.Context, byRule map[string]plan.RemovalLog) error {
	data := map[string]string{}
	for rule, log := range byRule {
		text, err := log.MarshalText()
		if err != nil {
			return fmt.Errorf("record removals: %w", err)
		}
		data[rule] = string(text)
	}
	return r.store().Write(ctx, data)
}
