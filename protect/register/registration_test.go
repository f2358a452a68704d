package register

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes/fake"
	admissionclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/headwater-k8s/headwater/internal/configmap"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/live"
	"github.com/headwater-k8s/headwater/internal/loop"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/internal/decidetest"
	"github.com/headwater-k8s/headwater/protect/internal/protecttest"
	"github.com/headwater-k8s/headwater/protect/manifests"
	"github.com/headwater-k8s/headwater/protect/prove"
	"github.com/headwater-k8s/headwater/protect/spec"
)

type registrationSetup struct {
	*Registration
	client *fake.Clientset
	ca     atomic.Pointer[[]byte]
	up     atomic.Bool
	// proved is the result of the prover.
	proved   atomic.Pointer[prove.Proof]
	identity *live.Value[string]
	settings *live.Value[spec.Settings]
	events   protecttest.Events
}

// newClient is a fake API server that gives what is created a UID. Reactors cannot be added once it is in use.
func newClient(objects ...runtime.Object) *fake.Clientset {
	client := protecttest.NewClient(objects...)
	client.PrependReactor("create", "*", func(action k8stesting.Action) (bool, runtime.Object, error) {
		if creation, ok := action.(k8stesting.CreateAction); ok {
			if meta, err := apimeta.Accessor(creation.GetObject()); err == nil {
				meta.SetUID(uuid.NewUUID())
			}
		}
		return false, nil, nil
	})
	return client
}

func newTestRegistration(t *testing.T, client *fake.Clientset, set *rules.Set[spec.Rule]) *registrationSetup {
	t.Helper()
	s := &registrationSetup{client: client}
	s.identity, s.settings = live.New(protecttest.HeadwaterUser), live.New(spec.Settings{Engine: spec.EngineWebhook})
	s.proved.Store(&prove.Proof{Known: true, By: spec.EngineWebhook})
	s.Registration = &Registration{
		Client: client, Owner: kube.NewOwner(client), Namespace: "headwater", Versions: Versions{Store: configmap.Store{Client: client, Namespace: "headwater", Name: RegisteredConfigMap}}, Rules: rules.NewLive(set), Settings: s.settings, Endpoint: func([]byte) spec.Endpoint { return protecttest.Endpoint(t) },
		World: func() decide.World {
			return decidetest.NewWorld(func(w *decide.World) { w.Headwater = s.identity.Load() })
		},
		WorldReady: func() bool { return true }, SourcesRead: func() bool { return true },
		Bundle: func() []byte {
			if ca := s.ca.Load(); ca != nil {
				return *ca
			}
			return nil
		},
		Answering: s.up.Load, Proof: func() prove.Proof { return *s.proved.Load() }, OnChange: func() {},
		Clock: clock.RealClock{}, Metrics: NewMetrics(prometheus.NewRegistry()), Events: &s.events,
		Log: zaptest.NewLogger(t), Wake: loop.NewWake(),
	}
	return s
}

func (s *registrationSetup) trust(ca string) {
	bundle := []byte(ca)
	s.ca.Store(&bundle)
	s.Changed()
}

