package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/output"
	"github.com/headwater-k8s/headwater/internal/rules"
	protectdecide "github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/prove"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
)

// Protection says whether the sources of a rule are protected, as the running
// service verified.
type Protection struct {
	Rule string           `json:"rule"`
	Mode protectspec.Mode `json:"mode"`
	// Proven is nil if nothing was tried: the rule denies nothing, has no source, or
	// was not verified yet.
	Proven *bool `json:"proven,omitempty"`
	// Since is when the current result was first found.
	Since *time.Time `json:"since,omitempty"`
	// Tried is when the service last verified it, accurate to prove.RecordInterval.
	Tried *time.Time `json:"tried,omitempty"`
	Why   string     `json:"why,omitempty"`
	// Missing is the message about a rule without a source.
	Missing string `json:"missing,omitempty"`
}

// proofs reads the service's recorded result of each rule. The note says why it
// could not.
func (i *Inspector) proofs(ctx context.Context) (recorded map[string]string, note string) {
	found, err := i.clients.Typed.CoreV1().ConfigMaps(i.options.Own).Get(ctx, prove.ProofsConfigMap, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		note = "whether rules protect is not shown: " + err.Error()
	}
	return found.Data, note
}

// protection returns the recorded state of the protecting rules in scope.
func (i *Inspector) protection(scope Scope, recorded map[string]string) []Protection {
	var tried *time.Time
	if at, err := time.Parse(time.RFC3339, recorded[prove.LastTried]); err == nil {
		tried = &at
	}
	var all []Protection
	for _, rule := range i.protecting.All() {
		if !scope.hasRule(rule.Name) || len(scope.Namespaces) > 0 {
			continue // protection is about sources, not about target namespaces
		}
		p := Protection{Rule: rule.Name, Mode: rule.Mode, Missing: i.reader.MissingSource(rule.Base)}
		if text, known := recorded[rule.Name]; known && rule.Mode == protectspec.Enforce {
			status, err := prove.ParseStatus(text)
			if err != nil {
				p.Why = err.Error()
			} else {
				p.Proven, p.Since, p.Tried, p.Why = &status.Proven, &status.Since, tried, status.Why
			}
		}
		all = append(all, p)
	}
	return all
}

func protections(out *output.Writer, all []Protection, leader *Leadership) {
	if len(all) == 0 {
		return
	}
	rows := make([][]string, 0, len(all))
	for _, p := range all {
		rows = append(rows, []string{p.Rule, string(p.Mode), p.describe(leader)})
	}
	_, _ = fmt.Fprintln(out)
	out.Rows(rows, []string{"RULE", "MODE", "PROTECTED"})
}

func (p Protection) describe(leader *Leadership) string {
	switch {
	case p.Proven == nil && p.Why != "":
		return "unknown: " + p.Why
	case p.Proven == nil && p.Mode != protectspec.Enforce:
		return "refuses nothing"
	case p.Proven == nil:
		return p.untried(leader)
	case *p.Proven && leader.IsAbsent() && leader.Until != nil:
		return "last proven " + ago(*leader.Until)
	case *p.Proven:
		return "proven, since " + ago(*p.Since) + p.stale()
	default:
		return "NOT PROVEN since " + ago(*p.Since) + ": " + p.Why + p.stale()
	}
}

// untried says why the service has not verified the rule.
func (p Protection) untried(leader *Leadership) string {
	switch {
	case p.Missing != "":
		return "not tried: " + p.Missing
	case leader.IsAbsent():
		return "not tried: no replica leads"
	default:
		return "not tried yet"
	}
}

// stale says when the service last verified the rule, if that is overdue.
func (p Protection) stale() string {
	if p.Tried == nil || time.Since(*p.Tried) < 2*prove.RecordInterval {
		return ""
	}
	return "; last tried " + ago(*p.Tried)
}

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
	headwater := ownAccount(options.Own, bindings.Items)
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
func (e Editors) Table(out *output.Writer) {
	rows := make([][]string, 0, len(e.Editors))
	for _, editor := range e.Editors {
		rows = append(rows, []string{editor.Subject(), editor.Through()})
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
