package editors

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/protect/spec"
)

// The ways of somebody who is not exempt to act as somebody who is, or to take the
// protection away. All are closed for Headwater's own account and
// namespace while the policy headwater-guard is in force.
const (
	// GrantImpersonate: they may impersonate somebody who is exempt.
	GrantImpersonate Grant = "Impersonate"
	// GrantToken: they may obtain a token of a service account that is exempt.
	GrantToken Grant = "Token"
	// GrantWorkload: they may run pods as a service account that is exempt.
	GrantWorkload Grant = "Workload"
	// GrantExec: they may run commands in pods of a service account that is exempt.
	GrantExec Grant = "Exec"
	// GrantNodes: they may run commands in every pod, through kubelets.
	GrantNodes Grant = "Nodes"
	// GrantBind: they may bind a ClusterRole that exempts to themselves.
	GrantBind Grant = "Bind"
	// GrantEscalate: they may add the override to a ClusterRole that they hold.
	GrantEscalate Grant = "Escalate"
	// GrantRecords: they may write what Headwater records and reads back.
	GrantRecords Grant = "Records"
	// GrantConfiguration: they may change the rule itself.
	GrantConfiguration Grant = "Configuration"
	// GrantPolicies: they may change or delete the policies that deny, which nothing
	// protects.
	GrantPolicies Grant = "Policies"
	// GrantMutation: they may have the API server change what somebody writes who is
	// exempt, before anything judges it.
	GrantMutation Grant = "Mutation"
	// GrantCertificate: they may have a client certificate signed for any user and group.
	GrantCertificate Grant = "Certificate"
)

// Own is what Ways knows of Headwater.
type Own struct {
	Account spec.ServiceAccount
	// Configuration is the ConfigMap of the configuration in the account's namespace.
	Configuration string
	// Requests are the ConfigMaps there that people are meant to write.
	Requests []string
	// Systems are the users that may delete as Kubernetes' controllers may, and those that
	// headwater-guard lets run pods in the account's namespace.
	Systems []string
	// Policies are the names of the policies that deny.
	Policies []string
	// Guarded is true while the policy headwater-guard is in force.
	Guarded bool
}

// workloads are what creates pods, by API group.
var workloads = map[string][]string{
	"":      {"pods", "replicationcontrollers"},
	"apps":  {"deployments", "replicasets", "statefulsets", "daemonsets"},
	"batch": {"jobs", "cronjobs"},
}

var write = []string{"create", "update", "patch"}

// controllers are Kubernetes' own, one of which may escalate, and which the policy
// headwater-guard lets run pods in Headwater's namespace.
var controllers = Editor{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: rbacv1.ResourceAll}

// Accounts returns the namespaces of the service accounts that Ways looks at, each once:
// of those among exempt, the result of Of, of own.Systems, and of Kubernetes' controllers.
func Accounts(exempt []Editor, own Own) []string {
	var namespaces []string
	for _, target := range targets(exempt, own) {
		if target.Kind == rbacv1.ServiceAccountKind && !slices.Contains(namespaces, target.Namespace) {
			namespaces = append(namespaces, target.Namespace)
		}
	}
	return namespaces
}

// targets are those that somebody may want to act as, each once.
func targets(exempt []Editor, own Own) (found []Editor) {
	for _, user := range own.Systems {
		exempt = append(exempt[:len(exempt):len(exempt)], Editor{Kind: rbacv1.UserKind, Name: user})
	}
	for _, editor := range exempt {
		target := targetOf(editor)
		isController := target.Kind == controllers.Kind && target.Namespace == controllers.Namespace && target.Grant == ""
		if !isController && !slices.ContainsFunc(found, target.isSubject) {
			found = append(found, target)
		}
	}
	return append(found, controllers)
}

// Ways lists who may act as one of exempt, the result of Of, or take the
// protection of rule away: at most one entry for each subject and way. It takes one
// step: who may act as somebody in the result is not listed. It leaves out Kubernetes'
// own controllers, and accounts of Headwater's namespace.
func Ways(rule spec.Rule, exempt []Editor, own Own, rbac RBAC) []Editor {
	w := ways{rule: rule, own: own, rbac: rbac, targets: targets(exempt, own)}
	var found []Editor
	for _, h := range rbac.holdings() {
		isExempt := slices.ContainsFunc(w.targets, Editor{Kind: h.subject.Kind, Namespace: h.subject.Namespace, Name: h.subject.Name}.isSubject)
		isOwn := h.subject.Kind == rbacv1.ServiceAccountKind && h.subject.Namespace == own.Account.Namespace
		if !isExempt && !isOwn {
			found = append(found, w.of(h)...)
		}
	}
	slices.SortFunc(found, compareEditors)
	return found
}