func (s *registrationSetup) live(t *testing.T) *admissionregistrationv1.ValidatingWebhookConfiguration {
	t.Helper()
	config, err := s.configurations().Get(t.Context(), spec.ConfigurationName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(t, err)
	return config
}

func (s *registrationSetup) requireRegistered(t *testing.T, set *rules.Set[spec.Rule]) {
	t.Helper()
	desired := manifests.Configuration(set, protecttest.HeadwaterUser, manifests.FailClosed, s.Endpoint(nil), s.Bundle())
	desired.Webhooks = append(desired.Webhooks, manifests.ReachWebhook(s.Namespace, s.Endpoint(nil), s.Bundle()))
	require.Eventually(t, func() bool {
		live := s.live(t)
		if live == nil {
			return false
		}
		return webhookContent.same(live, desired)
	}, protecttest.Soon, 5*time.Millisecond)
}

func (s *registrationSetup) repairs() float64 {
	return testutil.ToFloat64(s.Metrics.tampered.WithLabelValues(kindWebhooks))
}

func (s *registrationSetup) configurations() admissionclient.ValidatingWebhookConfigurationInterface {
	return s.client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
}

func registered(t *testing.T) *registrationSetup {
	t.Helper()
	s := newTestRegistration(t, newClient(), protecttest.Rules())
	s.up.Store(true)
	s.trust("ca")
	protecttest.Background(t, s.Run)
	s.requireRegistered(t, protecttest.Rules())
	require.Eventually(t, func() bool { // also stored
		_, err := s.client.CoreV1().ConfigMaps("headwater").Get(t.Context(), RegisteredConfigMap, metav1.GetOptions{})
		return err == nil
	}, protecttest.Soon, time.Millisecond)
	return s
}

func TestRegistrationWaitsForServerAndCertificate(t *testing.T) {
	s := newTestRegistration(t, newClient(), protecttest.Rules())
	protecttest.Background(t, s.Run)
	require.Never(t, func() bool { return s.live(t) != nil }, 2*readyInterval, 20*time.Millisecond)
	s.up.Store(true)
	require.Never(t, func() bool { return s.live(t) != nil }, 2*readyInterval, 20*time.Millisecond)
	s.trust("ca")
	s.requireRegistered(t, protecttest.Rules())
	require.Equal(t, []string{"create"}, protecttest.Writes(s.client, "validatingwebhookconfigurations"))
	require.Zero(t, s.repairs())
}

func TestRegistrationWaitsUntilHeadwaterKnowsItsName(t *testing.T) {
	s := newTestRegistration(t, newClient(), protecttest.Rules())
	s.identity = live.New("")
	s.up.Store(true)
	s.trust("ca")
	protecttest.Background(t, s.Run)
	require.Never(t, func() bool { return s.live(t) != nil }, 2*readyInterval, 20*time.Millisecond, "it would lock Headwater out of its clones")
	s.identity.Swap(protecttest.HeadwaterUser)
	s.requireRegistered(t, protecttest.Rules())
}

func TestRegistrationNeverTrustsNobody(t *testing.T) {
	s := newTestRegistration(t, newClient(), protecttest.Rules())
	s.up.Store(true)
	calls := 0
	s.Bundle = func() []byte { // the certificate arrives during a reconcile
		if calls++; calls == 1 {
			return nil
		}
		return []byte("ca")
	}
	protecttest.Background(t, s.Run)
	require.Eventually(t, func() bool { return s.live(t) != nil }, protecttest.Soon, time.Millisecond)
	require.Equal(t, []byte("ca"), s.live(t).Webhooks[0].ClientConfig.CABundle)
	require.Equal(t, []string{"create"}, protecttest.Writes(s.client, "validatingwebhookconfigurations"))
}

func TestRegistrationWritesNothingWhenNothingChanged(t *testing.T) {
	s := registered(t)
	requeueAfter := newTestRegistration(t, s.client, protecttest.Rules())
	requeueAfter.up.Store(true)
	requeueAfter.trust("ca")
	protecttest.Background(t, requeueAfter.Run)
	gets := func() (gets int) {
		for _, action := range s.client.Actions() {
			if action.GetVerb() == "get" && action.GetResource().Resource == "validatingwebhookconfigurations" {
				gets++
			}
		}
		return gets
	}
	before := gets()
	require.Never(t, func() bool {
		requeueAfter.Changed()
		requeueAfter.Rules.Swap(protecttest.Rules())
		return len(protecttest.Writes(s.client, "validatingwebhookconfigurations")) > 1 || gets() > before
	}, 200*time.Millisecond, 10*time.Millisecond, "invariants 2 and 13")
	require.Zero(t, s.repairs()+requeueAfter.repairs())
}

func TestRegistrationFollowsRulesAndCA(t *testing.T) {
	s := registered(t)
	more := rules.NewSet(protecttest.BlogRule(), protecttest.NewRule("ca", object.ConfigMap, "certs", "ca-bundle"))
	s.Rules.Swap(more)
	s.requireRegistered(t, more)
	s.trust("new ca")
	s.requireRegistered(t, more)
	require.Equal(t, []byte("new ca"), s.live(t).Webhooks[1].ClientConfig.CABundle)
	require.Equal(t, []string{"create", "update", "update"}, protecttest.Writes(s.client, "validatingwebhookconfigurations"))
	require.Zero(t, s.repairs(), "a change of ours is no repair")
}

func TestRegistrationIsDeletedWithTheLastRule(t *testing.T) {
	s := registered(t)
	s.Rules.Swap(rules.NewSet[spec.Rule]())
	require.Eventually(t, func() bool { return s.live(t) == nil }, protecttest.Soon, 5*time.Millisecond)
	s.Rules.Swap(protecttest.Rules())
	s.requireRegistered(t, protecttest.Rules())
	require.Zero(t, s.repairs())
}

func TestRegistrationIsRepaired(t *testing.T) {
	for name, tamper := range map[string]func(t *testing.T, s *registrationSetup){
		"when it is deleted": func(t *testing.T, s *registrationSetup) {
			require.NoError(t, s.configurations().Delete(t.Context(), spec.ConfigurationName, metav1.DeleteOptions{}))
		},
		"when its failure policy is weakened": func(t *testing.T, s *registrationSetup) {
			live := s.live(t)
			ignore := admissionregistrationv1.Ignore
			live.Webhooks[0].FailurePolicy, live.ResourceVersion = &ignore, "77"
			_, err := s.configurations().Update(t.Context(), live, metav1.UpdateOptions{})
			require.NoError(t, err)
		},
		"when a webhook is taken out": func(t *testing.T, s *registrationSetup) {
			live := s.live(t)
			live.Webhooks, live.ResourceVersion = live.Webhooks[1:], "77"
			_, err := s.configurations().Update(t.Context(), live, metav1.UpdateOptions{})
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := registered(t)
			tamper(t, s)
			s.requireRegistered(t, protecttest.Rules())
			require.Eventually(t, func() bool { return s.repairs() == 1 }, protecttest.Soon, time.Millisecond)
		})
	}
}

