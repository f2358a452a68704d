package register

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect/internal/decidetest"
	"github.com/headwater-k8s/headwater/protect/internal/protecttest"
	"github.com/headwater-k8s/headwater/protect/manifests"
	"github.com/headwater-k8s/headwater/protect/prove"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// aWhile is how long nothing may happen that must not.
const aWhile = 100 * time.Millisecond

func (s *registrationSetup) hasPolicies(t *testing.T) bool {
	t.Helper()
	list, err := s.client.AdmissionregistrationV1().ValidatingAdmissionPolicies().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	return slices.ContainsFunc(list.Items, func(p admissionregistrationv1.ValidatingAdmissionPolicy) bool { return p.Name == "headwater-sources" })
}

func (s *registrationSetup) failurePolicy(t *testing.T) (policy admissionregistrationv1.FailurePolicyType) {
	t.Helper()
	if live := s.live(t); live != nil {
		policy = *live.Webhooks[0].FailurePolicy
	}
	return policy
}

func (s *registrationSetup) use(engine spec.Engine) {
	s.settings.Swap(spec.Settings{Engine: engine})
	s.Changed()
}

func (s *registrationSetup) prove(proof prove.Proof) {
	s.proved.Store(&proof)
	s.Changed()
}

func (s *registrationSetup) stays(t *testing.T, isThere func(*testing.T) bool, why string) {
	t.Helper()
	require.Never(t, func() bool { return !isThere(t) }, aWhile, 5*time.Millisecond, why)
}

func (s *registrationSetup) comes(t *testing.T, isThere func(*testing.T) bool) {
	t.Helper()
	require.Eventually(t, func() bool { return isThere(t) }, protecttest.Soon, time.Millisecond)
}

func (s *registrationSetup) hasWebhook(t *testing.T) bool { return s.live(t) != nil }

func (s *registrationSetup) failsClosed(t *testing.T) bool {
	return s.failurePolicy(t) == admissionregistrationv1.Fail
}

// withWebhook is a registration after the engine was changed from Webhook to Policy, with
// a clock that stands still.
func withWebhook(t *testing.T, client *fake.Clientset) (*registrationSetup, *clocktesting.FakeClock) {
	t.Helper()
	s := newTestRegistration(t, client, protecttest.Rules())
	passing := clocktesting.NewFakeClock(time.Now())
	s.Clock = passing
	s.up.Store(true)
	s.trust("ca")
	protecttest.Background(t, s.Run)
	s.requireRegistered(t, protecttest.Rules())
	s.use(spec.EnginePolicy)
	s.comes(t, func(*testing.T) bool { return s.InForce() == spec.EngineBoth })
	return s, passing
}

func (s *registrationSetup) isGone(t *testing.T, passing *clocktesting.FakeClock) {
	t.Helper()
	require.Eventually(t, func() bool {
		passing.Step(prove.Settling / 2) // nothing but the time wakes it
		return !s.hasWebhook(t)
	}, protecttest.Soon, 5*time.Millisecond)
}

