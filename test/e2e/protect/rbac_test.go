package protect

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect/editors"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
	"github.com/headwater-k8s/headwater/test/lab"
	"github.com/headwater-k8s/headwater/test/seed"
)

const (
	holdNamespace = "hold-src"
	holdRoles     = 6
	holdBindings  = 24
	holdRounds    = 4
	// holdGroup is of a resource that nobody serves; to hold a thing of it is what
	// each ClusterRole of the test grants, and nothing else does.
	holdGroup = "hold.headwater.dev"
)

// overriding grants the override, or something that only looks like it.
var overriding = []rbacv1.PolicyRule{
	override("override", "headwater.dev", "protectedobjects"),
	override("*", "*", "*", "hold-1", "hold"),
	override("override", "headwater.dev", "protectedobjects", "hold-2", "hold-3"),
	override("override", "headwater.dev", "protectedobjects", "*"),
	override("override", "headwater.dev", "protectedobjects/*"),
	override("override", "headwater.dev", "*/protectedobjects"),
	override("override", "headwater", "protectedobjects"),
	override("get", "headwater.dev", "protectedobjects"),
}

func override(verb, group, resource string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names}
}

// holder is a user whose ClusterRoles the test compares.
type holder struct {
	name   string
	groups []string
	client kubernetes.Interface
}

// TestWhoHoldsAClusterRoleIsAsTheAPIServerSays binds ClusterRoles at random, and
// compares the answers of SubjectAccessReviews with those of Headwater: which users
// each engine lets edit, and which users hold the override according to
// who-can-edit.
//
// HEADWATER_SEED repeats a run with the same bindings.
func TestWhoHoldsAClusterRoleIsAsTheAPIServerSays(t *testing.T) {
	number := seed.Of(t)
	random := rand.New(rand.NewPCG(number, number))
	e := newEnv(t)
	e.Namespace(holdNamespace)
	var file strings.Builder
	for i := range holdRoles {
		name := fmt.Sprintf("hold-%d", i)
		e.Secret(holdNamespace, name, map[string]string{"k": "v"})
		e.ClusterRole(name, rbacv1.PolicyRule{APIGroups: []string{holdGroup}, Resources: []string{"things"}, ResourceNames: []string{name}, Verbs: []string{"hold"}})
		fmt.Fprintf(&file, "- name: %[1]s\n  source: {kind: Secret, namespace: %[2]s, name: %[1]s}\n  protect: {allow: {clusterRoles: [%[1]s]}}\n", name, holdNamespace)
	}
	e.ClusterRole("hold-editor", lab.SecretsEditor())
	e.breakers()
	holders := e.holders()
	for _, engine := range []string{"Webhook", "Policy"} { // together, the policies' refusal would hide the webhook's
		e.Sections = "protect: {engine: " + engine + "}\n"
		h := e.Start(file.String())
		e.protected(holders[0].client, holdNamespace, "hold-0")
		for round := range holdRounds {
			undo := e.bindAtRandom(random)
			held := 0
			e.Eventually(func(ctx context.Context) error {
				var err error
				held, err = e.agree(ctx, holders)
				return err
			})
			t.Logf("%s, round %d: %d of %d may", engine, round, held, holdRoles*len(holders))
			undo()
		}
		h.Stop()
	}
}

// breakers makes ClusterRoles break-N, which grant the override, or nearly so.
func (e *env) breakers() {
	e.Helper()
	for i, granted := range overriding {
		e.ClusterRole(fmt.Sprintf("break-%d", i), granted)
	}
}

// holders returns users and service accounts that may edit Secrets. Some have the
// name of a group.
func (e *env) holders() []holder {
	e.Helper()
	var all []holder
	for i, groups := range [][]string{nil, {"hold-group-0"}, {"hold-group-0", "hold-group-1"}, {"hold-user-0"}} {
		all = append(all, holder{name: fmt.Sprintf("hold-user-%d", i), groups: groups})
	}
	for _, namespace := range []string{holdNamespace, "hold-other"} {
		all = append(all, holder{
			name:   "system:serviceaccount:" + namespace + ":robot",
			groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace},
		})
	}
	for i := range all {
		e.Grant("", "hold-editor", all[i].name)
		all[i].groups = append(all[i].groups, "system:authenticated")
		all[i].client = e.Client(all[i].name, all[i].groups...)
	}
	return all
}

