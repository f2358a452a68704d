package protect

import (
	"iter"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// The user names of Kubernetes' own controllers. With
// --use-service-account-credentials each has its own; without, all share that
// of the controller manager.
const (
	namespaceController = "system:serviceaccount:kube-system:namespace-controller"
	garbageCollector    = "system:serviceaccount:kube-system:generic-garbage-collector"
	controllerManager   = "system:kube-controller-manager"
)

// kubernetesControllers delete what lies in a namespace, or belongs to an owner,
// that is gone.
var kubernetesControllers = append([]string{namespaceController}, garbageCollectors...)

// garbageCollectors let go of owners as well.
var garbageCollectors = []string{garbageCollector, controllerManager}

func isHeadwater(user User, world World) bool {
	return world.Headwater != "" && user.Name == world.Headwater
}

func isSystem(user string, world World) bool {
	return user == namespaceController || collects(user, world)
}

// collects reports whether user collects garbage.
func collects(user string, world World) bool {
	return slices.Contains(garbageCollectors, user) || slices.Contains(world.SystemIdentities, user)
}

// grant returns the entry of allowed that covers user, or nothing.
func grant(user User, allowed Allow, bound func(user User, clusterRole string) bool) string {
	if slices.Contains(allowed.Users, user.Name) {
		return "user " + user.Name
	}
	for _, account := range allowed.ServiceAccounts {
		if user.Name == serviceAccountUser(account.Namespace, account.Name) {
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
	userPrincipal  = "user "
	groupPrincipal = "group "
)

// principals is what user is to the subjects of bindings.
func principals(user User) iter.Seq[string] {
	return func(yield func(string) bool) {
		if !yield(userPrincipal + user.Name) {
			return
		}
		for _, group := range user.Groups {
			if !yield(groupPrincipal + group) {
				return
			}
		}
	}
}

// holders lists the principals that subjects of a ClusterRoleBinding are, as the
// API server's RBAC authorizer decides it.
func holders(subjects []rbacv1.Subject) []string {
	var all []string
	for _, subject := range subjects {
		switch {
		case subject.Kind == rbacv1.UserKind:
			all = append(all, userPrincipal+subject.Name)
		case subject.Kind == rbacv1.GroupKind:
			all = append(all, groupPrincipal+subject.Name)
		case subject.Kind == rbacv1.ServiceAccountKind && subject.Namespace != "" && subject.Name != "":
			all = append(all, userPrincipal+serviceAccountUser(subject.Namespace, subject.Name))
		}
	}
	return all
}

// serviceAccountUser is the user name that a service account acts under.
func serviceAccountUser(namespace, name string) string {
	return "system:serviceaccount:" + namespace + ":" + name
}