func TestTheWebhookStaysUntilAPolicyWasSeenToRefuse(t *testing.T) {
	for sentence, proof := range map[string]prove.Proof{
		"nothing is known yet":      {},
		"the webhook refused first": {Known: true, By: spec.EngineWebhook, Webhook: prove.Denies},
		"nothing refused":           {Known: true, Allowed: true},
		"nobody knows":              {Known: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			s, passing := withWebhook(t, newClient())
			s.comes(t, s.hasPolicies)
			s.prove(proof)
			passing.Step(time.Hour)
			s.stays(t, s.hasWebhook, "it is the only guard that is known to be there")
			s.trust("renewed")
			s.comes(t, func(t *testing.T) bool { return string(s.live(t).Webhooks[0].ClientConfig.CABundle) == "renewed" })
			s.prove(prove.Proof{Known: true, By: spec.EnginePolicy})
			s.stays(t, s.hasWebhook, "not every API server has heard of the policies")
			s.isGone(t, passing)
			require.Equal(t, spec.EnginePolicy, s.InForce())
		})
	}
	t.Run("and all policies are as they should be", func(t *testing.T) {
		client := newClient()
		allow := refusing(client, "create", "validatingadmissionpolicybindings", "headwater-sources")
		s, passing := withWebhook(t, client)
		s.prove(prove.Proof{Known: true, By: spec.EnginePolicy})
		passing.Step(time.Hour)
		s.stays(t, s.hasWebhook, "one policy that refuses says nothing of another that cannot be written")
		allow()
		s.isGone(t, passing)
	})
	t.Run("for as long again if somebody deletes one", func(t *testing.T) {
		s, passing := withWebhook(t, newClient())
		s.comes(t, s.hasPolicies)
		s.prove(prove.Proof{Known: true, By: spec.EnginePolicy})
		s.stays(t, s.hasWebhook, "not every API server has heard of the policies")
		passing.Step(prove.Settling - time.Second)
		require.NoError(t, s.client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Delete(t.Context(), "headwater-sources", metav1.DeleteOptions{}))
		s.comes(t, s.hasPolicies)
		passing.Step(2 * time.Second)
		s.stays(t, s.hasWebhook, "not every API server has heard of the one that was restored")
		s.isGone(t, passing)
	})
	t.Run("except where no rule refuses anything", func(t *testing.T) {
		s, _ := withWebhook(t, newClient())
		s.Rules.Swap(rules.NewSet(protecttest.BlogRule(func(r *spec.Rule) { r.Mode = spec.Warn })))
		require.Eventually(t, func() bool { return !s.hasWebhook(t) }, protecttest.Soon, time.Millisecond)
	})
}

func TestWhatAnEarlierLeaderRegisteredStaysUntilAPolicyWasSeenToRefuse(t *testing.T) {
	left := manifests.Configuration(protecttest.Rules(), protecttest.HeadwaterUser, manifests.FailClosed, protecttest.Endpoint(t), []byte("ca"))
	left.UID = "uid-of-left"
	self := manifests.SelfPolicy(decidetest.NewWorld())
	self.Definition.UID, self.Binding.UID = "uid-of-policy", "uid-of-binding"
	client := newClient(left, self.Definition, self.Binding)
	guarded := func(t *testing.T) bool {
		t.Helper()
		_, err := client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(t.Context(), self.Definition.Name, metav1.GetOptions{})
		_, unbound := client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Get(t.Context(), self.Binding.Name, metav1.GetOptions{})
		return err == nil && unbound == nil
	}
	s := newTestRegistration(t, client, protecttest.Rules())
	passing := clocktesting.NewFakeClock(time.Now())
	s.Clock = passing
	s.prove(prove.Proof{})
	s.use(spec.EnginePolicy)
	protecttest.Background(t, s.Run)
	s.comes(t, s.hasPolicies)
	passing.Step(time.Hour)
	s.stays(t, s.hasWebhook, "no policy was seen to refuse")
	s.stays(t, guarded, "nothing else guards the configuration of the webhook")
	s.prove(prove.Proof{Known: true, By: spec.EnginePolicy})
	s.isGone(t, passing)
	s.comes(t, func(t *testing.T) bool { return !guarded(t) })
}

// withPolicies is a registration after the engine was changed from Policy to Webhook,
// with a clock that stands still.
func withPolicies(t *testing.T) (*registrationSetup, *clocktesting.FakeClock) {
	t.Helper()
	s := newTestRegistration(t, newClient(), protecttest.Rules())
	passing := clocktesting.NewFakeClock(time.Now())
	s.Clock = passing
	s.prove(prove.Proof{Known: true, By: spec.EnginePolicy})
	s.use(spec.EnginePolicy)
	protecttest.Background(t, s.Run)
	s.comes(t, s.hasPolicies)
	s.use(spec.EngineWebhook)
	return s, passing
}

