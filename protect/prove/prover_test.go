package prove

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/headwater-k8s/headwater/internal/configmap"
	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/loop"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect/internal/protecttest"
	"github.com/headwater-k8s/headwater/protect/spec"
)

func TestWhatIsOnRecordSaysWhenItWasTried(t *testing.T) {
	client, reported := fake.NewClientset(), &protecttest.Events{}
	passing := clocktesting.NewFakeClock(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))
	p := &Prover{
		Prober: fake.NewClientset(protecttest.NewSecret().ToAPI()), Store: configmap.Store{Client: client, Namespace: "headwater", Name: ProofsConfigMap}, Namespace: "headwater", Rules: rules.NewLive(rules.NewSet(protecttest.BlogRule())),
		Engine: func() spec.Engine { return spec.EngineWebhook }, Registered: func() bool { return false }, OnChange: func() {},
		Protected: func(rule spec.Rule) []object.Ref { return []object.Ref{rule.Source.Ref()} },
		Source:    func(object.Ref) (*object.Full, bool) { return nil, false },
		Clock:     passing, Events: reported, Metrics: NewMetrics(prometheus.NewRegistry()), Log: zaptest.NewLogger(t), Wake: loop.NewWake(),
		doubtSince: map[string]time.Time{}, stored: map[string]Status{},
	}
	look := func(after time.Duration) map[string]string {
		passing.Step(after)
		_, err := p.verify(t.Context())
		require.NoError(t, err)
		stored, err := client.CoreV1().ConfigMaps("headwater").Get(t.Context(), ProofsConfigMap, metav1.GetOptions{})
		if err != nil {
			return nil
		}
		return stored.Data
	}
	shown := func() string {
		if standing, known := p.Status("blogsecret"); known {
			return standing.String()
		}
		return ""
	}
	require.Empty(t, look(0), "a moment proves nothing")
	require.Empty(t, shown())
	first := look(Settling)
	require.Contains(t, first, "blogsecret")
	require.Equal(t, "ProtectionNotProven", (*reported)[0].Reason)
	require.Contains(t, (*reported)[0].Note, "allowed a change")
	require.Equal(t, first["blogsecret"], shown(), "who asks gets the same")
	require.Equal(t, "2026-11-22T12:00:05Z", first[LastTried])
	require.Equal(t, first, look(RecordInterval-time.Second), "nothing is written before that is due")
	later := look(time.Second)
	require.Equal(t, "2026-11-22T12:10:05Z", later[LastTried])
	require.Equal(t, first["blogsecret"], later["blogsecret"], "since when it stands so")

	p.Rules.Swap(rules.NewSet(protecttest.BlogRule(func(r *spec.Rule) { r.Mode = spec.Warn })))
	require.Empty(t, look(time.Second), "nothing is refused: nothing is proven")
	require.Empty(t, shown())
}

// reaching is a prover of a registered webhook, whose attempt to reach it ends with
// what answer points to.
func reaching(t *testing.T, answer *error) (*Prover, *clocktesting.FakeClock, *protecttest.Events) {
	t.Helper()
	prober := fake.NewClientset()
	prober.PrependReactor("create", "configmaps", func(action k8stesting.Action) (bool, runtime.Object, error) {
		created, _ := action.(k8stesting.CreateAction).GetObject().(*corev1.ConfigMap)
		if created.Name == spec.ReachName {
			return true, created, *answer
		}
		require.Equal(t, "headwater/"+created.Name, created.Annotations[mark.Target], "a copy of a clone would be allowed")
		return true, nil, apierrors.NewForbidden(corev1.Resource("configmaps"), created.Name, errors.New("ValidatingAdmissionPolicy 'headwater-clones' with binding 'headwater-clones' denied request: no"))
	})
	passing, reported := clocktesting.NewFakeClock(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)), &protecttest.Events{}
	return &Prover{
		Prober: prober, Store: configmap.Store{Client: fake.NewClientset(), Namespace: "headwater", Name: ProofsConfigMap}, Namespace: "headwater", Rules: rules.NewLive(rules.NewSet(protecttest.BlogRule())),
		Engine: func() spec.Engine { return spec.EngineBoth }, Registered: func() bool { return true }, OnChange: func() {},
		Protected: func(spec.Rule) []object.Ref { return nil }, Source: func(object.Ref) (*object.Full, bool) { return nil, false },
		Clock: passing, Events: reported, Metrics: NewMetrics(prometheus.NewRegistry()), Log: zaptest.NewLogger(t), Wake: loop.NewWake(),
		doubtSince: map[string]time.Time{}, stored: map[string]Status{},
	}, passing, reported
}

