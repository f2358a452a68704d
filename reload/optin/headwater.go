package optin

import (
	"slices"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// headwaterOptIn is an opt-in by Headwater's annotations. It covers every consumed
// object if how is set, and otherwise the objects in on.
type headwaterOptIn struct {
	how spec.Action
	on  []object.Ref
}

func (a headwaterOptIn) Tool() spec.Tool { return spec.Headwater }

func (a headwaterOptIn) Action() spec.Action { return a.how }

func (a headwaterOptIn) matches(ref object.Ref, _ refs.Mode, _ mark.Tags) bool {
	return a.how != "" || slices.Contains(a.on, ref)
}
