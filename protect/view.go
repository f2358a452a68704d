package protect

// View reports which engine enforces the rules, and whether the prover found
// that they protect. It sends no request and changes nothing.
type View struct {
	prover *Prover
	engine func() Engine
}

// Engine is the engine in force; see Registration.InForce.
func (v *View) Engine() Engine { return v.engine() }

// Standing is that of a rule; known is false where nothing was tried: the rule
// refuses nothing or has no source, it was not come to yet, or another replica
// tries.
func (v *View) Standing(rule string) (standing Standing, known bool) {
	return v.prover.Standing(rule)
}