func TestPoliciesStayUntilTheWebhookWasSeenToRefuse(t *testing.T) {
	s, passing := withPolicies(t)
	pass := func(time time.Duration) {
		passing.Step(time)
		s.Changed()
	}
	s.stays(t, s.hasPolicies, "the webhook does not listen yet")
	s.up.Store(true)
	s.trust("ca")
	s.comes(t, s.hasWebhook)
	pass(time.Hour)
	s.stays(t, s.hasPolicies, "that it is registered says nothing about who reaches it")
	s.prove(prove.Proof{Known: true, By: spec.EnginePolicy, Webhook: prove.Silent})
	pass(time.Hour)
	s.stays(t, s.hasPolicies, "nobody reaches it")
	require.Equal(t, spec.EngineBoth, s.InForce())

	s.prove(prove.Proof{Known: true, By: spec.EnginePolicy, Webhook: prove.Denies})
	s.comes(t, s.failsClosed)
	s.stays(t, s.hasPolicies, "not every API server has heard of it")
	s.prove(prove.Proof{Known: true, By: spec.EnginePolicy, Webhook: prove.Silent})
	pass(time.Hour)
	s.stays(t, s.hasPolicies, "it was reached, and is not any more")
	s.prove(prove.Proof{Known: true, By: spec.EnginePolicy, Webhook: prove.Denies})
	require.Eventually(t, func() bool { return !s.hasPolicies(t) }, protecttest.Soon, time.Millisecond)
	require.Eventually(t, func() bool { return s.InForce() == spec.EngineWebhook }, protecttest.Soon, time.Millisecond)
}

func TestTheWebhookTakesOverWhenTheTimeHasPassed(t *testing.T) {
	s, passing := withPolicies(t)
	s.up.Store(true)
	s.prove(prove.Proof{Known: true, By: spec.EnginePolicy, Webhook: prove.Denies})
	s.trust("ca")
	s.comes(t, s.failsClosed)
	require.Eventually(t, func() bool { // nothing but the time wakes it
		passing.Step(prove.Settling / 2)
		return !s.hasPolicies(t)
	}, protecttest.Soon, 5*time.Millisecond)
}

// A step removes policies before it restores the webhook.
func TestAWebhookThatSomebodyDeletedHoldsNothing(t *testing.T) {
	s, passing := withPolicies(t)
	s.up.Store(true)
	denies := prove.Proof{Known: true, By: spec.EnginePolicy, Webhook: prove.Denies}
	s.prove(denies)
	s.trust("ca")
	s.comes(t, s.failsClosed)
	s.prove(prove.Proof{Known: true, By: spec.EnginePolicy, Webhook: prove.Silent})
	passing.Step(prove.Settling)
	s.stays(t, s.hasPolicies, "nobody reaches the webhook")
	s.proved.Store(&denies) // what wakes it is that the webhook is gone
	require.NoError(t, s.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(t.Context(), spec.ConfigurationName, metav1.DeleteOptions{}))
	s.stays(t, s.hasPolicies, "not every API server has heard of the one that was restored")
	s.comes(t, s.failsClosed)
}

func TestPoliciesHelpAWebhookThatRefusesNothing(t *testing.T) {
	s := newTestRegistration(t, newClient(), protecttest.Rules())
	s.prove(prove.Proof{})
	s.up.Store(true)
	s.trust("ca")
	protecttest.Background(t, s.Run)
	s.comes(t, s.hasWebhook)
	require.Never(t, func() bool { return s.hasPolicies(t) }, aWhile, 5*time.Millisecond, "nothing is known yet")
	s.prove(prove.Proof{Known: true})
	require.Never(t, func() bool { return s.hasPolicies(t) }, aWhile, 5*time.Millisecond, "an attempt that failed shows nothing")
	s.prove(prove.Proof{Known: true, Allowed: true})
	require.Never(t, func() bool { return s.hasPolicies(t) }, aWhile, 5*time.Millisecond, "it is not known whether the webhook can be reached")
	s.prove(prove.Proof{Known: true, Allowed: true, Webhook: prove.Silent})
	s.comes(t, s.hasPolicies)
	s.prove(prove.Proof{Known: true, By: spec.EnginePolicy, Webhook: prove.Silent})
	s.stays(t, s.hasPolicies, "they are all there is")
}