// bindAtRandom binds the roles, mostly cluster-wide.
func (e *env) bindAtRandom(random *rand.Rand) (undo func()) {
	e.Helper()
	user := func(name string) rbacv1.Subject {
		return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
	}
	group := func(name string) rbacv1.Subject {
		return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name}
	}
	account := func(namespace, name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
	}
	subjects := []rbacv1.Subject{
		user("hold-user-0"), user("hold-user-1"), user("hold-user-2"), user("Hold-User-1"), user("hold-group-0"), user("system:serviceaccounts"),
		user("system:serviceaccount:" + holdNamespace + ":robot"), user("hold-user"), user("nobody"),
		group("hold-group-0"), group("hold-group-1"), group("hold-user-0"), group("hold-user-1"), group("system:serviceaccounts"),
		group("system:serviceaccounts:hold-other"), group("system:serviceaccount:hold-other:robot"),
		account(holdNamespace, "robot"), account("hold-other", "robot"), account("hold-other", "hold-user-0"), account(holdNamespace, "robots"),
	}
	ctx := context.WithoutCancel(e.Context())
	var undone []func() error
	for i := range holdBindings {
		role := fmt.Sprintf("hold-%d", random.IntN(holdRoles))
		if random.IntN(3) == 0 {
			role = fmt.Sprintf("break-%d", random.IntN(len(overriding)))
		}
		var bound []rbacv1.Subject
		for range 1 + random.IntN(3) {
			bound = append(bound, subjects[random.IntN(len(subjects))])
		}
		meta := metav1.ObjectMeta{Name: fmt.Sprintf("hold-binding-%d", i)}
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
		if random.IntN(4) == 0 {
			bindings := e.Admin.RbacV1().RoleBindings(holdNamespace)
			_, err := bindings.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: bound}, metav1.CreateOptions{})
			require.NoError(e, err)
			undone = append(undone, func() error { return bindings.Delete(ctx, meta.Name, metav1.DeleteOptions{}) })
			continue
		}
		bindings := e.Admin.RbacV1().ClusterRoleBindings()
		_, err := bindings.Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: bound}, metav1.CreateOptions{})
		require.NoError(e, err)
		undone = append(undone, func() error { return bindings.Delete(ctx, meta.Name, metav1.DeleteOptions{}) })
	}
	undo = func() {
		for _, f := range undone {
			_ = lab.IgnoreGone(f())
		}
	}
	e.Cleanup(undo)
	return undo
}

// agree compares the engine, and who-can-edit, with the API server about every
// holder and role, and counts who may.
func (e *env) agree(ctx context.Context, holders []holder) (count int, err error) {
	roles, err := e.Admin.RbacV1().ClusterRoles().List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	bindings, err := e.Admin.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	for i := range holdRoles {
		role := fmt.Sprintf("hold-%d", i)
		listed := editors.Of(protectspec.Rule{Base: rules.Base{Name: role}}, protectspec.ServiceAccount{}, roles.Items, bindings.Items)
		for _, h := range holders {
			held, err := e.reviewed(ctx, h, authorizationv1.ResourceAttributes{Group: holdGroup, Resource: "things", Name: role, Verb: "hold"})
			if err != nil {
				return 0, err
			}
			overrides, err := e.reviewed(ctx, h, authorizationv1.ResourceAttributes{
				Group: "headwater.dev", Resource: "protectedobjects", Name: role, Verb: "override",
			})
			if err != nil {
				return 0, err
			}
			if said := slices.ContainsFunc(listed, h.isOverriding); said != overrides {
				return 0, fmt.Errorf("%s overrides %s: %v, and who-can-edit says %v", h.name, role, overrides, said)
			}
			edited := lab.TryEdit(ctx, h.client, holdNamespace, role, "x")
			switch refusal := lab.Refused(edited); {
			case (held || overrides) && edited != nil:
				return 0, fmt.Errorf("%s holds %s, and may not edit: %w", h.name, role, edited)
			case !held && !overrides && refusal != nil:
				return 0, fmt.Errorf("%s does not hold %s, and is not refused: %w", h.name, role, refusal)
			case held || overrides:
				count++
			}
		}
	}
	if count == 0 {
		return 0, errors.New("nobody holds anything: the bindings say nothing")
	}
	return count, nil
}

// reviewed is whether the API server lets h do what asked says.
func (e *env) reviewed(ctx context.Context, h holder, asked authorizationv1.ResourceAttributes) (allowed bool, err error) {
	review, err := e.Admin.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: h.name, Groups: h.groups, ResourceAttributes: &asked},
	}, metav1.CreateOptions{})
	return err == nil && review.Status.Allowed, err
}

// isOverriding is whether editor is h, by a grant of the override.
func (h holder) isOverriding(editor editors.Editor) bool {
	if editor.Grant != editors.GrantOverride {
		return false
	}
	switch editor.Kind {
	case rbacv1.GroupKind:
		return slices.Contains(h.groups, editor.Name)
	case rbacv1.ServiceAccountKind:
		return h.name == "system:serviceaccount:"+editor.Namespace+":"+editor.Name
	default:
		return h.name == editor.Name
	}
}
