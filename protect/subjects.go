package protect

import (
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
var kubernetesControllers = []string{namespaceController, garbageCollector, controllerManager}

func isHeadwater(user User, world World) bool {
	return world.Headwater != "" && user.Name == world.Headwater
}

func isSystem(user string, world World) bool {
	return user == namespaceController || isGarbageCollector(user) || slices.Contains(world.SystemIdentities, user)
}

func isGarbageCollector(user string) bool {
	return user == garbageCollector || user == controllerManager
}

// grant returns the entry of allowed that covers user, or nothing.
func grant(user User, allowed Allow, subjects func(clusterRole string) []rbacv1.Subject) string {
	if slices.Contains(allowed.Users, user.Name) {
		return "user " + user.Name
	}
	for _, account := range allowed.ServiceAccounts {
		if isServiceAccount(user.Name, account.Namespace, account.Name) {
			return "service account " + account.Namespace + "/" + account.Name
		}
	}
	for _, group := range allowed.Groups {
		if slices.Contains(user.Groups, group) {
			return "group " + group
		}
	}
	for _, role := range allowed.ClusterRoles {
		if slices.ContainsFunc(subjects(role), func(s rbacv1.Subject) bool { return matchesSubject(user, s) }) {
			return "ClusterRole " + role
		}
	}
	return ""
}

// matchesSubject reports whether the subject of a ClusterRoleBinding is user,
// as the API server's RBAC authorizer decides it.
func matchesSubject(user User, subject rbacv1.Subject) bool {
	switch subject.Kind {
	case rbacv1.UserKind:
		return user.Name == subject.Name
	case rbacv1.GroupKind:
		return slices.Contains(user.Groups, subject.Name)
	case rbacv1.ServiceAccountKind:
		return isServiceAccount(user.Name, subject.Namespace, subject.Name)
	default:
		return false
	}
}

func isServiceAccount(user, namespace, name string) bool {
	return namespace != "" && name != "" && user == serviceAccountUser(namespace, name)
}

func serviceAccountUser(namespace, name string) string {
	return "system:serviceaccount:" + namespace + ":" + name
}
