package status

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/headwater-k8s/headwater/internal/rulestatus"
	"github.com/headwater-k8s/headwater/internal/rulestatus/keeper"
	"github.com/headwater-k8s/headwater/test/lab"
)

// byToken returns a client with the token of a new ServiceAccount, which may do what
// role allows and nothing else.
func (e *env) byToken(role, namespace, name string) dynamic.Interface {
	e.Helper()
	accounts := e.Admin.CoreV1().ServiceAccounts(namespace)
	_, err := accounts.Create(e.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(e, err)
	request, err := accounts.CreateToken(e.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(e, err)
	e.Grant("", role, "system:serviceaccount:"+namespace+":"+name)
	config := rest.AnonymousClientConfig(e.Cluster.Config())
	config.BearerToken = request.Status.Token
	client, err := dynamic.NewForConfig(config)
	require.NoError(e, err)
	return client
}

// waitFor waits as kubectl does, with a list and a watch of one object, until kstatus
// says want of it.
func (e *env) waitFor(client dynamic.Interface, rule string, want status.Status) *status.Result {
	e.Helper()
	ctx, cancel := context.WithTimeout(e.Context(), lab.Timeout)
	defer cancel()
	resource := client.Resource(rulestatus.GVR)
	byName := fields.OneTermEqualSelector(metav1.ObjectNameField, rule).String()
	lists := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = byName
			return resource.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = byName
			return resource.Watch(ctx, options)
		},
	}
	var result *status.Result
	_, err := watchtools.UntilWithSync(ctx, lists, &unstructured.Unstructured{}, nil, func(event watch.Event) (done bool, err error) {
		found, isObject := event.Object.(*unstructured.Unstructured)
		if !isObject {
			return false, fmt.Errorf("unexpected event %v", event)
		}
		result, err = status.Compute(found)
		return err == nil && result.Status == want, err
	})
	require.NoError(e, err, "last: %+v", result)
	return result
}

func TestAPipelineThatReadsOnlyRuleStatusesWaitsForARule(t *testing.T) {
	e := newEnv(t)
	e.Namespaces("pipe-src", "pipe-a")
	pipeline := e.byToken("headwater-view", "pipe-src", "pipeline")
	_, err := pipeline.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace("pipe-src").List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), err)

	e.StartAlone(lab.OneRule("pipe"))
	e.waitFor(pipeline, "pipe", status.InProgressStatus)
	e.becomes("pipe", ready("SourceMissing"))
	e.Secret("pipe-src", "shared", map[string]string{"k": "v"})
	e.waitFor(pipeline, "pipe", status.CurrentStatus)
	require.Equal(t, "v", string(e.Get("pipe-a", "shared").Data["k"]))

	e.SetKey("pipe-src", "shared", "k", "v2")
	version := e.Get("pipe-src", "shared").ResourceVersion
	e.becomes("pipe", func(s rulestatus.Status) bool { return s.Sources.First[0].ResourceVersion == version })
	e.waitFor(pipeline, "pipe", status.CurrentStatus)
	require.Equal(t, "v2", string(e.Get("pipe-a", "shared").Data["k"]))

	err = pipeline.Resource(rulestatus.GVR).Delete(t.Context(), "pipe", metav1.DeleteOptions{})
	require.True(t, apierrors.IsForbidden(err), err)
}

func TestAnOperatorSeesThatAConfigurationIsNotValid(t *testing.T) {
	e := newEnv(t)
	e.StageOf("push", map[string]string{"k": "v"})
	operator := e.byToken("headwater-view", "push-src", "operator")
	e.StartAlone(lab.OneRule("push"))
	e.waitFor(operator, "push", status.CurrentStatus)
	before := e.becomes("push", ready("Ready"))

	e.ConfigFile(lab.OneRule("push") + "  nonsense: true\n")
	failed := e.waitFor(operator, "push", status.FailedStatus)
	require.Contains(t, failed.Message, "the last valid one stays in force")
	during := e.becomes("push", ready("Invalid"))
	require.Equal(t, before.Status.ConfigurationRevision, during.Status.ConfigurationRevision)
	require.Equal(t, metav1.ConditionTrue, during.Status.Condition(rulestatus.Synced).Status)

	e.ConfigFile(lab.OneRule("push"))
	e.waitFor(operator, "push", status.CurrentStatus)
}

func TestThreeHundredConflictsAreOneProblem(t *testing.T) {
	const clones = 300
	e := newEnv(t)
	e.Namespace("many-src")
	for i := range clones {
		namespace := e.Namespace(fmt.Sprintf("many-%03d", i))
		e.Secret(namespace, "shared", map[string]string{"another": "owner"})
	}
	e.Secret("many-src", "shared", map[string]string{"k": "v"})
	began, mark := time.Now(), e.Cluster.Mark()
	e.StartAlone(lab.OneRule("many"))
	found := e.becomes("many", ready("Conflict"))
	require.Equal(t, clones, found.Status.Clones.NeedAttention)
	require.Zero(t, found.Status.MoreProblems)
	require.Len(t, found.Status.Problems, 1)
	problem := found.Status.Problems[0]
	require.Equal(t, clones, problem.Clones)
	require.Equal(t, []string{"many-000", "many-001", "many-002", "many-003", "many-004"}, problem.Namespaces)
	e.waitFor(e.Dynamic(), "many", status.FailedStatus)
	require.LessOrEqual(t, len(e.writesSince(mark, "many")), 3+int(time.Since(began)/keeper.Interval))
}
