package protect

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/rest"
	k8stesting "k8s.io/client-go/testing"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/protect/decide"
)

func TestHolders(t *testing.T) {
	bob := decide.User{Name: "bob", Groups: []string{"dev", "ops"}}
	deployer := decide.User{Name: "system:serviceaccount:ci:deployer", Groups: []string{"system:serviceaccounts"}}
	for name, tc := range map[string]struct {
		user    decide.User
		subject rbacv1.Subject
		want    bool
	}{
		"a user":                                 {bob, rbacv1.Subject{Kind: "User", Name: "bob"}, true},
		"another user":                           {bob, rbacv1.Subject{Kind: "User", Name: "Bob"}, false},
		"a group":                                {bob, rbacv1.Subject{Kind: "Group", Name: "ops"}, true},
		"another group":                          {bob, rbacv1.Subject{Kind: "Group", Name: "op"}, false},
		"a group named as the user":              {bob, rbacv1.Subject{Kind: "Group", Name: "bob"}, false},
		"a user named as a group":                {bob, rbacv1.Subject{Kind: "User", Name: "ops"}, false},
		"a service account":                      {deployer, rbacv1.Subject{Kind: "ServiceAccount", Namespace: "ci", Name: "deployer"}, true},
		"a service account of another namespace": {deployer, rbacv1.Subject{Kind: "ServiceAccount", Namespace: "cd", Name: "deployer"}, false},
		"a service account without namespace":    {deployer, rbacv1.Subject{Kind: "ServiceAccount", Name: "deployer"}, false},
		"a service account given as user":        {deployer, rbacv1.Subject{Kind: "User", Name: deployer.Name}, true},
		"a group of service accounts":            {deployer, rbacv1.Subject{Kind: "Group", Name: "system:serviceaccounts"}, true},
		"an unknown kind":                        {bob, rbacv1.Subject{Kind: "Robot", Name: "bob"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			holds := slices.ContainsFunc(decide.PrincipalsOf([]rbacv1.Subject{tc.subject}), func(holder string) bool {
				return slices.Contains(slices.Collect(decide.Principals(tc.user)), holder)
			})
			require.Equal(t, tc.want, holds)
		})
	}
}

func newFakeClients(t *testing.T, client *fake.Clientset) *kube.Clients {
	t.Helper()
	scheme := metadatafake.NewTestScheme()
	require.NoError(t, metav1.AddMetaToScheme(scheme))
	return &kube.Clients{Typed: client, Owner: kube.NewOwner(client), Metadata: metadatafake.NewSimpleMetadataClient(scheme), Config: &rest.Config{Host: "https://127.0.0.1:1"}}
}

func newCaches(t *testing.T, clients *kube.Clients) *informers.Caches {
	t.Helper()
	key := digestkey.New(clients.Typed, "headwater")
	require.NoError(t, key.Load(t.Context()))
	caches, err := informers.NewCaches(clients, key, zaptest.NewLogger(t))
	require.NoError(t, err)
	return caches
}

func binding(name, role string, users ...string) *rbacv1.ClusterRoleBinding {
	b := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
	for _, user := range users {
		b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: rbacv1.UserKind, Name: user})
	}
	return b
}

func TestAccessCountsClusterRoleBindingsOnly(t *testing.T) {
	client := fake.NewClientset(
		binding("one", "editor", "a"), binding("two", "editor", "b", "c"), binding("three", "viewer", "d"),
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "self"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "editor"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: alice}},
		},
	)
	clients := newFakeClients(t, client)
	caches := newCaches(t, clients)
	needed := false
	access, err := watchBindings(clients, caches, func() bool { return needed }, zaptest.NewLogger(t))
	require.NoError(t, err)
	require.NotContains(t, caches.Pending(), "cluster role bindings")
	needed = true
	require.Contains(t, caches.Pending(), "cluster role bindings")

	go access.bindings.Run(t.Context())
	require.Eventually(t, access.hasSynced, time.Minute, 5*time.Millisecond)
	names := func(role string) (names []string) {
		for _, name := range []string{"a", "b", "c", "d", alice} {
			if access.isBound(decide.User{Name: name}, role) {
				names = append(names, name)
			}
		}
		return names
	}
	require.ElementsMatch(t, []string{"a", "b", "c"}, names("editor"), "and not alice, who bound the role to herself in a namespace")
	require.Equal(t, []string{"d"}, names("viewer"))
	require.Empty(t, names("absent"))

	require.Eventually(t, func() bool { // a fake client tells of nothing from before the watch
		return slices.ContainsFunc(client.Actions(), func(a k8stesting.Action) bool { return a.Matches("watch", "clusterrolebindings") })
	}, time.Minute, 5*time.Millisecond)
	require.NoError(t, client.RbacV1().ClusterRoleBindings().Delete(t.Context(), "two", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool { return len(names("editor")) == 1 }, time.Minute, 5*time.Millisecond)
}