func TestRegistrationLeavesWhatOthersWroteOnIt(t *testing.T) {
	theirs := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{
		Name: spec.ConfigurationName, ResourceVersion: "1",
		Labels: map[string]string{"team": "platform"}, Annotations: map[string]string{"note": "x"},
	}}
	s := newTestRegistration(t, newClient(theirs), protecttest.Rules())
	s.up.Store(true)
	s.trust("ca")
	protecttest.Background(t, s.Run)
	s.requireRegistered(t, protecttest.Rules())
	live := s.live(t)
	require.Equal(t, "platform", live.Labels["team"])
	require.Equal(t, "x", live.Annotations["note"])
	require.Equal(t, []string{"update"}, protecttest.Writes(s.client, "validatingwebhookconfigurations"))
}

func TestRegistrationWithoutRules(t *testing.T) {
	t.Run("removes what an earlier run left", func(t *testing.T) {
		left := manifests.Configuration(protecttest.Rules(), protecttest.HeadwaterUser, manifests.FailClosed, protecttest.Endpoint(t), []byte("ca"))
		left.UID = "uid-of-left"
		s := newTestRegistration(t, newClient(left), rules.NewSet[spec.Rule]())
		protecttest.Background(t, s.Run)
		require.Eventually(t, func() bool { return s.live(t) == nil }, protecttest.Soon, 5*time.Millisecond)
		for _, action := range s.client.Actions() {
			if deletion, ok := action.(k8stesting.DeleteAction); ok {
				require.EqualValues(t, "uid-of-left", *deletion.GetDeleteOptions().Preconditions.UID)
			}
		}
	})
	t.Run("while the last rule is registered", func(t *testing.T) {
		s := newTestRegistration(t, newClient(), protecttest.Rules())
		s.Endpoint = func([]byte) spec.Endpoint {
			s.Rules.Swap(rules.NewSet[spec.Rule]())
			return protecttest.Endpoint(t)
		}
		s.up.Store(true)
		s.trust("ca")
		protecttest.Background(t, s.Run)
		deletes := func(action k8stesting.Action) bool {
			return action.Matches("delete", "validatingwebhookconfigurations")
		}
		require.Eventually(t, func() bool {
			s.Changed()
			return slices.ContainsFunc(s.client.Actions(), deletes) && s.live(t) == nil
		}, protecttest.Soon, 5*time.Millisecond)
	})
	t.Run("needs no permission", func(t *testing.T) {
		client := newClient()
		client.PrependReactor("*", "validatingwebhookconfigurations", func(k8stesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "validatingwebhookconfigurations"}, "headwater", nil)
		})
		s := newTestRegistration(t, client, rules.NewSet[spec.Rule]())
		require.NoError(t, s.newReconcilers())
		_, err := s.reconcile(t.Context())
		require.NoError(t, err)
	})
}

