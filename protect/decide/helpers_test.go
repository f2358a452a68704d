package decide_test

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/internal/decidetest"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// Users that Kubernetes acts as.
const (
	namespaceController = "system:serviceaccount:kube-system:namespace-controller"
	garbageCollector    = "system:serviceaccount:kube-system:generic-garbage-collector"
	controllerManager   = "system:kube-controller-manager"
)

var (
	newWorld        = decidetest.NewWorld
	update          = decidetest.Update
	remove          = decidetest.Remove
	removeNamespace = decidetest.RemoveNamespace
	with            = decidetest.With
)

func binding(name, role string, users ...string) *rbacv1.ClusterRoleBinding {
	b := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
	for _, user := range users {
		b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: rbacv1.UserKind, Name: user})
	}
	return b
}

func labelled(labels map[string]string) func(*object.Full) {
	return func(o *object.Full) { o.Labels = labels }
}

func terminating(name string) func(*decide.World) {
	return func(w *decide.World) { w.Terminating = func(namespace string) bool { return namespace == name } }
}

func create(user string, created *object.Full) decide.Request {
	request := update(user, nil, created)
	request.Operation, request.Name = spec.Create, created.Name
	return request
}
