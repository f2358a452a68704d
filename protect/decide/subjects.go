package decide

import (
	"iter"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/headwater-k8s/headwater/protect/spec"
)

// The user names of Kubernetes' own controllers. With
// --use-service-account-credentials each has its own; without, all share that
// of the controller manager.
const (
	namespaceController = "system:serviceaccount:kube-system:namespace-controller"
	garbageCollector    = "system:serviceaccount:kube-system:generic-garbage-collector"
	controllerManager   = "system:kube-controller-manager"
)

// KubernetesControllers delete what lies in a namespace, or belongs to an owner,
// that is gone.
var KubernetesControllers = append([]string{namespaceController}, GarbageCollectors...)

// GarbageCollectors let go of owners as well.
var GarbageCollectors = []string{garbageCollector, controllerManager}

func isHeadwater(user User, world World) bool {
	return world.Headwater != "" && user.Name == world.Headwater
}

func isSystem(user string, world World) bool {
	return user == namespaceController || isGarbageCollector(user, world)
}

// isGarbageCollector reports whether user collects garbage.
func isGarbageCollector(user string, world World) bool {
	return slices.Contains(GarbageCollectors, user) || slices.Contains(world.SystemIdentities, user)
}

// grant returns the entry of allowed that covers user, or nothing.
func grant(user User, allowed spec.Allow, bound func(user User, clusterRole string) bool) string {
	if slices.Contains(allowed.Users, user.Name) {
		return "user " + user.Name
	}
	for _, account := range allowed.ServiceAccounts {
		if user.Name == ServiceAccountUser(account.Namespace, account.Name) {
			return "service account " + account.Namespace + "/" + account.Name
		}
	}
	for _, group := range allowed.Groups {
		if slices.Contains(user.Groups, group) {
			return "group " + group
		}
	}
	for _, role := range allowed.ClusterRoles {
		if bound(user, role) {
			return "ClusterRole " + role
		}
	}
	return ""
}

// A principal is a user or a group in one string; a service account is the user
// that it acts as.
const (
	UserPrincipal  = "user "
	GroupPrincipal = "group "
)

// Principals is what user is to the subjects of bindings.
func Principals(user User) iter.Seq[string] {
	return func(yield func(string) bool) {
		if !yield(UserPrincipal + user.Name) {
			return
		}
		for _, group := range user.Groups {
			if !yield(GroupPrincipal + group) {
				return
			}
		}
	}
}

// PrincipalsOf lists the principals that subjects of a ClusterRoleBinding are, as the
// API server's RBAC authorizer decides it.
func PrincipalsOf(subjects []rbacv1.Subject) []string {
	var all []string
	for _, subject := range subjects {
		switch {
		case subject.Kind == rbacv1.UserKind:
			all = append(all, UserPrincipal+subject.Name)
		case subject.Kind == rbacv1.GroupKind:
			all = append(all, GroupPrincipal+subject.Name)
		case subject.Kind == rbacv1.ServiceAccountKind && subject.Namespace != "" && subject.Name != "":
			all = append(all, UserPrincipal+ServiceAccountUser(subject.Namespace, subject.Name))
		}
	}
	return all
}

// ServiceAccountUser is the user name that a service account acts under.
func ServiceAccountUser(namespace, name string) string {
	return "system:serviceaccount:" + namespace + ":" + name
}
