package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"maps"
	"math/big"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/headwater-k8s/headwater/internal/keypair"
	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/protect/internal/protecttest"
	"github.com/headwater-k8s/headwater/protect/spec"
)

const (
	givenSecret = "from-cert-manager"
	givenHost   = "headwater-webhook.headwater.svc"
)

type eventLog struct {
	mu       sync.Mutex
	recorded []events.Event
}

func (e *eventLog) Record(event events.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.recorded = append(e.recorded, event)
}

func (e *eventLog) all() []events.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.recorded)
}

// givenData is a Secret as cert-manager writes it.
func givenData(t *testing.T, now time.Time) map[string][]byte {
	t.Helper()
	data, err := maintain(t, nil, nil, protecttest.Hosts(), now, TaskRenewCA, TaskRenewLeaf).encode()
	require.NoError(t, err)
	delete(data, fieldCAKey)
	return data
}

func selfSignedData(t *testing.T, now time.Time) map[string][]byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "webhook"}, DNSNames: []string{givenHost},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
	}
	leaf, err := sign(template, template, key, key)
	require.NoError(t, err)
	encoded, err := encodeKey(key)
	require.NoError(t, err)
	return map[string][]byte{fieldLeaf: encodeCertificates([]*x509.Certificate{leaf}), fieldLeafKey: encoded}
}

// withLongKey is a certificate with an RSA key of more bits than a client accepts.
func withLongKey(t *testing.T, now time.Time) []byte {
	t.Helper()
	issuer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour)}
	long := &rsa.PublicKey{N: new(big.Int).SetBit(big.NewInt(1), keypair.MaxModulus, 1), E: 65537}
	der, err := x509.CreateCertificate(rand.Reader, template, template, long, issuer)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: blockCertificate, Bytes: der})
}

func newGiven(clk *clocktesting.FakeClock, log *zap.Logger) (*Provided, *eventLog) {
	events := &eventLog{}
	return &Provided{
		Namespace: "headwater", Name: givenSecret, Host: givenHost, Events: events, Clock: clk,
		Metrics: NewMetrics(prometheus.NewRegistry()), Log: log,
	}, events
}

func TestGivenCertificates(t *testing.T) {
	now := start()
	good, other, self := givenData(t, now), givenData(t, now), selfSignedData(t, now)
	expired := givenData(t, now.Add(-2*leafLifetime))
	but := func(field string, value []byte) map[string][]byte {
		data := maps.Clone(good)
		data[field] = value
		return data
	}
	elsewhere, err := maintain(t, nil, nil, spec.Hosts{Names: []string{"other.svc"}}, now, TaskRenewCA, TaskRenewLeaf).encode()
	require.NoError(t, err)
	for sentence, tc := range map[string]struct {
		data    map[string][]byte
		problem string // empty: usable
	}{
		"cert-manager's":                         {good, ""},
		"one signed by itself":                   {self, ""},
		"a CA beside that which signed":          {but(fieldBundle, append(other[fieldBundle], good[fieldBundle]...)), ""},
		"an empty Secret":                        {map[string][]byte{}, "tls.crt holds no certificate"},
		"no key":                                 {but(fieldLeafKey, nil), "tls.key holds no private key"},
		"the key of another":                     {but(fieldLeafKey, other[fieldLeafKey]), "tls.key does not match tls.crt or is unreadable"},
		"text for a certificate":                 {but(fieldLeaf, []byte(protecttest.Canary)), "tls.crt holds no certificate"},
		"text for a key":                         {but(fieldLeafKey, []byte(protecttest.Canary)), "tls.key does not match"},
		"no CA for a certificate that needs one": {but(fieldBundle, nil), "ca.crt is missing"},
		"text for a CA":                          {but(fieldBundle, []byte(protecttest.Canary)), "ca.crt holds no certificate"},
		"another CA":                             {but(fieldBundle, other[fieldBundle]), "signed by unknown authority"},
		"a long key in the chain":                {but(fieldLeaf, append(slices.Clone(good[fieldLeaf]), withLongKey(t, now)...)), "tls.crt holds a certificate with an RSA key of more than 8192 bits"},
		"a CA with a long key":                   {but(fieldBundle, append(slices.Clone(good[fieldBundle]), withLongKey(t, now)...)), "ca.crt holds a certificate with an RSA key of more than 8192 bits"},
		"one that has expired":                   {expired, "expired"},
		"one for another name":                   {elsewhere, "not " + givenHost},
	} {
		t.Run(sentence, func(t *testing.T) {
			core, logged := observer.New(zapcore.DebugLevel)
			given, events := newGiven(clocktesting.NewFakeClock(now), zap.New(core))
			secret := &corev1.Secret{Data: tc.data}
			credential, err := given.credential(t.Context(), secret, never)
			if tc.problem == "" {
				require.NoError(t, err)
				require.NotNil(t, credential)
				require.InDelta(t, 1, testutil.ToFloat64(given.Metrics.valid), 0)
				require.Empty(t, events.all())
				return
			}
			var unusable unusableError
			require.ErrorAs(t, err, &unusable)
			require.ErrorContains(t, err, tc.problem)
			require.ErrorContains(t, err, "headwater/"+givenSecret)
			require.InDelta(t, 0, testutil.ToFloat64(given.Metrics.valid), 0)
			_, _ = given.credential(t.Context(), secret, never)
			require.Equal(t, 1, logged.Len(), "it is told once")
			require.Len(t, events.all(), 1)
			require.Equal(t, "CertificateUnusable", events.all()[0].Reason)
			require.NotContains(t, err.Error()+events.all()[0].Note, protecttest.Canary)
		})
	}
	t.Run("no Secret", func(t *testing.T) {
		given, _ := newGiven(clocktesting.NewFakeClock(now), zap.NewNop())
		_, err := given.credential(t.Context(), nil, never)
		require.ErrorContains(t, err, "does not exist")
	})
}

