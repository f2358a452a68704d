package editors

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RBAC is what Ways reads: all ClusterRoles and ClusterRoleBindings, and the Roles and
// RoleBindings of the namespaces that Accounts returns.
type RBAC struct {
	ClusterRoles        []rbacv1.ClusterRole
	ClusterRoleBindings []rbacv1.ClusterRoleBinding
	Roles               []rbacv1.Role
	RoleBindings        []rbacv1.RoleBinding
}

// holding is what RBAC grants to one subject.
type holding struct {
	subject rbacv1.Subject
	grants  []granted
}

// granted is what one binding grants.
type granted struct {
	rules []rbacv1.PolicyRule
	// namespace is empty for the whole cluster.
	namespace string
	// from has the fields of an Editor that name role and binding.
	from Editor
}

// permission is what somebody needs: one of the verbs.
type permission struct {
	verbs           []string
	group, resource string
	// name is the object; empty or * means any. A create is not restricted by names, unless
	// it is of a subresource.
	name string
	// unless are names that do not count.
	unless []string
}

// may returns the binding that grants need in namespace, or in the whole cluster; nil
// if none does. It matches like the RBAC authorizer of the API server.
func (h holding) may(namespace string, need permission) *granted {
	for i, grant := range h.grants {
		if grant.namespace != "" && grant.namespace != namespace {
			continue
		}
		if slices.ContainsFunc(grant.rules, need.isGrantedBy) {
			return &h.grants[i]
		}
	}
	return nil
}

func (p permission) isGrantedBy(rule rbacv1.PolicyRule) bool {
	return has(rule.APIGroups, p.group) && hasResource(rule.Resources, p.resource) &&
		slices.ContainsFunc(p.verbs, func(verb string) bool { return has(rule.Verbs, verb) && p.reaches(rule.ResourceNames, verb) })
}

func (p permission) reaches(names []string, verb string) bool {
	isSubresource := strings.Contains(p.resource, "/")
	switch {
	case len(names) == 0:
		return true
	case verb == "create" && !isSubresource:
		return false
	case p.name != "" && p.name != rbacv1.ResourceAll:
		return slices.Contains(names, p.name)
	default:
		return slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(p.unless, name) })
	}
}

func has(list []string, value string) bool {
	return slices.Contains(list, value) || slices.Contains(list, rbacv1.ResourceAll)
}

func hasResource(list []string, resource string) bool {
	_, subresource, isSubresource := strings.Cut(resource, "/")
	return has(list, resource) || isSubresource && slices.Contains(list, "*/"+subresource)
}

// holdsAll reports whether h holds each of rules in the whole cluster, so that the API
// server lets it bind a ClusterRole of these rules.
func (h holding) holdsAll(rules []rbacv1.PolicyRule) bool {
	return !slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool { return !h.holds(rule) })
}

func (h holding) holds(rule rbacv1.PolicyRule) bool {
	for _, url := range rule.NonResourceURLs {
		if !slices.ContainsFunc(rule.Verbs, func(verb string) bool { return h.holdsURL(verb, url) }) {
			return false
		}
	}
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, verb := range rule.Verbs {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					if !h.holdsOne(verb, group, resource, name) {
						return false
					}
				}
			}
		}
	}
	return true
}

func (h holding) holdsOne(verb, group, resource, name string) bool {
	return slices.ContainsFunc(h.grants, func(grant granted) bool {
		return grant.namespace == "" && slices.ContainsFunc(grant.rules, func(rule rbacv1.PolicyRule) bool {
			return has(rule.Verbs, verb) && has(rule.APIGroups, group) && hasResource(rule.Resources, resource) &&
				(len(rule.ResourceNames) == 0 || name != "" && slices.Contains(rule.ResourceNames, name))
		})
	})
}

func (h holding) holdsURL(verb, url string) bool {
	return slices.ContainsFunc(h.grants, func(grant granted) bool {
		return grant.namespace == "" && slices.ContainsFunc(grant.rules, func(rule rbacv1.PolicyRule) bool {
			return has(rule.Verbs, verb) && has(rule.NonResourceURLs, url)
		})
	})
}

// holdings returns what each subject of a binding holds, in the order of the bindings.
// It leaves out what Kubernetes' own controllers hold by the bindings that it creates.
func (r RBAC) holdings() []*holding {
	clusterRoles, roles := map[string][]rbacv1.PolicyRule{}, map[string][]rbacv1.PolicyRule{}
	for _, role := range r.ClusterRoles {
		clusterRoles[role.Name] = role.Rules
	}
	for _, role := range r.Roles {
		roles[role.Namespace+"/"+role.Name] = role.Rules
	}
	var all []*holding
	known := map[rbacv1.Subject]*holding{}
	add := func(binding string, subjects []rbacv1.Subject, grant granted) {
		for _, subject := range subjects {
			subject.APIGroup = ""
			if subject.Kind == rbacv1.ServiceAccountKind && subject.Namespace == "" {
				subject.Namespace = grant.namespace
			}
			if isOfKubernetes(binding, subject) {
				continue
			}
			if known[subject] == nil {
				known[subject] = &holding{subject: subject}
				all = append(all, known[subject])
			}
			known[subject].grants = append(known[subject].grants, grant)
		}
	}
	for _, binding := range r.ClusterRoleBindings {
		name := binding.RoleRef.Name
		add(binding.Name, binding.Subjects, granted{rules: clusterRoles[name], from: Editor{ClusterRole: name, Binding: binding.Name}})
	}
	for _, binding := range r.RoleBindings {
		grant := granted{namespace: binding.Namespace, from: Editor{RoleBinding: binding.Namespace + "/" + binding.Name}}
		if binding.RoleRef.Kind == "Role" {
			grant.from.Role = binding.RoleRef.Name
			grant.rules = roles[binding.Namespace+"/"+binding.RoleRef.Name]
		} else {
			grant.from.ClusterRole = binding.RoleRef.Name
			grant.rules = clusterRoles[binding.RoleRef.Name]
		}
		add(binding.Name, binding.Subjects, grant)
	}
	return all
}

// isOfKubernetes reports whether the API server itself creates the binding with this
// subject, for a component of Kubernetes. Somebody can add others to such a binding.
func isOfKubernetes(binding string, subject rbacv1.Subject) bool {
	switch {
	case strings.HasPrefix(binding, "system:controller:"):
		return subject.Kind == rbacv1.ServiceAccountKind && subject.Namespace == metav1.NamespaceSystem && binding == "system:controller:"+subject.Name
	case binding == "system:kube-controller-manager", binding == "system:kube-scheduler":
		return subject.Kind == rbacv1.UserKind && subject.Name == binding
	default:
		return false
	}
}