func TestANamespaceWithoutASourceIsGuardedOnlyUntilThatIsKnown(t *testing.T) {
	s := newTestRegistration(t, newClient(), protecttest.Rules())
	s.settings.Swap(spec.Settings{Engine: spec.EnginePolicy})
	var read atomic.Bool
	s.SourcesRead = read.Load
	s.World = func() decide.World {
		return decidetest.NewWorld(func(w *decide.World) { w.HasSource = func(spec.Rule) bool { return !read.Load() } })
	}
	protecttest.Background(t, s.Run)
	guarded := func() bool {
		_, err := s.client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(t.Context(), "headwater-namespaces", metav1.GetOptions{})
		return err == nil
	}
	require.Eventually(t, guarded, protecttest.Soon, time.Millisecond)
	require.Never(t, func() bool { return !guarded() }, 3*readyInterval, 20*time.Millisecond)
	read.Store(true) // no event reports this
	require.Eventually(t, func() bool { return !guarded() }, protecttest.Soon, time.Millisecond)
}

// refusing makes the API server deny these writes until the test ends that.
func refusing(client *fake.Clientset, verb, resource, name string) (allow func()) {
	var allowed atomic.Bool
	client.PrependReactor(verb, resource, func(action k8stesting.Action) (bool, runtime.Object, error) {
		named, ok := action.(interface{ GetName() string })
		if creation, creates := action.(k8stesting.CreateAction); creates {
			named, ok = creation.GetObject().(metav1.Object)
		}
		if allowed.Load() || !ok || named.GetName() != name {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), name, nil)
	})
	return func() { allowed.Store(true) }
}

func TestWhatOnlyBearsOurLabelIsLeftAlone(t *testing.T) {
	stranger := metav1.ObjectMeta{Name: "somebodys", Labels: mark.ManagedLabels()}
	client := newClient(
		&admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: stranger},
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: stranger},
	)
	s := newTestRegistration(t, client, protecttest.Rules())
	s.settings.Swap(spec.Settings{Engine: spec.EnginePolicy})
	protecttest.Background(t, s.Run)
	bindings := func() (names []string) {
		list, err := client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, binding := range list.Items {
			names = append(names, binding.Name)
		}
		return names
	}
	require.Eventually(t, func() bool { return slices.Contains(bindings(), "headwater-sources") }, protecttest.Soon, time.Millisecond)
	s.Rules.Swap(rules.NewSet[spec.Rule]())
	require.Eventually(t, func() bool { return slices.Equal(bindings(), []string{"somebodys"}) }, protecttest.Soon, time.Millisecond)
	next := newTestRegistration(t, client, rules.NewSet[spec.Rule]()) // it deletes leftovers of an earlier run
	require.NoError(t, next.newReconcilers())
	_, err := next.reconcile(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"somebodys"}, bindings())
}

func TestAPolicyThatCannotBeWrittenKeepsNoBindingFromIt(t *testing.T) {
	client := newClient()
	refusing(client, "create", "validatingadmissionpolicies", "headwater-clones")
	s := newTestRegistration(t, client, protecttest.Rules())
	s.settings.Swap(spec.Settings{Engine: spec.EnginePolicy})
	protecttest.Background(t, s.Run)
	require.Eventually(t, func() bool {
		_, err := client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Get(t.Context(), "headwater-sources", metav1.GetOptions{})
		return err == nil
	}, protecttest.Soon, time.Millisecond)
}

func TestTheWebhookStandsInForPoliciesThatCannotBeKept(t *testing.T) {
	client := newClient()
	s := newTestRegistration(t, client, protecttest.Rules())
	allow := refusing(client, "create", "validatingadmissionpolicybindings", "headwater-sources")
	var looks atomic.Int32
	s.OnChange = func() { looks.Add(1) }
	s.settings.Swap(spec.Settings{Engine: spec.EngineBoth})
	s.proved.Store(&prove.Proof{Known: true, By: spec.EnginePolicy})
	s.up.Store(true)
	s.webhookVerified = true
	s.trust("ca")
	protecttest.Background(t, s.Run)
	failure := func() (policy admissionregistrationv1.FailurePolicyType) {
		if live := s.live(t); live != nil {
			policy = *live.Webhooks[0].FailurePolicy
		}
		return policy
	}
	require.Eventually(t, func() bool { return failure() == admissionregistrationv1.Fail }, protecttest.Soon, time.Millisecond)
	before := looks.Load()
	s.Changed()
	require.Eventually(t, func() bool { return looks.Load() > before }, protecttest.Soon, time.Millisecond, "the prover is to look at once")
	allow()
	s.Changed()
	require.Eventually(t, func() bool { return failure() == admissionregistrationv1.Ignore }, protecttest.Soon, time.Millisecond)
}
