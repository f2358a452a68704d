package workload

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/intern"
	"github.com/headwater-k8s/headwater/reload/kinds"
)

// OwnerLookup is what the caches know of an object in an owner reference.
type OwnerLookup string

// The results of a lookup.
const (
	// OwnerFound: it exists.
	OwnerFound OwnerLookup = "Found"
	// OwnerNotFound: its kind is cached, and it does not exist.
	OwnerNotFound OwnerLookup = "Gone"
	// OwnerNotSynced: the cache of its kind is not synced yet.
	OwnerNotSynced OwnerLookup = "Unread"
	// OwnerUnsupported: Headwater cannot read its kind.
	OwnerUnsupported OwnerLookup = "Strange"
)

// RootOwner is the workload whose pod template decides for a workload.
type RootOwner struct {
	// Root is the highest owner that Headwater may stamp, or the workload itself.
	Root *Workload
	// NotSynced is true if an owner is not known yet.
	NotSynced bool
	// Unsupported is the topmost known owner above Root, in which Headwater knows no pod
	// template. It, or one between, may revert the stamp.
	Unsupported *Owner
	// Unread is true if Headwater cannot read the kind of Unsupported, so that it may have
	// owners itself.
	Unread bool
}

// maxOwners limits the walk, because owner references can form a circle.
const maxOwners = 8

// FindRootOwner walks from w up to the highest owner that holds a pod template. An
// owner resets the pod template of what it controls, so the stamp must be written
// there. Owners between may have none. lookup finds an owner in the namespace of w.
func FindRootOwner(w *Workload, lookup func(Owner) (*Workload, OwnerLookup)) RootOwner {
	s, at := RootOwner{Root: w}, w
	for range maxOwners {
		above := at.Owner
		if above == nil {
			return s
		}
		owner, result := lookup(*above)
		switch {
		case result == OwnerNotSynced:
			s.NotSynced = true
			return s
		case result == OwnerUnsupported:
			s.Unsupported, s.Unread = above, true
			return s
		case result == OwnerNotFound, owner.UID != above.UID:
			return s // its owner is being deleted
		case owner.Templated():
			s.Root, s.Unsupported = owner, nil
		default:
			s.Unsupported = above
		}
		at = owner
	}
	return RootOwner{Root: w}
}

// KeepOwner reduces the metadata of an object to what the climb to its owners needs.
func KeepOwner(info *kinds.Info) func(any) (*Workload, error) {
	return func(obj any) (*Workload, error) {
		object, ok := obj.(*metav1.PartialObjectMetadata)
		if !ok {
			return nil, fmt.Errorf("object of type %T is not metadata", obj)
		}
		kept := &Workload{ObjectMeta: keepMeta(&object.ObjectMeta, false), Kind: info.ConsumerKind(), custom: info, Owner: controllerOf(&object.ObjectMeta)}
		kept.UID = object.UID
		return kept, nil
	}
}

// Owner names the controller of a workload.
type Owner struct {
	Kind kinds.Kind
	// Version is the one of its kind's API that the reference names.
	Version string
	Name    string
	UID     types.UID
}

// String formats the owner as Kind/name.
func (o Owner) String() string { return string(o.Kind) + "/" + o.Name }

// controllerOf returns the controller of an object. The API server accepts a reference
// of an object to itself, which does not count.
func controllerOf(meta *metav1.ObjectMeta) *Owner {
	controller := metav1.GetControllerOfNoCopy(meta)
	if controller == nil || controller.UID == meta.UID {
		return nil
	}
	version, _ := schema.ParseGroupVersion(controller.APIVersion)
	return &Owner{Kind: kindOfOwner(controller), Version: intern.String(version.Version), Name: controller.Name, UID: controller.UID}
}

func kindOfOwner(reference *metav1.OwnerReference) kinds.Kind {
	version, _ := schema.ParseGroupVersion(reference.APIVersion) // an invalid version leads to an unknown kind
	return kinds.Kind(intern.String(string(kinds.Of(version.WithKind(reference.Kind).GroupKind()))))
}
