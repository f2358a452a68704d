package optin

import (
	"slices"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// headwaterOptIn is what an owner asks of Headwater: to reload the workload for
// all that its pods consume, when it is said how, or for what is listed alone.
type headwaterOptIn struct {
	how spec.Action
	on  []object.Ref
}

func (a headwaterOptIn) Tool() spec.Tool { return spec.Headwater }

func (a headwaterOptIn) Action() spec.Action { return a.how }

func (a headwaterOptIn) matches(ref object.Ref, _ refs.Mode, _ mark.Tags) bool {
	return a.how != "" || slices.Contains(a.on, ref)
}
