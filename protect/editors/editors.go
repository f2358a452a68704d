package editors

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/headwater-k8s/headwater/protect/spec"
)

// superusers is the group that the API server allows everything, without any
// binding.
const superusers = "system:masters"

// Grant is the reason why somebody may change what a rule protects.
type Grant string

// The grants that are meant to be. Ways lists the others.
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
	// GrantWriter: the policy headwater-guard lets them change Headwater's own workloads
	// and its configuration, and so what Headwater does.
	GrantWriter Grant = "Writer"
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
	// ClusterRoleBinding; RoleBinding, as namespace/name, and Role or ClusterRole if
	// it comes from a RoleBinding.
	ClusterRole string `json:"clusterRole,omitempty"`
	Binding     string `json:"clusterRoleBinding,omitempty"`
	Role        string `json:"role,omitempty"`
	RoleBinding string `json:"roleBinding,omitempty"`
	// Target is what a way leads through, such as a service account that is exempt;
	// MoreTargets counts the others.
	Target      string `json:"target,omitempty"`
	MoreTargets int    `json:"moreTargets,omitempty"`
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
	case GrantHeadwater:
		return "is Headwater itself"
	case GrantWriter:
		return "listed in guard.writers of the chart: may change Headwater's own workloads and its configuration"
	default:
		return e.way() + ": " + e.via()
	}
}

// wayTexts say how somebody who is not exempt gets there; %s is the target.
var wayTexts = map[Grant]string{
	GrantImpersonate:   "may impersonate %s",
	GrantToken:         "may get a token of %s",
	GrantWorkload:      "may run a pod as %s",
	GrantExec:          "may run commands in a pod of %s",
	GrantNodes:         "may run commands in any pod, through nodes/proxy",
	GrantBind:          "may bind %s to themselves",
	GrantEscalate:      "may add the override to a ClusterRole, by the verb escalate",
	GrantRecords:       "may write what Headwater records in %s",
	GrantConfiguration: "may change the rule, in %s",
	GrantPolicies:      "may change the policies that deny",
	GrantMutation:      "may have the API server change what somebody else writes, by mutating webhooks or policies",
	GrantCertificate:   "may have a certificate signed for any user, by approving a CertificateSigningRequest",
}

func (e Editor) way() string {
	target := e.Target
	if e.MoreTargets > 0 {
		target += fmt.Sprintf(" and %d more", e.MoreTargets)
	}
	return strings.Replace(wayTexts[e.Grant], "%s", target, 1)
}

// via names role and binding.
func (e Editor) via() string {
	role, binding := "ClusterRole "+e.ClusterRole, "ClusterRoleBinding "+e.Binding
	if e.Role != "" {
		role = "Role " + e.Role
	}
	if e.RoleBinding != "" {
		binding = "RoleBinding " + e.RoleBinding
	}
	return role + ", through " + binding
}

// Of lists everybody who may change what rule protects, with one entry for
// each grant. RoleBindings do not count: ClusterRoles of a rule must be bound
// cluster-wide, and the override permission is checked cluster-wide.
func Of(rule spec.Rule, headwater spec.ServiceAccount, roles []rbacv1.ClusterRole, bindings []rbacv1.ClusterRoleBinding) []Editor {
	editors := append(allowedEditors(rule.Allow),
		Editor{Kind: rbacv1.GroupKind, Name: superusers, Grant: GrantSuperuser},
		Editor{Kind: rbacv1.ServiceAccountKind, Namespace: headwater.Namespace, Name: headwater.Name, Grant: GrantHeadwater},
	)
	overriding := map[string]bool{}
	for _, role := range roles {
		overriding[role.Name] = overridesRule(role.Rules, rule.Name)
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
	slices.SortFunc(editors, compareEditors)
	return slices.Compact(editors)
}

// Writers returns the users of guard.writers.
func Writers(users []string) []Editor {
	var writers []Editor
	for _, user := range users {
		writers = append(writers, targetOf(Editor{Kind: rbacv1.UserKind, Name: user, Grant: GrantWriter}))
	}
	return writers
}

func compareEditors(a, b Editor) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.Grant, b.Grant), cmp.Compare(a.ClusterRole, b.ClusterRole), cmp.Compare(a.Binding, b.Binding))
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

// overridesRule reports whether rules, of a ClusterRole, include the override permission
// for the rule of that name.
func overridesRule(rules []rbacv1.PolicyRule, rule string) bool {
	override := permission{verbs: []string{spec.OverrideVerb}, group: spec.OverrideGroup, resource: spec.OverrideResource, name: rule}
	return slices.ContainsFunc(rules, override.isGrantedBy)
}
