package progress

import (
	"sync"
	"time"

	"github.com/headwater-k8s/headwater/sync/plan"
)

// Guard is a plan.Guard that several goroutines may use at once.
type Guard struct {
	mu    sync.Mutex
	guard *plan.Guard
}

// Question is a method of plan.Guard that returns a Verdict about a rule.
type Question func(g *plan.Guard, rule string, basis plan.Basis, now time.Time) plan.Verdict

// NewGuard returns a Guard; the parameters are those of plan.NewGuard.
func NewGuard(count func(string, plan.RemovalLog, time.Time) (plan.DueRemovals, bool), maxFraction func() float64) *Guard {
	return &Guard{guard: plan.NewGuard(count, maxFraction)}
}

// Answer returns the guard's answer to question.
func (g *Guard) Answer(question Question, rule string, basis plan.Basis, now time.Time) plan.Verdict {
	g.mu.Lock()
	defer g.mu.Unlock()
	return question(g.guard, rule, basis, now)
}

// Written is plan.Guard.Written.
func (g *Guard) Written(rule string, stored bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.guard.Written(rule, stored)
}

// Recalled is plan.Guard.Recalled.
func (g *Guard) Recalled() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.guard.Recalled
}

// Recall is plan.Guard.Recall.
func (g *Guard) Recall(stored map[string]plan.RemovalLog) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.guard.Recall(stored)
}

// Holding is plan.Guard.Holding.
func (g *Guard) Holding() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.guard.Holding()
}

// Restore is plan.Guard.Restore.
func (g *Guard) Restore(now time.Time) map[string]plan.RemovalLog {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.guard.Restore(now)
}

// Restored is plan.Guard.Restored.
func (g *Guard) Restored() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.guard.Restored()
}
