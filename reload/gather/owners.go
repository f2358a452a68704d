package gather

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// maxOwnerKinds limits the kinds whose metadata is read to climb to owners: everybody can
// write owner references.
const maxOwnerKinds = 32

// ownerKinds are the kinds of custom resources that owner references of workloads name.
type ownerKinds struct {
	// declared returns the kinds that are cached anyway.
	declared func() []informers.OptionalKind[*workload.Workload]
	// noted is called after another kind was found.
	noted func()

	mu    sync.Mutex
	found map[kinds.Kind]*kinds.Info
}

// note remembers the kind of owner, which may be nil. Groups without a dot are
// Kubernetes' own.
func (o *ownerKinds) note(owner *workload.Owner) {
	if owner == nil || !strings.Contains(owner.Kind.GroupKind().Group, ".") {
		return
	}
	o.mu.Lock()
	_, known := o.found[owner.Kind]
	isNew := !known && len(o.found) < maxOwnerKinds
	if isNew {
		kind := owner.Kind.GroupKind()
		o.found[owner.Kind] = &kinds.Info{GroupVersionKind: schema.GroupVersionKind{Group: kind.Group, Version: owner.Version, Kind: kind.Kind}}
	}
	o.mu.Unlock()
	if isNew {
		o.noted()
	}
}

// wanted returns the kinds whose metadata is read: those that are not declared.
func (o *ownerKinds) wanted() (wanted []informers.OptionalKind[*workload.Workload]) {
	declared := o.declared()
	o.mu.Lock()
	defer o.mu.Unlock()
	for kind, info := range o.found {
		if !slices.ContainsFunc(declared, func(one informers.OptionalKind[*workload.Workload]) bool { return kinds.Of(one.GroupKind()) == kind }) {
			wanted = append(wanted, informers.OptionalKind[*workload.Workload]{GroupVersionKind: info.GroupVersionKind, Keep: workload.KeepOwner(info), MetadataOnly: true})
		}
	}
	return wanted
}
