package protect

// View is whether rules protect, as the prover has found it. It sends no request
// and changes nothing.
type View struct{ prover *Prover }

// Standing is that of a rule; known is false where nothing was tried: the rule
// refuses nothing or has no source, it was not come to yet, or another replica
// tries.
func (v *View) Standing(rule string) (standing Standing, known bool) {
	if shown := v.prover.shown.Load(); shown != nil {
		standing, known = (*shown)[rule]
	}
	return standing, known
}
