package protect

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/headwater-k8s/headwater/internal/inspect"
	"github.com/headwater-k8s/headwater/protect/editors"
	"github.com/headwater-k8s/headwater/test/lab"
)

func TestWhoCanEditListsEverybodyWithTheirGrant(t *testing.T) {
	e := newEnv(t)
	user := e.Viewer("whocan-viewer")
	e.Namespace("whocan-src")
	e.ClusterRole("whocan-owner", lab.SecretsEditor())
	e.ClusterRole("whocan-all", rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}})
	override := func(rule string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{"headwater.dev"}, Resources: []string{"protectedobjects"}, Verbs: []string{"override"}, ResourceNames: []string{rule}}
	}
	e.ClusterRole("whocan-this", override("whocan"))
	e.ClusterRole("whocan-other", override("other"))
	for _, role := range []string{"whocan-owner", "whocan-all", "whocan-this", "whocan-other"} {
		e.Grant("", role, "user-of-"+role)
	}
	e.Grant("whocan-src", "whocan-owner", "whocan-local")
	file := e.ConfigFile(`
- name: whocan
  source: {kind: Secret, namespace: whocan-src, name: shared}
  protect: {operations: [Update], allow: {clusterRoles: [whocan-owner, whocan-ownr], groups: [whocan-ops]}}
- name: whocan-synced
  source: {kind: Secret, namespace: whocan-src, name: other}
  sync: {}
`)
	out, problem, exit := e.Command(user, "who-can-edit", "whocan", "--config", file)
	require.Zero(t, exit, problem)
	for _, line := range []string{
		`SUBJECT +THROUGH`,
		`Group whocan-ops +listed in the rule`,
		`User user-of-whocan-owner +ClusterRole whocan-owner of the rule, through ClusterRoleBinding user-of-whocan-owner-whocan-owner`,
		`User user-of-whocan-all +verb override in ClusterRole whocan-all, through`,
		`User user-of-whocan-this +verb override in ClusterRole whocan-this, through`,
		`Group system:masters +verb override in ClusterRole cluster-admin, through ClusterRoleBinding cluster-admin`,
		`ServiceAccount headwater-system/headwater +is Headwater itself`,
		`note: the rule does not protect the operation Delete`,
		`note: the rule allows ClusterRole whocan-ownr, which does not exist`,
	} {
		require.Regexp(t, line, out)
	}
	require.NotContains(t, out, "whocan-other", "the override of another rule")
	require.NotContains(t, out, "whocan-local", "a RoleBinding")
	require.NotContains(t, out, "ClusterRole whocan-owner, which")

	var listed inspect.Editors
	e.Answers(user, &listed, "who-can-edit", "whocan", "--config", file)
	require.Equal(t, "Secret/whocan-src/shared", listed.Source)
	require.True(t, slices.ContainsFunc(listed.Editors, func(found inspect.Editor) bool {
		return found == inspect.Editor{Editor: editors.Editor{Kind: "Group", Name: "whocan-ops", Grant: editors.GrantAllow}, How: "listed in the rule"}
	}))
	out, _, exit = e.Command(user, "who-can-edit", "whocan", "--config", file, "-o", "yaml")
	require.Zero(t, exit)
	require.Contains(t, out, "rule: whocan")

	_, problem, exit = e.Command(user, "who-can-edit", "whocan-synced", "--config", file)
	require.Equal(t, 1, exit)
	require.Contains(t, problem, `no rule "whocan-synced" protects anything; those that do: whocan`)
	_, problem, exit = e.Command("whocan-nobody", "who-can-edit", "whocan", "--config", file)
	require.Equal(t, 1, exit)
	require.Contains(t, problem, "clusterroles.rbac.authorization.k8s.io cluster-wide: list")
}
