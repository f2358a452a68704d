package decide

// ParseBaseline and ErrBaselineUnreadable are exported for tests.
var (
	ParseBaseline         = parseBaseline
	ErrBaselineUnreadable = errBaselineUnreadable
)
