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
func NewGuard(count func(string, plan.RemovalLog, time.Time) (plan.DueRemovals, bool), maxFraction func(rule string) float64) *Guard {
	return &Guard{guard: plan.NewGuard(count, maxFraction)}
}

// Recorded is plan.Guard.Recorded, and waits for nobody.
func (g *Guard) Recorded() map[string]plan.RemovalLog { return g.guard.Recorded() }

// Use calls use with the guard, which nobody else uses meanwhile.
func (g *Guard) Use(use func(*plan.Guard)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	use(g.guard)
}
