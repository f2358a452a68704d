package progress

// Propagations returns how many changes t follows. It is exported for tests.
func (t *Tracker) Propagations() int { return len(t.propagations) }
