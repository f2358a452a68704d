package decide

import (
	"iter"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/headwater-k8s/headwater/protect/spec"
)

// User names of Kubernetes' own controllers. With
// --use-service-account-credentials, each controller has its own; otherwise all
// use that of the controller manager.
const (
	namespaceController = "system:serviceaccount:kube-system:namespace-controller"
	garbageCollector    = "system:serviceaccount:kube-system:generic-garbage-collector"
	controllerManager   = "system:kube-controller-manager"
)

// KubernetesControllers are the users that delete the contents of a deleted
// namespace and the dependents of a deleted owner.
var KubernetesControllers = append([]string{namespaceController}, GarbageCollectors...)

// GarbageCollectors are the users that also remove owner references.
var GarbageCollectors = []string{garbageCollector, controllerManager}

// isImpersonated reports whether somebody else acts as the service account user: the
// account has a UID, and a request that impersonates it has none. The UID is not
// compared, because an account may be recreated or restored.
func (u User) isImpersonated() bool { return u.UID == "" && IsServiceAccount(u.Name) }

// isHeadwater reports whether Headwater itself sent the request.
func isHeadwater(user User, world World) bool {
	return world.Headwater != "" && user.Name == world.Headwater && !user.isImpersonated()
}

func isSystem(user User, world World) bool {
	return user.Name == namespaceController && !user.isImpersonated() || isGarbageCollector(user, world)
}

// isGarbageCollector reports whether user is a garbage collector or one of the
// SystemIdentities.
func isGarbageCollector(user User, world World) bool {
	return !user.isImpersonated() && (slices.Contains(GarbageCollectors, user.Name) || slices.Contains(world.SystemIdentities, user.Name))
}

// grant returns the entry of allowed that covers user, for the audit log. It is
// empty if there is none.
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

// A principal is a user or group as one string, with one of these prefixes. A
// service account is represented by its user name.
const (
	UserPrincipal  = "user "
	GroupPrincipal = "group "
)

// Principals yields the principals that user matches in the subjects of a
// binding: the user and each group.
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

// PrincipalsOf returns the principals for the subjects of a ClusterRoleBinding.
// It interprets subjects like the RBAC authorizer of the API server.
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

// serviceAccountPrefix begins the user names of service accounts.
const serviceAccountPrefix = "system:serviceaccount:"

// ServiceAccountUser returns the user name of a service account.
func ServiceAccountUser(namespace, name string) string {
	return serviceAccountPrefix + namespace + ":" + name
}

// IsServiceAccount reports whether user is the user name of a service account.
func IsServiceAccount(user string) bool { return strings.HasPrefix(user, serviceAccountPrefix) }
