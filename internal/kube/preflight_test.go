package kube

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// answering is an API server that is asked who may do what.
func answering(answer func(authorizationv1.ResourceAttributes) (bool, error)) (client *fake.Clientset, asked *atomic.Int32) {
	client, asked = fake.NewClientset(), new(atomic.Int32)
	client.PrependReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		asked.Add(1)
		create, _ := action.(clienttesting.CreateAction)
		review, _ := create.GetObject().(*authorizationv1.SelfSubjectAccessReview)
		allowed, err := answer(*review.Spec.ResourceAttributes)
		return true, &authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: allowed}}, err
	})
	return client, asked
}

func TestEveryMissingPermissionIsNamedOnceAndInOrder(t *testing.T) {
	permissions := []Permission{
		{Resource: "secrets", Verbs: []string{"watch", "list", "get"}, For: "read"},
		{Group: "apps", Resource: "deployments", Verbs: []string{"patch"}, For: "restart"},
		{Resource: "configmaps", Name: "own", Namespace: "ns", Verbs: []string{"update"}, For: "write"},
		{Resource: "secrets", Verbs: []string{"get"}, For: "read"},
		{Group: "example.com", Resource: "widgets", Verbs: []string{"patch"}, For: "restart", Optional: true},
	}
	const missing = "missing permissions: bind ClusterRole headwater to me (deploy/rbac.yaml), which grants all of them:"
	tests := map[string]struct {
		lacks []string
		want  string
	}{
		"nothing is missing": {},
		"some are": {
			lacks: []string{"secrets", "configmaps"},
			want:  missing + "\n  configmaps/own in namespace ns: update (to write)\n  secrets cluster-wide: get, list, watch (to read)",
		},
		"one of a group is": {
			lacks: []string{"deployments"},
			want:  missing + "\n  deployments.apps cluster-wide: patch (to restart)",
		},
		"one is that nothing else hangs on": {lacks: []string{"widgets"}},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			client, asked := answering(func(of authorizationv1.ResourceAttributes) (bool, error) {
				return !slices.Contains(test.lacks, of.Resource), nil
			})
			err := CheckPermissions(t.Context(), client, "me", "headwater", permissions)
			require.EqualValues(t, 6, asked.Load())
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorAs(t, err, new(FatalError))
			require.EqualError(t, err, test.want)
		})
	}
}

func TestOnlyWhatFillsCachesMayBeMissing(t *testing.T) {
	for sentence, test := range map[string]struct {
		cached bool
		verbs  []string
		want   bool
	}{
		"the list and watch of a cache":   {true, []string{"list", "watch"}, true},
		"a get as well":                   {true, []string{"get", "list"}, false},
		"a write":                         {true, []string{"update"}, false},
		"the list and watch of something": {false, []string{"list", "watch"}, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			permissions := []Permission{
				{Resource: "pods", Verbs: []string{"list"}, Cached: true},
				{Resource: "secrets", Verbs: test.verbs, Cached: test.cached},
			}
			client, _ := answering(func(authorizationv1.ResourceAttributes) (bool, error) { return false, nil })
			var missing MissingError
			require.ErrorAs(t, CheckPermissions(t.Context(), client, "me", "headwater", permissions), &missing)
			require.Equal(t, test.want, missing.OnlyOfCaches())
		})
	}
}

func TestAPermissionThatCannotBeAskedAboutIsAnErrorThatPasses(t *testing.T) {
	many := []Permission{{Resource: "secrets", Verbs: slices.Repeat([]string{"get"}, 100)}}
	client, asked := answering(func(authorizationv1.ResourceAttributes) (bool, error) { return false, errors.New("too busy") })
	err := CheckPermissions(t.Context(), client, "me", "headwater", many)
	require.EqualError(t, err, "check permissions: too busy")
	require.NotErrorAs(t, err, new(FatalError))
	require.LessOrEqual(t, asked.Load(), int32(maxConcurrentReviews), "it gives up")
}
