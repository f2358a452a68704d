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

// Names of the indexes.
const (
	byHolder      = "holder"
	byClusterRole = "clusterRole"
)

// boundRole is the cached form of a ClusterRoleBinding.
type boundRole struct {
	metav1.ObjectMeta
	ClusterRole string
	// Holders are the principals that the binding grants the ClusterRole.
	Holders []string
}

// accessIndex answers which users and groups a ClusterRole is bound to. It
// ignores RoleBindings: a namespace admin could create one to exempt
// themselves.
type accessIndex struct {
	bindings *informers.View[*boundRole]
}

// watchBindings returns an accessIndex. Its cache starts together with caches
// as soon as needed returns true.
func watchBindings(clients *kube.Clients, caches *informers.Caches, needed func() bool, log *zap.Logger) (*accessIndex, error) {
	informer := rbacinformers.NewClusterRoleBindingInformer(clients.Typed, 0, cache.Indexers{})
	bindings, err := informers.NewView("cluster role bindings", informer, log, toBinding)
	if err != nil {
		return nil, err
	}
	caches.Add(bindings, needed)
	return newAccessIndex(bindings)
}

func newAccessIndex(bindings *informers.View[*boundRole]) (*accessIndex, error) {
	err := bindings.AddIndex(byHolder, func(b *boundRole) []string {
		keys := make([]string, len(b.Holders))
		for i, holder := range b.Holders {
			keys[i] = bindingKey(b.ClusterRole, holder)
		}
		return keys
	})
	if err != nil {
		return nil, err
	}
	err = bindings.AddIndex(byClusterRole, func(b *boundRole) []string { return []string{b.ClusterRole} })
	if err != nil {
		return nil, err
	}
	return &accessIndex{bindings: bindings}, nil
}

// hasSynced reports whether all ClusterRoleBindings are cached.
func (a *accessIndex) hasSynced() bool { return a.bindings.HasSynced() }

// onChange registers changed. It is called with the name of the ClusterRole
// after a binding of it is created, updated or deleted.
func (a *accessIndex) onChange(changed func(clusterRole string)) error {
	_, err := a.bindings.OnChange(func(change informers.Change[*boundRole]) { changed(change.Latest().ClusterRole) })
	return err
}

// holders lists the principals that clusterRole is bound to.
func (a *accessIndex) holders(clusterRole string) []string {
	var all []string
	for _, binding := range a.bindings.ByIndex(byClusterRole, clusterRole) {
		all = append(all, binding.Holders...)
	}
	return all
}

// isBound reports whether clusterRole is bound to user. The cost is one lookup
// for the user and one for each of their groups, independent of the number of
// bindings.
func (a *accessIndex) isBound(user decide.User, clusterRole string) bool {
	for principal := range decide.Principals(user) {
		if a.bindings.Has(byHolder, bindingKey(clusterRole, principal)) {
			return true
		}
	}
	return false
}

// bindingKey is the index key of one principal that holds clusterRole. A line
// break separates the two, because names contain none.
func bindingKey(clusterRole, principal string) string { return clusterRole + "\n" + principal }

func toBinding(o any) (*boundRole, error) {
	obj, ok := o.(*rbacv1.ClusterRoleBinding)
	if !ok {
		return nil, fmt.Errorf("object of type %T is not a ClusterRoleBinding", o)
	}
	return &boundRole{
		ObjectMeta: metav1.ObjectMeta{
			Name: obj.Name, UID: obj.UID, ResourceVersion: obj.ResourceVersion,
		},
		ClusterRole: obj.RoleRef.Name,
		Holders:     decide.PrincipalsOf(obj.Subjects),
	}, nil
}