// Who hears of the proof acts at once: what is old in it must not be taken for new.
func TestWhatBothAttemptsShowIsToldTogether(t *testing.T) {
	answer := error(&apierrors.StatusError{ErrStatus: metav1.Status{
		Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: `admission webhook "reach.protect.headwater.dev" denied the request: no`,
	}})
	p, passing, _ := reaching(t, &answer)
	var told []Proof
	p.OnChange = func() { told = append(told, p.Proof()) }
	try := func() {
		_, err := p.verify(t.Context())
		require.NoError(t, err)
		passing.Step(Settling)
	}
	try()
	p.Prober.(*fake.Clientset).PrependReactor("create", "configmaps", func(action k8stesting.Action) (bool, runtime.Object, error) {
		return true, action.(k8stesting.CreateAction).GetObject(), nil
	})
	try()
	try()
	require.Equal(t, []Proof{
		{Known: true, By: spec.EnginePolicy, Webhook: Denies},
		{Known: true, Allowed: true, Webhook: Silent},
	}, told)
}

func TestWhetherTheWebhookIsReachedIsKnownWhateverThePoliciesRefuse(t *testing.T) {
	refused := error(&apierrors.StatusError{ErrStatus: metav1.Status{
		Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: `admission webhook "reach.protect.headwater.dev" denied the request: no`,
	}})
	lost := errors.New("connection refused")
	type attempt struct {
		after    time.Duration
		answer   error
		want     Answer
		interval time.Duration
	}
	for sentence, attempts := range map[string][]attempt{
		"a refusal counts at once":                     {{0, refused, Denies, proofInterval}},
		"what passes may not have heard of it yet":     {{0, nil, Unknown, doubtInterval}, {Settling, nil, Silent, doubtInterval}},
		"an error says nothing":                        {{0, lost, Unknown, doubtInterval}, {time.Hour, lost, Unknown, proofInterval}},
		"nor is what was seen once true for ever":      {{0, refused, Denies, proofInterval}, {0, lost, Denies, doubtInterval}, {Settling, lost, Unknown, doubtInterval}},
		"it is lost, and is back":                      {{0, refused, Denies, proofInterval}, {0, nil, Denies, doubtInterval}, {longDoubt, nil, Silent, proofInterval}, {0, refused, Denies, proofInterval}},
		"one that passes among others changes nothing": {{0, refused, Denies, proofInterval}, {time.Minute, nil, Denies, doubtInterval}, {time.Second, refused, Denies, proofInterval}},
	} {
		t.Run(sentence, func(t *testing.T) {
			var answer error
			p, passing, reported := reaching(t, &answer)
			told := false
			for _, attempt := range attempts {
				passing.Step(attempt.after)
				answer = attempt.answer
				interval, err := p.verify(t.Context())
				require.NoError(t, err)
				require.Equal(t, Proof{Known: true, By: spec.EnginePolicy, Webhook: attempt.want}, p.Proof())
				require.Equal(t, attempt.interval, interval)
				told = told || attempt.want == Silent && attempt.after >= longDoubt
			}
			require.Equal(t, told, slices.ContainsFunc(*reported, func(e events.Event) bool { return e.Reason == "WebhookSilent" }))
		})
	}
	t.Run("one that is not registered is not asked", func(t *testing.T) {
		var answer error
		p, passing, reported := reaching(t, &answer)
		p.Registered = func() bool { return false }
		for range 2 {
			interval, err := p.verify(t.Context())
			require.NoError(t, err)
			require.Equal(t, Unknown, p.Proof().Webhook)
			require.Equal(t, proofInterval, interval)
			passing.Step(time.Hour)
		}
		require.Empty(t, *reported)
	})
}