// The leader writes the keeper's bundle into the webhook configuration.
func publish(t *testing.T, client kubernetes.Interface, bundle []byte) {
	t.Helper()
	configurations := client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: spec.ConfigurationName, ResourceVersion: string(bundle[len(bundle)-60 : len(bundle)-30])},
		Webhooks:   []admissionregistrationv1.ValidatingWebhook{{ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: bundle}}},
	}
	_, err := configurations.Update(t.Context(), config, metav1.UpdateOptions{})
	if err != nil {
		_, err = configurations.Create(t.Context(), config, metav1.CreateOptions{})
	}
	require.NoError(t, err)
}

func putGiven(t *testing.T, client kubernetes.Interface, version string, data map[string][]byte) {
	t.Helper()
	secrets := client.CoreV1().Secrets("headwater")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "headwater", Name: givenSecret, ResourceVersion: version}, Data: data}
	_, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{})
	if err != nil {
		_, err = secrets.Create(t.Context(), secret, metav1.CreateOptions{})
	}
	require.NoError(t, err)
}

func TestGivenCertificateIsSwappedWithoutAGap(t *testing.T) {
	client := protecttest.NewClient()
	clk := clocktesting.NewFakeClock(start())
	given, events := newGiven(clk, zap.NewNop())
	keeper := NewKeeper(client, given, DefaultSettle, clk, given.Metrics, zap.NewNop())
	protecttest.Background(t, keeper.Run)
	require.Eventually(t, func() bool { return keeper.Ready() != nil && keeper.Ready().Error() != errNoCertificate.Error() }, protecttest.Soon, time.Millisecond)
	require.ErrorContains(t, keeper.Ready(), "does not exist", "not ready, for lack of any")
	require.Nil(t, keeper.Bundle())

	first, second := givenData(t, start()), givenData(t, start())
	servesLeafOf := func(data map[string][]byte) bool {
		want, err := decodeCredential(data)
		require.NoError(t, err)
		serving, err := keeper.Serving(nil)
		return err == nil && serving.Leaf.Equal(want.leaf())
	}
	putGiven(t, client, "1", first)
	require.Eventually(t, func() bool { return servesLeafOf(first) }, protecttest.Soon, time.Millisecond)
	require.Equal(t, string(first[fieldBundle]), string(keeper.Bundle()))
	publish(t, client, keeper.Bundle())

	putGiven(t, client, "2", map[string][]byte{fieldLeaf: []byte(protecttest.Canary)})
	putGiven(t, client, "3", second)
	both := string(second[fieldBundle]) + string(first[fieldBundle])
	require.Eventually(t, func() bool { return string(keeper.Bundle()) == both }, protecttest.Soon, time.Millisecond)
	require.True(t, servesLeafOf(first), "API servers do not know the second yet")
	publish(t, client, keeper.Bundle())
	stepUntil(t, clk, DefaultSettle/4, func() bool { return servesLeafOf(second) })
	require.GreaterOrEqual(t, clk.Since(start()), DefaultSettle)
	require.Equal(t, both, string(keeper.Bundle()), "another replica may still serve the first")
	stepUntil(t, clk, DefaultSettle/4, func() bool { return string(keeper.Bundle()) == string(second[fieldBundle]) })

	putGiven(t, client, "4", map[string][]byte{fieldLeaf: []byte(protecttest.Canary)})
	require.Eventually(t, func() bool { return testutil.ToFloat64(given.Metrics.valid) == 0 }, protecttest.Soon, time.Millisecond)
	require.True(t, servesLeafOf(second), "the last good one stays in force")
	require.NoError(t, keeper.Ready())
	require.Eventually(t, func() bool { return len(events.all()) > 0 }, protecttest.Soon, time.Millisecond)
	require.Equal(t, []string{"update", "create", "update", "update", "update"}, protecttest.Writes(client, "secrets"), "all of them the test's own")
}

// stepUntil advances the clock until condition holds.
func stepUntil(t *testing.T, clk *clocktesting.FakeClock, step time.Duration, condition func() bool) {
	t.Helper()
	for range 100 {
		require.Eventually(t, func() bool { return condition() || clk.HasWaiters() }, protecttest.Soon, time.Millisecond)
		if condition() {
			return
		}
		clk.Step(step)
	}
	require.Fail(t, "not so however late")
}
