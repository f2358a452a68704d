package protect

import (
	"fmt"

	"go.uber.org/zap"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rbacinformers "k8s.io/client-go/informers/rbac/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/protect/decide"
)

// The indexes of bindings.
const (
	byHolder      = "holder"
	byClusterRole = "clusterRole"
)

// Binding is what is kept of a ClusterRoleBinding.
type Binding struct {
	metav1.ObjectMeta
	ClusterRole string
	// Holders are the principals that it binds.
	Holders []string
}

// Access answers who a ClusterRole is bound to. RoleBindings are not read:
// whoever administers a namespace may bind any role there, to themselves too.
type Access struct {
	bindings *informers.View[*Binding]
}

// NewAccess returns an Access whose cache is started with caches once needed
// says so.
func NewAccess(clients *kube.Clients, caches *informers.Caches, needed func() bool, log *zap.Logger) (*Access, error) {
	informer := rbacinformers.NewClusterRoleBindingInformer(clients.Typed, 0, cache.Indexers{})
	bindings, err := informers.NewView("cluster role bindings", informer, log, keepBinding)
	if err != nil {
		return nil, err
	}
	caches.Add(bindings, needed)
	return newAccess(bindings)
}

func newAccess(bindings *informers.View[*Binding]) (*Access, error) {
	err := bindings.AddIndex(byHolder, func(b *Binding) []string {
		keys := make([]string, len(b.Holders))
		for i, holder := range b.Holders {
			keys[i] = holding(b.ClusterRole, holder)
		}
		return keys
	})
	if err != nil {
		return nil, err
	}
	err = bindings.AddIndex(byClusterRole, func(b *Binding) []string { return []string{b.ClusterRole} })
	if err != nil {
		return nil, err
	}
	return &Access{bindings: bindings}, nil
}

// HasSynced reports whether every binding was read.
func (a *Access) HasSynced() bool { return a.bindings.HasSynced() }

// OnChange calls changed with the ClusterRole whenever one of its bindings does.
func (a *Access) OnChange(changed func(clusterRole string)) error {
	_, err := a.bindings.OnChange(func(change informers.Change[*Binding]) { changed(change.Latest().ClusterRole) })
	return err
}

// Holders lists the principals that clusterRole is bound to cluster-wide.
func (a *Access) Holders(clusterRole string) []string {
	var all []string
	for _, binding := range a.bindings.ByIndex(byClusterRole, clusterRole) {
		all = append(all, binding.Holders...)
	}
	return all
}

// Holds reports whether clusterRole is bound to user cluster-wide, at the cost of
// one look-up for each group of theirs, however many bindings there are.
func (a *Access) Holds(user decide.User, clusterRole string) bool {
	for principal := range decide.Principals(user) {
		if a.bindings.Has(byHolder, holding(clusterRole, principal)) {
			return true
		}
	}
	return false
}

// holding is one principal's holding of a role. No name has a line break.
func holding(clusterRole, principal string) string { return clusterRole + "\n" + principal }

func keepBinding(obj any) (*Binding, error) {
	binding, ok := obj.(*rbacv1.ClusterRoleBinding)
	if !ok {
		return nil, fmt.Errorf("object of type %T is not a ClusterRoleBinding", obj)
	}
	return &Binding{
		ObjectMeta: metav1.ObjectMeta{
			Name: binding.Name, UID: binding.UID, ResourceVersion: binding.ResourceVersion,
		},
		ClusterRole: binding.RoleRef.Name,
		Holders:     decide.Holders(binding.Subjects),
	}, nil
}
