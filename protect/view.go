package protect

import (
	"github.com/headwater-k8s/headwater/protect/prove"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// View reports which engine enforces the rules and whether the prover verified
// each rule. It only reads memory.
type View struct {
	prover *prove.Prover
	engine func() spec.Engine
}

// Engine returns the engine that enforces the rules; see
// register.Registration.InForce.
func (v *View) Engine() spec.Engine { return v.engine() }

// Status returns the last result of the prover for rule. known is false if this
// replica has not tried the rule: it is not the leader, the rule does not
// enforce or has no source, or its turn has not come.
func (v *View) Status(rule string) (status prove.Status, known bool) {
	return v.prover.Status(rule)
}
