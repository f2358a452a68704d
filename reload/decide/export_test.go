package decide

// ParseBaseline and ErrBaselineUnreadable are exported for tests.
var (
	ParseBaseline         = parseBaseline
	ErrBaselineUnreadable = errBaselineUnreadable
)

// Start and AsDelivered are the last part of Workload.
func Start(s State, due Decision) Decision { return s.start(due) }

func AsDelivered(due Decision) Decision { return due.delivered() }

// StandsStill is standsStill.
func (s *State) StandsStill(data Written) bool { return s.standsStill(data) }