// A replica with older rules is reached, and allows what newer rules forbid.
func TestPoliciesHelpForAWhileWhereTheWebhookRefusesNotAll(t *testing.T) {
	s := newTestRegistration(t, newClient(), protecttest.Rules())
	passing := clocktesting.NewFakeClock(time.Now())
	s.Clock = passing
	s.prove(prove.Proof{Known: true, By: spec.EngineWebhook, Webhook: prove.Denies})
	s.up.Store(true)
	s.trust("ca")
	protecttest.Background(t, s.Run)
	s.comes(t, s.failsClosed)
	require.Eventually(t, func() bool { // it holds
		passing.Step(prove.Settling)
		s.prove(prove.Proof{Known: true, Allowed: true, Webhook: prove.Denies})
		return s.hasPolicies(t)
	}, protecttest.Soon, 5*time.Millisecond)
	s.prove(prove.Proof{Known: true, By: spec.EnginePolicy, Webhook: prove.Denies})
	passing.Step(helpFor / 2)
	s.stays(t, s.hasPolicies, "that they refuse shows nothing of the webhook")
	require.Eventually(t, func() bool {
		passing.Step(helpFor / 2)
		return !s.hasPolicies(t)
	}, protecttest.Soon, 5*time.Millisecond)
}

func TestAWebhookThatFailsClosedFailsOpenOnlyOnceEveryAPIServerHasHeardOfThePolicies(t *testing.T) {
	s := newTestRegistration(t, newClient(), protecttest.Rules())
	passing := clocktesting.NewFakeClock(time.Now())
	s.Clock = passing
	s.up.Store(true)
	s.trust("ca")
	s.use(spec.EngineWebhook)
	s.prove(prove.Proof{Known: true, By: spec.EngineWebhook, Webhook: prove.Denies})
	protecttest.Background(t, s.Run)
	s.comes(t, s.failsClosed)
	s.use(spec.EngineBoth)
	s.comes(t, s.hasPolicies)
	s.prove(prove.Proof{Known: true, By: spec.EnginePolicy, Webhook: prove.Denies})
	s.stays(t, s.failsClosed, "not every API server has heard of the policies")
	require.Eventually(t, func() bool {
		passing.Step(prove.Settling / 2) // nothing but the time wakes it
		return !s.failsClosed(t)
	}, protecttest.Soon, 5*time.Millisecond)
	require.True(t, s.hasWebhook(t))
}

func TestAnAPIServerThatStopsServingPoliciesLeavesAllToTheWebhook(t *testing.T) {
	client := newClient()
	var stopped atomic.Bool
	client.PrependReactor("list", "validatingadmissionpolicies", func(action k8stesting.Action) (bool, runtime.Object, error) {
		return stopped.Load(), nil, apierrors.NewNotFound(action.GetResource().GroupResource(), "")
	})
	s := newTestRegistration(t, client, protecttest.Rules())
	s.use(spec.EngineBoth)
	s.prove(prove.Proof{Known: true, By: spec.EnginePolicy, Webhook: prove.Denies})
	s.up.Store(true)
	s.trust("ca")
	protecttest.Background(t, s.Run)
	require.Eventually(t, func() bool { return s.failurePolicy(t) == admissionregistrationv1.Ignore }, protecttest.Soon, time.Millisecond)
	stopped.Store(true)
	s.prove(prove.Proof{Known: true, Allowed: true, Webhook: prove.Denies})
	s.comes(t, s.failsClosed)
	require.Equal(t, spec.EngineWebhook, s.InForce())
	stopped.Store(false)
	require.True(t, s.hasPolicies(t), "another API server may serve them")
	s.Changed()
	require.Eventually(t, func() bool { return s.InForce() == spec.EngineBoth }, protecttest.Soon, time.Millisecond)
}
