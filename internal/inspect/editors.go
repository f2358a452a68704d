package inspect

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/rules"
	protectdecide "github.com/headwater-k8s/headwater/protect/decide"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
)

// serviceAccountName is Headwater's ServiceAccount in deploy/rbac.yaml.
const serviceAccountName = "headwater"

// Editors lists who may change the source of a rule.
type Editors struct {
	Rule    string                 `json:"rule"`
	Source  string                 `json:"source"`
	Editors []protectdecide.Editor `json:"editors"`
	// Notes say what else to consider.
	Notes []string `json:"notes,omitempty"`
}

// WhoCanEdit returns who may change the source of the rule with that name, and why.
// It reads only RBAC and the configuration.
func WhoCanEdit(ctx context.Context, options Options, name string) (Editors, error) {
	c, err := connect(ctx, options, rolePermissions())
	if err != nil {
		return Editors{}, err
	}
	rule, found := c.sets.Protect.Named(name)
	if !found {
		return Editors{}, fmt.Errorf("no rule %q protects anything; those that do: %s", name, namesOf(c.sets.Protect))
	}
	roles, err := c.clients.Typed.RbacV1().ClusterRoles().List(ctx, metav1.ListOptions{})
	if err != nil {
		return Editors{}, fmt.Errorf("list ClusterRoles: %w", err)
	}
	bindings, err := c.clients.Typed.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return Editors{}, fmt.Errorf("list ClusterRoleBindings: %w", err)
	}
	headwater := protectspec.ServiceAccount{Namespace: options.Namespace, Name: serviceAccountName}
	return Editors{
		Rule: rule.Name, Source: rule.Source.String(), Notes: notes(*rule, roles.Items),
		Editors: protectdecide.Editors(*rule, headwater, roles.Items, bindings.Items),
	}, nil
}

func namesOf[R rules.Rule](set *rules.Set[R]) string {
	var names []string
	for _, rule := range set.All() {
		names = append(names, rule.RuleBase().Name)
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}

func rolePermissions() []kube.Permission {
	const group, purpose = "rbac.authorization.k8s.io", "know who holds which ClusterRole"
	return []kube.Permission{
		{Group: group, Resource: "clusterroles", Verbs: []string{"list"}, For: purpose},
		{Group: group, Resource: "clusterrolebindings", Verbs: []string{"list"}, For: purpose},
	}
}

func notes(rule protectspec.Rule, roles []rbacv1.ClusterRole) []string {
	var notes []string
	for _, name := range rule.Allow.ClusterRoles {
		if !slices.ContainsFunc(roles, func(role rbacv1.ClusterRole) bool { return role.Name == name }) {
			notes = append(notes, fmt.Sprintf("the rule allows ClusterRole %s, which does not exist; correct protect.allow.clusterRoles, or make it", name))
		}
	}
	if rule.Mode != protectspec.Enforce {
		notes = append(notes, fmt.Sprintf("the rule's mode is %s, which refuses nobody", rule.Mode))
	}
	for _, operation := range protectspec.Operations() {
		if !slices.Contains(rule.Operations, operation) {
			notes = append(notes, fmt.Sprintf("the rule does not protect the operation %s, which is open to anybody with the permission", operation))
		}
	}
	return append(notes, "they also need the permission for the object itself; other authorizers than RBAC may grant the override, too")
}

// Table writes a row per editor.
func (e Editors) Table(out io.Writer) {
	rows := [][]string{{"SUBJECT", "THROUGH"}}
	for _, editor := range e.Editors {
		rows = append(rows, []string{editor.Subject(), editor.Through()})
	}
	writeTable(out, rows)
	writeNotes(out, e.Notes)
}
