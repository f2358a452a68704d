package workload

import (
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/reload/kinds"
)

// OwnerLookup is what the caches know of an object that an owner reference names.
type OwnerLookup string

// The sights.
const (
	// OwnerFound: it is there.
	OwnerFound OwnerLookup = "Found"
	// OwnerNotFound: its kind is read, and it is not there.
	OwnerNotFound OwnerLookup = "Gone"
	// OwnerNotSynced: its kind is still being read.
	OwnerNotSynced OwnerLookup = "Unread"
	// OwnerUnsupported: its kind is none whose pod template Headwater knows, or can
	// read.
	OwnerUnsupported OwnerLookup = "Strange"
)

// RootOwner says who has the say about the pod template of a workload.
type RootOwner struct {
	// top is the highest owner that Headwater may stamp; the workload itself
	// when there is none above it.
	Root *Workload
	// unread is true when that cannot be told yet.
	NotSynced bool
	// stranger is the controller of top, if its kind is a strange one: it may
	// take a stamp off again.
	Unsupported *Owner
}

// maxOwners bounds the walk: owner references may be made to go in a circle.
const maxOwners = 8

// FindRootOwner walks from w up to the highest owner that holds a pod template. An
// owner resets the pod template of what it controls, so the stamp must be written
// there. lookup finds an owner in the namespace of w.
func FindRootOwner(w *Workload, look func(Owner) (*Workload, OwnerLookup)) RootOwner {
	s := RootOwner{Root: w}
	for range maxOwners {
		above := s.Root.Owner
		if above == nil {
			return s
		}
		owner, sight := look(*above)
		switch {
		case sight == OwnerNotSynced:
			s.NotSynced = true
			return s
		case sight == OwnerUnsupported, sight == OwnerFound && !owner.Templated():
			s.Unsupported = above
			return s
		case sight == OwnerNotFound, owner.UID != above.UID:
			return s // what is left of one that is being deleted
		}
		s.Root = owner
	}
	return RootOwner{Root: w}
}

// Owner names the controller of a workload.
type Owner struct {
	Kind kinds.Kind
	Name string
	UID  types.UID
}

// String formats the owner as Kind/name.
func (o Owner) String() string { return string(o.Kind) + "/" + o.Name }

// controllerOf is the controller of the object of meta. The API server lets an
// object name itself, which is none.
func controllerOf(meta *metav1.ObjectMeta) *Owner {
	controller := metav1.GetControllerOfNoCopy(meta)
	if controller == nil || controller.UID == meta.UID {
		return nil
	}
	return &Owner{Kind: kindOfOwner(controller), Name: controller.Name, UID: controller.UID}
}

func kindOfOwner(reference *metav1.OwnerReference) kinds.Kind {
	version, _ := schema.ParseGroupVersion(reference.APIVersion) // an odd one is a kind that nobody knows
	return unique.Make(kinds.Of(version.WithKind(reference.Kind).GroupKind())).Value()
}
