package decide

import (
	"cmp"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/headwater-k8s/headwater/protect/spec"
)

// superusers is the group that the API server allows everything, without any
// binding.
const superusers = "system:masters"

// Grant is the reason why somebody may change what a rule protects.
type Grant string

// The grants.
const (
	// GrantAllow: the rule lists them.
	GrantAllow Grant = "Allow"
	// GrantClusterRole: a ClusterRole that the rule lists is bound to them.
	GrantClusterRole Grant = "ClusterRole"
	// GrantOverride: a ClusterRole with the verb override is bound to them.
	GrantOverride Grant = "Override"
	// GrantSuperuser: the API server allows them everything.
	GrantSuperuser Grant = "Superuser"
	// GrantHeadwater: they are Headwater.
	GrantHeadwater Grant = "Headwater"
)

// Editor is a user, group or service account that may change what a rule
// protects, with one of its grants.
type Editor struct {
	// Kind is User, Group or ServiceAccount.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Grant     Grant  `json:"grant"`
	// ClusterRole and Binding are set if the grant comes from a
	// ClusterRoleBinding.
	ClusterRole string `json:"clusterRole,omitempty"`
	Binding     string `json:"clusterRoleBinding,omitempty"`
}

// Subject returns kind and name of the editor, for display.
func (e Editor) Subject() string {
	if e.Namespace != "" {
		return e.Kind + " " + e.Namespace + "/" + e.Name
	}
	return e.Kind + " " + e.Name
}

// Through describes the grant, for display.
func (e Editor) Through() string {
	switch e.Grant {
	case GrantAllow:
		return "listed in the rule"
	case GrantClusterRole:
		return fmt.Sprintf("ClusterRole %s of the rule, through ClusterRoleBinding %s", e.ClusterRole, e.Binding)
	case GrantOverride:
		return fmt.Sprintf("verb %s in ClusterRole %s, through ClusterRoleBinding %s", spec.OverrideVerb, e.ClusterRole, e.Binding)
	case GrantSuperuser:
		return "the API server, which allows it everything"
	default:
		return "is Headwater itself"
	}
}

// Editors lists everybody who may change what rule protects, with one entry for
// each grant. RoleBindings do not count: ClusterRoles of a rule must be bound
// cluster-wide, and the override permission is checked cluster-wide.
func Editors(rule spec.Rule, headwater spec.ServiceAccount, roles []rbacv1.ClusterRole, bindings []rbacv1.ClusterRoleBinding) []Editor {
	editors := append(allowedEditors(rule.Allow),
		Editor{Kind: rbacv1.GroupKind, Name: superusers, Grant: GrantSuperuser},
		Editor{Kind: rbacv1.ServiceAccountKind, Namespace: headwater.Namespace, Name: headwater.Name, Grant: GrantHeadwater},
	)
	overriding := map[string]bool{}
	for _, role := range roles {
		overriding[role.Name] = slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return overrides(r, rule.Name) })
	}
	for _, binding := range bindings {
		role := binding.RoleRef.Name
		if slices.Contains(rule.Allow.ClusterRoles, role) {
			editors = append(editors, boundEditors(binding, GrantClusterRole)...)
		}
		if overriding[role] {
			editors = append(editors, boundEditors(binding, GrantOverride)...)
		}
	}
	slices.SortFunc(editors, func(a, b Editor) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Grant, b.Grant), cmp.Compare(a.ClusterRole, b.ClusterRole), cmp.Compare(a.Binding, b.Binding))
	})
	return slices.Compact(editors)
}

func allowedEditors(allow spec.Allow) []Editor {
	var editors []Editor
	for _, user := range allow.Users {
		editors = append(editors, Editor{Kind: rbacv1.UserKind, Name: user, Grant: GrantAllow})
	}
	for _, group := range allow.Groups {
		editors = append(editors, Editor{Kind: rbacv1.GroupKind, Name: group, Grant: GrantAllow})
	}
	for _, account := range allow.ServiceAccounts {
		editors = append(editors, Editor{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name, Grant: GrantAllow})
	}
	return editors
}

func boundEditors(binding rbacv1.ClusterRoleBinding, grant Grant) []Editor {
	var editors []Editor
	for _, subject := range binding.Subjects {
		editors = append(editors, Editor{
			Kind: subject.Kind, Namespace: subject.Namespace, Name: subject.Name,
			Grant: grant, ClusterRole: binding.RoleRef.Name, Binding: binding.Name,
		})
	}
	return editors
}

// overrides reports whether granted, a rule of a ClusterRole, includes the
// override permission for the rule of that name. It matches like the RBAC
// authorizer of the API server.
func overrides(granted rbacv1.PolicyRule, rule string) bool {
	has := func(list []string, value string) bool {
		return slices.Contains(list, value) || slices.Contains(list, rbacv1.ResourceAll)
	}
	return has(granted.Verbs, spec.OverrideVerb) && has(granted.APIGroups, spec.OverrideGroup) && has(granted.Resources, spec.OverrideResource) &&
		(len(granted.ResourceNames) == 0 || slices.Contains(granted.ResourceNames, rule))
}