// isSubject reports whether both are the same user, group or service account.
func (e Editor) isSubject(other Editor) bool {
	return e.Kind == other.Kind && e.Namespace == other.Namespace && e.Name == other.Name
}

// targetOf returns kind, name and grant of editor alone. A user with the name of a
// service account is one.
func targetOf(editor Editor) Editor {
	if namespace, name, isAccount := accountOf(editor.Name); editor.Kind == rbacv1.UserKind && isAccount {
		return Editor{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name, Grant: editor.Grant}
	}
	return Editor{Kind: editor.Kind, Namespace: editor.Namespace, Name: editor.Name, Grant: editor.Grant}
}

func accountOf(user string) (namespace, name string, isAccount bool) {
	account, isAccount := strings.CutPrefix(user, "system:serviceaccount:")
	if !isAccount {
		return "", "", false
	}
	return strings.Cut(account, ":")
}

type ways struct {
	rule    spec.Rule
	targets []Editor
	own     Own
	rbac    RBAC
}

// of returns the ways of one subject.
func (w ways) of(h *holding) []Editor {
	found := found{subject: h.subject}
	for _, target := range w.targets {
		if target == controllers && h.subject.Kind == rbacv1.ServiceAccountKind && h.subject.Namespace == controllers.Namespace {
			continue
		}
		found.add(GrantImpersonate, target, w.impersonates(h, target))
		if target.Kind != rbacv1.ServiceAccountKind || w.isHeadwater(target) && w.own.Guarded {
			continue
		}
		found.add(GrantToken, target, h.obtainsToken(target))
		found.add(GrantWorkload, target, h.runsPods(target.Namespace))
		found.add(GrantExec, target, h.runsCommands(target.Namespace))
	}
	found.add(GrantNodes, Editor{}, h.may("", permission{verbs: []string{"create", "get"}, resource: "nodes/proxy"}))
	role, grant := w.binds(h)
	found.add(GrantBind, Editor{Kind: "ClusterRole", Name: role}, grant)
	found.add(GrantEscalate, Editor{}, h.escalates())
	found.add(GrantPolicies, Editor{}, h.changesPolicies(w.own.Policies))
	found.add(GrantMutation, Editor{}, h.changesRequests())
	found.add(GrantCertificate, Editor{}, h.signsCertificates())
	namespace := w.own.Account.Namespace
	if w.own.Guarded {
		return found.editors
	}
	found.add(GrantRecords, Editor{Kind: "Namespace", Name: namespace}, w.writesRecords(h))
	found.add(GrantConfiguration, Editor{Kind: "ConfigMap", Namespace: namespace, Name: w.own.Configuration}, h.may(namespace, permission{
		verbs: []string{"update", "patch", "delete"}, resource: "configmaps", name: w.own.Configuration,
	}))
	return found.editors
}

func (w ways) isHeadwater(target Editor) bool {
	return target.Namespace == w.own.Account.Namespace && target.Name == w.own.Account.Name
}

func (w ways) impersonates(h *holding, target Editor) *granted {
	as := func(group, resource, namespace, name string) *granted {
		return h.may(namespace, permission{verbs: []string{"impersonate"}, group: group, resource: resource, name: name})
	}
	switch target.Kind {
	case rbacv1.UserKind:
		return as("", "users", "", target.Name)
	case rbacv1.GroupKind:
		anybody := as("", "users", "", "")
		if anybody == nil {
			anybody = as("", "serviceaccounts", "", "")
		}
		if anybody == nil {
			return nil
		}
		return as("", "groups", "", target.Name)
	}
	grant := as("", "serviceaccounts", target.Namespace, target.Name)
	if (w.isHeadwater(target) || target.Grant == GrantWriter) && as("authentication.k8s.io", "uids", "", "") == nil {
		return nil // without a UID, a request is neither Headwater's nor a writer's
	}
	return grant
}

func (h *holding) obtainsToken(of Editor) *granted {
	if grant := h.may(of.Namespace, permission{verbs: []string{"create"}, resource: "serviceaccounts/token", name: of.Name}); grant != nil {
		return grant
	}
	// A Secret of type kubernetes.io/service-account-token gets a token, too.
	if h.may(of.Namespace, permission{verbs: []string{"get", "list", "watch"}, resource: "secrets"}) == nil {
		return nil
	}
	return h.may(of.Namespace, permission{verbs: []string{"create"}, resource: "secrets"})
}

