package sync

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/rest"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync/internal/plantest"
	"github.com/headwater-k8s/headwater/sync/internal/synctest"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

func testController(t *testing.T, set ...spec.Rule) (*controller, *fake.Clientset) {
	t.Helper()
	client := fake.NewClientset()
	scheme := metadatafake.NewTestScheme()
	require.NoError(t, metav1.AddMetaToScheme(scheme))
	clients := &kube.Clients{Typed: client, Metadata: metadatafake.NewSimpleMetadataClient(scheme)}
	key := digestkey.New(client, "headwater-system")
	caches, err := informers.NewCaches(clients, key, zap.NewNop())
	require.NoError(t, err)
	recorded, err := revisions.NewView(clients, caches, key, "headwater-system", zap.NewNop())
	require.NoError(t, err)
	observer, err := survey.NewReader(rules.NewLive(rules.NewSet(set...)), clients, caches, recorded, "headwater-system", zap.NewNop())
	require.NoError(t, err)
	return &controller{
		Reader: observer, writer: kube.NewWriter(clients), metrics: newMetrics(prometheus.NewRegistry()), log: zap.NewNop(),
	}, client
}

// Invariant 5: what is absent from a cache that was not read yet is not gone.
func TestNothingIsDecidedBeforeTheSourceNamespaceWasRead(t *testing.T) {
	rule := synctest.Rule(t, func(c *spec.Config) { c.OnSourceDeleted = spec.Delete })
	c, client := testController(t, *rule)
	_, err := c.Candidates(c.Live.Load(), rule.TargetRef(rule.Source.Ref(), "team-a"), &plan.Namespace{Name: "team-a"})
	require.ErrorIs(t, err, survey.ErrUnread)
	require.Empty(t, client.Actions(), "no request, least of all a delete")
}

func TestARuleWantsThePlacesOfItsTargetsName(t *testing.T) {
	renamed := synctest.Rule(t, func(c *spec.Config) { c.Target.Name = "blog" })
	for sentence, test := range map[string]struct {
		target object.Ref
		want   bool
	}{
		"the target's name": {object.Ref{Kind: object.Secret, Namespace: "team-a", Name: "blog"}, true},
		"the source's name": {object.Ref{Kind: object.Secret, Namespace: "team-a", Name: "blogsecret"}, false},
		"another kind":      {object.Ref{Kind: object.ConfigMap, Namespace: "team-a", Name: "blog"}, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			c, _ := testController(t, *renamed)
			require.Equal(t, test.want, c.Wants(renamed, test.target))
		})
	}
}

func TestALookAtAPlaceTakesNoMemoryForRulesThatDoNotClaimIt(t *testing.T) {
	set := make([]spec.Rule, 50)
	for i := range set {
		set[i] = *synctest.Rule(t, nil)
		set[i].Name = fmt.Sprint("rule-", i)
	}
	c, _ := testController(t, set...)
	place := object.Ref{Kind: object.Secret, Namespace: "team-a", Name: "of-no-rule"}
	namespace := &plan.Namespace{Name: "team-a"}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_, err := c.Candidates(c.Live.Load(), place, namespace)
		require.NoError(t, err)
	}))
}

func TestACloneIsNotDeletedBeforeWhatComesAfterItIsKnownToBeStored(t *testing.T) {
	dryRun := "POST /api/v1/namespaces/team-a/secrets?dryRun=All&fieldManager=headwater"
	recreated := []string{
		dryRun, dryRun,
		"DELETE /api/v1/namespaces/team-a/secrets/blogsecret",
		"POST /api/v1/namespaces/team-a/secrets?fieldManager=headwater",
	}
	for sentence, test := range map[string]struct {
		named, generated string // the refusal of a dry run with that name
		want             []string
	}{
		"it would be refused":                {named: `"reason":"Invalid","code":422`, want: []string{dryRun}},
		"it would be stored":                 {want: recreated},
		"it would be stored once it is gone": {named: `"reason":"AlreadyExists","code":409`, want: recreated},
		"only another name would be refused": {named: `"reason":"AlreadyExists","code":409`, generated: `"reason":"Forbidden","code":403`, want: recreated},
		"a webhook says that it exists":      {named: `"reason":"AlreadyExists","code":409,"message":"admission webhook \"w\" denied the request"`, want: []string{dryRun}},
		"nobody knows what it would be":      {named: `"reason":"AlreadyExists","code":409`, generated: `"reason":"Timeout","code":504`, want: []string{dryRun, dryRun}},
	} {
		t.Run(sentence, func(t *testing.T) {
			var asked []string
			var sent []byte
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, r.Method+" "+r.URL.RequestURI())
				w.Header().Set("Content-Type", "application/json")
				sent, _ = io.ReadAll(r.Body)
				refusal := test.named
				if bytes.Contains(sent, []byte("blogsecret-")) {
					refusal = test.generated
				}
				if refusal != "" && r.URL.Query().Has("dryRun") {
					code, _ := strconv.Atoi(regexp.MustCompile(`"code":(\d+)`).FindStringSubmatch(refusal)[1])
					w.WriteHeader(code)
					_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure",` + refusal + `}`))
					return
				}
				_, _ = w.Write(sent) // stored as sent
			}))
			defer server.Close()
			client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
			require.NoError(t, err)

			state := plantest.StateOf(synctest.Rule(t, nil), synctest.Source(t, map[string]string{"k": "v"}), &plan.Namespace{Name: "team-a"})
			plantest.InSync(t, &state)
			state.Candidates[0].Source.Content.Type = "kubernetes.io/tls"
			decision := plan.Plan(state)
			require.Equal(t, plan.Recreate, decision.Action)
			key, err := digestkey.NewEphemeral()
			require.NoError(t, err)
			c := &controller{writer: kube.NewWriter(&kube.Clients{Typed: client}), key: key}
			_, err = c.apply(t.Context(), state, decision)
			stored := len(test.want) == len(recreated)
			require.Equal(t, stored, err == nil)
			require.Equal(t, test.want, asked)
			if stored {
				require.Contains(t, string(sent), mark.Target, "what comes after it names its place")
			}
		})
	}
}

func TestAnOwnPolicyMayRefuseForAWhileOnly(t *testing.T) {
	refused := func(by string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "shared",
			errors.New("ValidatingAdmissionPolicy '"+by+"' with binding '"+by+"' denied request: no"))
	}
	began := time.Unix(1000, 0)
	for sentence, test := range map[string]struct {
		err   error
		after time.Duration
		want  bool
	}{
		"ours, at the start":              {refused("headwater-clones"), time.Second, true},
		"ours, for too long":              {refused("headwater-clones"), policiesSettle, false},
		"one whose name begins like ours": {refused("headwater-clones-too"), time.Second, false},
		"none":                            {errors.New("connection refused"), time.Second, false},
		"no error":                        {nil, time.Second, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := &controller{policies: []string{"headwater-clones"}, startedAt: began, now: func() time.Time { return began.Add(test.after) }}
			require.Equal(t, test.want, c.policyIsBehind(test.err))
		})
	}
}
