package protect

import (
	"github.com/headwater-k8s/headwater/protect/prove"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// View reports which engine enforces the rules, and whether the prover found
// that they protect. It sends no request and changes nothing.
type View struct {
	prover *prove.Prover
	engine func() spec.Engine
}

// Engine is the engine in force; see Registration.InForce.
func (v *View) Engine() spec.Engine { return v.engine() }

// Status is that of a rule; known is false where nothing was tried: the rule
// refuses nothing or has no source, it was not come to yet, or another replica
// tries.
func (v *View) Status(rule string) (status prove.Status, known bool) {
	return v.prover.Status(rule)
}