func (h *holding) runsPods(namespace string) *granted {
	for _, group := range []string{"", "apps", "batch"} {
		for _, resource := range workloads[group] {
			if grant := h.may(namespace, permission{verbs: write, group: group, resource: resource}); grant != nil {
				return grant
			}
		}
	}
	return nil
}

func (h *holding) runsCommands(namespace string) *granted {
	for _, resource := range []string{"pods/exec", "pods/attach"} {
		if grant := h.may(namespace, permission{verbs: []string{"create", "get"}, resource: resource}); grant != nil {
			return grant
		}
	}
	return h.may(namespace, permission{verbs: []string{"update", "patch"}, resource: "pods/ephemeralcontainers"})
}

// binds returns a ClusterRole that exempts and that h may bind to itself: by the verb
// bind, or because h holds all that the ClusterRole grants.
func (w ways) binds(h *holding) (role string, grant *granted) {
	grant = h.may("", permission{verbs: write, group: rbacv1.GroupName, resource: "clusterrolebindings"})
	if grant == nil {
		return "", nil
	}
	for _, role := range w.rbac.ClusterRoles {
		isNamed := slices.Contains(w.rule.Allow.ClusterRoles, role.Name)
		if !isNamed && !overridesRule(role.Rules, w.rule.Name) {
			continue
		}
		bind := permission{verbs: []string{"bind"}, group: rbacv1.GroupName, resource: "clusterroles", name: role.Name}
		if h.may("", bind) != nil || isNamed && h.holdsAll(role.Rules) {
			return role.Name, grant
		}
	}
	return "", nil
}

func (h *holding) escalates() *granted {
	if h.may("", permission{verbs: []string{"escalate"}, group: rbacv1.GroupName, resource: "clusterroles"}) == nil {
		return nil
	}
	return h.may("", permission{verbs: []string{"update", "patch"}, group: rbacv1.GroupName, resource: "clusterroles"})
}

func (h *holding) changesPolicies(names []string) *granted {
	for _, resource := range []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"} {
		for _, name := range names {
			need := permission{verbs: []string{"update", "patch", "delete", "deletecollection"}, group: admissionregistrationv1.GroupName, resource: resource, name: name}
			if grant := h.may("", need); grant != nil {
				return grant
			}
		}
	}
	return nil
}

func (h *holding) changesRequests() *granted {
	for _, resource := range []string{"mutatingwebhookconfigurations", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"} {
		if grant := h.may("", permission{verbs: write, group: admissionregistrationv1.GroupName, resource: resource}); grant != nil {
			return grant
		}
	}
	return nil
}

func (h *holding) signsCertificates() *granted {
	const group = certificatesv1.GroupName
	if h.may("", permission{verbs: []string{"create"}, group: group, resource: "certificatesigningrequests"}) == nil ||
		h.may("", permission{verbs: []string{"update", "patch"}, group: group, resource: "certificatesigningrequests/approval"}) == nil {
		return nil
	}
	// The API server accepts both, see Approval in the documentation of CertificateSigningRequests.
	for _, signer := range []string{certificatesv1.KubeAPIServerClientSignerName, "kubernetes.io/*"} {
		if grant := h.may("", permission{verbs: []string{"approve"}, group: group, resource: "signers", name: signer}); grant != nil {
			return grant
		}
	}
	return nil
}

func (w ways) writesRecords(h *holding) *granted {
	unless := append([]string{w.own.Configuration}, w.own.Requests...)
	for _, resource := range []string{"secrets", "configmaps"} {
		need := permission{verbs: append([]string{"delete", "deletecollection"}, write...), resource: resource, unless: unless}
		if grant := h.may(w.own.Account.Namespace, need); grant != nil {
			return grant
		}
	}
	return nil
}

// found collects the ways of one subject: of each the first target, and how many more.
type found struct {
	subject rbacv1.Subject
	editors []Editor
}

func (f *found) add(way Grant, target Editor, grant *granted) {
	if grant == nil {
		return
	}
	if at := slices.IndexFunc(f.editors, func(e Editor) bool { return e.Grant == way }); at >= 0 {
		f.editors[at].MoreTargets++
		return
	}
	editor := grant.from
	editor.Kind, editor.Namespace, editor.Name, editor.Grant = f.subject.Kind, f.subject.Namespace, f.subject.Name, way
	if target.Kind != "" {
		editor.Target = target.Subject()
	}
	f.editors = append(f.editors, editor)
}
