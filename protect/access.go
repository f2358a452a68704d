package protect

import (
	"fmt"

	"go.uber.org/zap"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rbacinformers "k8s.io/client-go/informers/rbac/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/headwater-k8s/headwater/internal/kube"
)

const byClusterRole = "clusterRole"

// Binding is what is kept of a ClusterRoleBinding.
type Binding struct {
	metav1.ObjectMeta
	ClusterRole string
	Subjects    []rbacv1.Subject
}

// Access answers who a ClusterRole is bound to. RoleBindings are not read:
// whoever administers a namespace may bind any role there, to themselves too.
type Access struct {
	bindings *kube.View[*Binding]
}

// NewAccess returns an Access whose cache is started with caches once needed
// says so.
func NewAccess(clients *kube.Clients, caches *kube.Caches, needed func() bool, log *zap.Logger) (*Access, error) {
	informer := rbacinformers.NewClusterRoleBindingInformer(clients.Typed, 0, cache.Indexers{})
	bindings, err := kube.NewView("cluster role bindings", informer, log, keepBinding)
	if err != nil {
		return nil, err
	}
	err = bindings.AddIndex(byClusterRole, func(b *Binding) []string { return []string{b.ClusterRole} })
	if err != nil {
		return nil, err
	}
	caches.Add(bindings, needed)
	return &Access{bindings: bindings}, nil
}

// HasSynced reports whether every binding was read.
func (a *Access) HasSynced() bool { return a.bindings.HasSynced() }

// OnChange calls changed whenever a binding does.
func (a *Access) OnChange(changed func()) error {
	_, err := a.bindings.OnChange(func(kube.Change[*Binding]) { changed() })
	return err
}

// Subjects returns who clusterRole is bound to cluster-wide.
func (a *Access) Subjects(clusterRole string) []rbacv1.Subject {
	bindings := a.bindings.ByIndex(byClusterRole, clusterRole)
	if len(bindings) == 1 {
		return bindings[0].Subjects
	}
	var subjects []rbacv1.Subject
	for _, binding := range bindings {
		subjects = append(subjects, binding.Subjects...)
	}
	return subjects
}

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
		Subjects:    binding.Subjects,
	}, nil
}
