package decide

import (
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/protect/internal/protecttest"
	"github.com/headwater-k8s/headwater/protect/spec"
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

func newWorld(change ...func(*World)) World {
	world := World{
		Headwater:   protecttest.HeadwaterUser,
		Terminating: func(string) bool { return false },
		HasSource:   func(spec.Rule) bool { return true },
		Holders:     func(string) []string { return nil },
		Now:         time.Now,
		Bound: func(user User, role string) bool {
			return role == "cluster-admin" && slices.Contains(user.Groups, "system:masters")
		},
	}
	for _, f := range change {
		f(&world)
	}
	return world
}

func terminating(name string) func(*World) {
	return func(w *World) { w.Terminating = func(namespace string) bool { return namespace == name } }
}

func update(user string, before, after *object.Full) Request {
	return Request{
		Operation: spec.Update, Kind: object.Secret, Namespace: "platform", Name: "blogsecret",
		User: User{Name: user}, Old: before, New: after,
	}
}

func create(user string, created *object.Full) Request {
	request := update(user, nil, created)
	request.Operation, request.Name = spec.Create, created.Name
	return request
}

func remove(user string) Request {
	return Request{
		Operation: spec.Delete, Kind: object.Secret, Namespace: "platform", Name: "blogsecret",
		User: User{Name: user}, Old: protecttest.NewSecret(),
	}
}

func removeNamespace(user, name string) Request {
	return Request{
		Operation: spec.Delete, Kind: spec.KindNamespace, Namespace: name, Name: name,
		User: User{Name: user}, Old: protecttest.NewNamespace(name),
	}
}

// with returns request after change.
func with(request Request, change func(*Request)) Request {
	change(&request)
	return request
}
