package webhook

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/internal/protecttest"
	"github.com/headwater-k8s/headwater/protect/manifests"
)

var (
	oneSegment     = strings.Repeat("1a", 16)
	anotherSegment = strings.Repeat("2b", 16)
	forgedSegment  = strings.Repeat("3c", 16)
)

// registeredWith is a webhook configuration whose paths have this segment.
func registeredWith(t *testing.T, segment string) *admissionregistrationv1.ValidatingWebhookConfiguration {
	t.Helper()
	endpoint := protecttest.Endpoint(t)
	endpoint.Segment = segment
	return manifests.Configuration(protecttest.Rules(), protecttest.HeadwaterUser, manifests.FailClosed, endpoint, []byte("ca"))
}

func accepts(paths *Paths, path string) bool {
	_, isRegistered := paths.ScopeAt(path)
	return isRegistered
}

func TestOnlyRegisteredPathsAreAccepted(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	paths := NewPaths(clock)
	require.False(t, accepts(paths, "/validate/sources"), "nothing is registered")
	paths.Registered(registeredWith(t, oneSegment))
	for path, want := range map[string]bool{
		"/validate/" + oneSegment + "/sources":           true,
		"/validate/" + oneSegment + "/selected/new-rule": true, // another replica may have registered it a moment ago
		"/validate/" + forgedSegment + "/sources":        false,
		"/validate/" + anotherSegment + "/sources":       false,
		"/validate/sources":                              false,
		"/validate/configuration":                        false,
		"/validate/":                                     false,
	} {
		require.Equal(t, want, accepts(paths, path), path)
	}
	scope, _ := paths.ScopeAt("/validate/" + oneSegment + "/namespaces/a/b")
	require.Equal(t, decide.Scope{About: decide.AboutNamespaces, Rules: []string{"a", "b"}}, scope)
}

// A review must not be refused while replicas and API servers learn of a new CA.
func TestAPathIsAcceptedBeforeAndAfterItIsRegistered(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	paths := NewPaths(clock)
	one, another := "/validate/"+oneSegment+"/sources", "/validate/"+anotherSegment+"/sources"
	paths.Registered(registeredWith(t, oneSegment))
	paths.Expect(anotherSegment)
	require.True(t, accepts(paths, another), "this replica has the new CA, too")
	clock.SetTime(clock.Now().Add(time.Hour))
	paths.Registered(registeredWith(t, anotherSegment))
	require.True(t, accepts(paths, one), "an API server may lag behind")
	clock.SetTime(clock.Now().Add(lagging))
	require.False(t, accepts(paths, one))
	require.True(t, accepts(paths, another))
	paths.Registered(nil)
	require.True(t, accepts(paths, another))
}

// Both versions of Headwater serve during a rolling update.
func TestPathsOfTheVersionBeforeAreAcceptedWhileTheyAreRegistered(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	paths := NewPaths(clock)
	paths.Registered(registeredWith(t, ""))
	paths.Expect(oneSegment)
	scope, isRegistered := paths.ScopeAt("/validate/selected/shared")
	require.True(t, isRegistered)
	require.Equal(t, decide.Scope{About: decide.AboutSelected, Rules: []string{"shared"}}, scope)
	paths.Registered(registeredWith(t, oneSegment))
	require.True(t, accepts(paths, "/validate/sources"))
	clock.SetTime(clock.Now().Add(lagging))
	require.False(t, accepts(paths, "/validate/sources"))
	// The version before takes the segment for a question that it does not know, and
	// checks all rules.
	before := decide.ScopeAt("/validate/" + oneSegment + "/sources")
	edit := decide.Request{Scope: before}
	require.NotEqual(t, decide.AboutConfiguration, edit.Scope.About)
}

func TestAnEntryThatIsNotHeadwatersRegistersNoPath(t *testing.T) {
	for sentence, client := range map[string]admissionregistrationv1.WebhookClientConfig{
		"no path":      {Service: &admissionregistrationv1.ServiceReference{Namespace: "a", Name: "b"}},
		"another path": {Service: &admissionregistrationv1.ServiceReference{Namespace: "a", Name: "b", Path: new("/validated")}},
		"another URL":  {URL: new("https://example.org/")},
	} {
		t.Run(sentence, func(t *testing.T) {
			paths := NewPaths(clocktesting.NewFakePassiveClock(time.Now()))
			configuration := registeredWith(t, oneSegment)
			configuration.Webhooks = append(configuration.Webhooks, admissionregistrationv1.ValidatingWebhook{ClientConfig: client})
			paths.Registered(configuration)
			require.True(t, accepts(paths, "/validate/"+oneSegment+"/sources"))
			require.False(t, accepts(paths, "/validate/sources"))
		})
	}
}

func TestPathsBehindAPathOfTheURLAreRegistered(t *testing.T) {
	paths := NewPaths(clocktesting.NewFakePassiveClock(time.Now()))
	configuration := registeredWith(t, oneSegment)
	configuration.Webhooks[0].ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: new("https://example.org/hw/validate/" + anotherSegment + "/sources")}
	paths.Registered(configuration)
	require.True(t, accepts(paths, "/hw/validate/"+anotherSegment+"/sources"))
}

func TestFewSegmentsAreRemembered(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	paths := NewPaths(clock)
	for i := range 100 {
		clock.SetTime(clock.Now().Add(time.Second))
		paths.Registered(registeredWith(t, strings.Repeat(string("0123456789"[i%10])+string("0123456789"[i/10]), 16)))
	}
	require.LessOrEqual(t, len(paths.registered), maxSegments)
	require.True(t, accepts(paths, "/validate/"+strings.Repeat("99", 16)+"/sources"))
}
