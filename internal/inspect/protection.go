package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/output"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/editors"
	"github.com/headwater-k8s/headwater/protect/manifests"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// installedName is the name of Headwater's ClusterRoleBinding in deploy/rbac.yaml,
// and of its ServiceAccount unless a value of the chart names another.
const installedName = "headwater"

// ownAccount returns Headwater's ServiceAccount in namespace: the one that has its
// permissions.
func ownAccount(namespace string, bindings []rbacv1.ClusterRoleBinding) protectspec.ServiceAccount {
	account := protectspec.ServiceAccount{Namespace: namespace, Name: installedName}
	for _, binding := range bindings {
		if binding.Name != installedName {
			continue
		}
		for _, subject := range binding.Subjects {
			if subject.Kind == rbacv1.ServiceAccountKind && subject.Namespace == namespace {
				account.Name = subject.Name
			}
		}
	}
	return account
}

// Editors lists who may change the source of a rule.
type Editors struct {
	Rule    string   `json:"rule"`
	Source  string   `json:"source"`
	Editors []Editor `json:"editors"`
	// Notes say what else to consider.
	Notes []string `json:"notes,omitempty"`
}

// Editor is one who may, with the words for the grant.
type Editor struct {
	editors.Editor

	How string `json:"how"`
}

// WhoCanEdit returns who may change the source of the rule with that name, and why.
// It reads only RBAC, the configuration and whether two policies are in force.
func WhoCanEdit(ctx context.Context, options Options, name string) (Editors, error) {
	c, err := connect(ctx, options, rolePermissions())
	if err != nil {
		return Editors{}, err
	}
	rule, found := c.sets.Protect.Named(name)
	if !found {
		return Editors{}, fmt.Errorf("no rule %q protects anything; those that do: %s", name, namesOf(c.sets.Protect))
	}
	answer := Editors{Rule: rule.Name, Source: rule.Source.String(), Editors: []Editor{}}
	if err := answer.read(ctx, c.clients.Typed, *rule, options.Own, c.config.Protect.SystemIdentities); err != nil {
		return Editors{}, err
	}
	return answer, nil
}

// read fills in who may change the source of rule. own is Headwater's namespace, and systems
// are the configuration's systemIdentities.
func (e *Editors) read(ctx context.Context, client kubernetes.Interface, rule protectspec.Rule, own string, systems []string) error {
	rbac, err := clusterRBAC(ctx, client)
	if err != nil {
		return err
	}
	headwater := editors.Own{
		Account: ownAccount(own, rbac.ClusterRoleBindings), Configuration: config.ConfigMapName,
		Requests: []string{survey.ApprovalsName, survey.DeliveriesName},
		Systems:  slices.Concat(decide.KubernetesControllers, systems),
		Policies: append([]string{protectspec.GuardName, protectspec.LimitName, protectspec.LimitUpdatesName}, manifests.PolicyNames()...),
	}
	policies, err := policiesInForce(ctx, client, own)
	if err != nil {
		return err
	}
	headwater.Guarded = policies.inForce
	direct := append(editors.Of(rule, headwater.Account, rbac.ClusterRoles, rbac.ClusterRoleBindings), editors.Writers(policies.writers)...)
	for _, namespace := range editors.Accounts(direct, headwater) {
		if err := addNamespaced(ctx, client, namespace, &rbac); err != nil {
			return err
		}
	}
	for _, one := range append(direct, editors.Ways(rule, direct, headwater, rbac)...) {
		e.Editors = append(e.Editors, Editor{one, one.Through()})
	}
	e.Notes = append(notes(rule, rbac.ClusterRoles), policies.notes...)
	e.Notes = append(e.Notes,
		"Kubernetes' own controllers are not listed, nor is who may act as somebody in the list who is not exempt",
		"everybody also needs the permission for the object itself; what other authorizers than RBAC allow is not seen here")
	return nil
}

func clusterRBAC(ctx context.Context, client kubernetes.Interface) (rbac editors.RBAC, err error) {
	roles, err := client.RbacV1().ClusterRoles().List(ctx, metav1.ListOptions{})
	if err != nil {
		return rbac, fmt.Errorf("list ClusterRoles: %w", err)
	}
	bindings, err := client.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return rbac, fmt.Errorf("list ClusterRoleBindings: %w", err)
	}
	return editors.RBAC{ClusterRoles: roles.Items, ClusterRoleBindings: bindings.Items}, nil
}

// addNamespaced adds the Roles and RoleBindings of namespace to rbac.
func addNamespaced(ctx context.Context, client kubernetes.Interface, namespace string, rbac *editors.RBAC) error {
	roles, err := client.RbacV1().Roles(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list Roles in namespace %s: %w", namespace, err)
	}
	bindings, err := client.RbacV1().RoleBindings(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list RoleBindings in namespace %s: %w", namespace, err)
	}
	rbac.Roles = append(rbac.Roles, roles.Items...)
	rbac.RoleBindings = append(rbac.RoleBindings, bindings.Items...)
	return nil
}

func namesOf[R rules.Rule](set *rules.Set[R]) string {
	var names []string
	for _, rule := range set.All() {
		names = append(names, rule.RuleBase().Name)
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}

func rolePermissions() []kube.Permission {
	const group, purpose = "rbac.authorization.k8s.io", "know who holds which role"
	return []kube.Permission{
		{Group: group, Resource: "clusterroles", Verbs: []string{"list"}, For: purpose},
		{Group: group, Resource: "clusterrolebindings", Verbs: []string{"list"}, For: purpose},
		{Group: group, Resource: "roles", Verbs: []string{"list"}, For: purpose},
		{Group: group, Resource: "rolebindings", Verbs: []string{"list"}, For: purpose},
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
	return notes
}

// Table writes a row per editor.
func (e Editors) Table(out *output.Writer) {
	rows := make([][]string, 0, len(e.Editors))
	for _, editor := range e.Editors {
		rows = append(rows, []string{editor.Subject(), editor.How})
	}
	out.Rows(rows, []string{"SUBJECT", "THROUGH"})
	writeNotes(out, e.Notes)
}

// Names lists the editors, each once.
func (e Editors) Names() []string {
	var names []string
	for _, editor := range e.Editors {
		names = append(names, editor.Subject())
	}
	slices.Sort(names)
	return slices.Compact(names)
}
