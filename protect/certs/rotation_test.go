package certs

import (
	"crypto/x509"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/protect/internal/protecttest"
	"github.com/headwater-k8s/headwater/protect/spec"
)

func start() time.Time { return time.Date(2030, time.March, 1, 12, 0, 0, 0, time.UTC) }

// never and always are settledFuncs.
func never(*x509.Certificate) bool { return false }

func always(*x509.Certificate) bool { return true }

// maintain calls Maintain while no API server trusts a new CA yet.
func maintain(t testing.TB, m, previous *Material, hosts spec.Hosts, now time.Time, want ...Task) *Material {
	t.Helper()
	kept, done, err := Maintain(m, previous, hosts, never, now)
	require.NoError(t, err)
	require.Equal(t, want, done)
	require.Equal(t, TaskNone, Due(kept, hosts, never, now))
	return kept
}

// requireServes fails unless a client that trusts the bundle of published
// accepts the certificate of serving.
func requireServes(t *testing.T, serving, published *Material, now time.Time) {
	t.Helper()
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(published.BundlePEM()))
	for _, host := range []string{"headwater-webhook.headwater.svc", "127.0.0.1"} {
		_, err := serving.leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, CurrentTime: now})
		require.NoError(t, err)
	}
}

func TestFirstCertificates(t *testing.T) {
	now := start()
	m := maintain(t, nil, nil, protecttest.Hosts(), now, TaskRenewCA, TaskRenewLeaf)
	requireServes(t, m, m, now)
	requireServes(t, m, m, now.Add(-59*time.Minute)) // an API server whose clock is behind
	require.Len(t, m.bundle, 1)
	require.True(t, m.bundle[0].IsCA)
	require.Equal(t, now.Add(caLifetime), m.bundle[0].NotAfter)
	require.Equal(t, now.Add(leafLifetime), m.leaf.NotAfter)
	require.Equal(t, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, m.leaf.ExtKeyUsage)
	require.False(t, m.leaf.IsCA)
	require.False(t, m.leafKey.Equal(m.caKey))
}

func TestDue(t *testing.T) {
	now := start()
	m := maintain(t, nil, nil, protecttest.Hosts(), now, TaskRenewCA, TaskRenewLeaf)
	other := maintain(t, nil, nil, protecttest.Hosts(), now, TaskRenewCA, TaskRenewLeaf)
	mixed := *m
	mixed.leaf, mixed.leafKey = other.leaf, other.leafKey
	bare := *m
	bare.leaf = nil
	for name, tc := range map[string]struct {
		m     *Material
		hosts spec.Hosts
		after time.Duration
		want  Task
	}{
		"there is none":                        {nil, protecttest.Hosts(), 0, TaskRenewCA},
		"they are fresh":                       {m, protecttest.Hosts(), 0, TaskNone},
		"more than a third is left":            {m, protecttest.Hosts(), leafLifetime*2/3 - 24*time.Hour, TaskNone},
		"less than a third of the leaf":        {m, protecttest.Hosts(), leafLifetime*2/3 + 24*time.Hour, TaskRenewLeaf},
		"less than a third of the CA":          {m, protecttest.Hosts(), caLifetime*2/3 + 24*time.Hour, TaskRenewCA},
		"the leaf has expired":                 {m, protecttest.Hosts(), leafLifetime + time.Hour, TaskRenewLeaf},
		"the CA has expired":                   {m, protecttest.Hosts(), caLifetime + time.Hour, TaskRenewCA},
		"the clock is behind the certificates": {m, protecttest.Hosts(), -2 * time.Hour, TaskRenewCA},
		"a name is missing":                    {m, spec.Hosts{Names: []string{"other.svc"}}, 0, TaskRenewLeaf},
		"an address is missing":                {m, spec.Hosts{IPs: []net.IP{net.ParseIP("::1")}}, 0, TaskRenewLeaf},
		"the leaf is of another CA":            {&mixed, protecttest.Hosts(), 0, TaskRenewLeaf},
		"there is no leaf":                     {&bare, protecttest.Hosts(), 0, TaskRenewLeaf},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tc.want, Due(tc.m, tc.hosts, never, now.Add(tc.after))) })
	}
}

func TestRotationLeavesNoGap(t *testing.T) {
	now := start()
	first := maintain(t, nil, nil, protecttest.Hosts(), now, TaskRenewCA, TaskRenewLeaf)
	now = now.Add(caLifetime*2/3 - 24*time.Hour)
	second := maintain(t, first, nil, protecttest.Hosts(), now, TaskRenewLeaf) // long overdue
	requireServes(t, second, first, now)

	now = now.Add(31 * 24 * time.Hour)
	published := maintain(t, second, nil, protecttest.Hosts(), now, TaskRenewCA)
	require.Equal(t, second.leaf, published.leaf, "a new CA does not sign before it has settled")
	require.Len(t, published.bundle, 2)
	requireServes(t, published, second, now)    // an API server that does not know the new CA yet
	requireServes(t, published, published, now) // one that has

	now = now.Add(365 * 24 * time.Hour / 2)
	maintain(t, published, nil, protecttest.Hosts(), now) // however long the webhook configuration could not be written
	settled, done, err := Maintain(published, nil, protecttest.Hosts(), always, now)
	require.NoError(t, err)
	require.Equal(t, []Task{TaskRenewLeaf}, done)
	requireServes(t, settled, published, now)
	requireServes(t, published, settled, now) // a replica that still serves the old certificate
	require.NoError(t, settled.leaf.CheckSignatureFrom(settled.bundle[0]))

	now = now.Add(pruneAfter + time.Minute)
	pruned := maintain(t, settled, nil, protecttest.Hosts(), now, TaskPruneCA)
	require.Len(t, pruned.bundle, 1)
	requireServes(t, pruned, settled, now)
	requireServes(t, settled, pruned, now)
}

func TestDeletedSecretRotatesWithoutGap(t *testing.T) {
	now := start()
	before := maintain(t, nil, nil, protecttest.Hosts(), now, TaskRenewCA, TaskRenewLeaf)
	after := maintain(t, nil, before, protecttest.Hosts(), now, TaskRenewCA)
	require.NotEqual(t, before.bundle[0].Raw, after.bundle[0].Raw)
	require.False(t, before.caKey.Equal(after.caKey))
	requireServes(t, after, before, now)
	requireServes(t, after, after, now)
}

func TestSecretDeletedAgainAndAgain(t *testing.T) {
	now := start()
	m := maintain(t, nil, nil, protecttest.Hosts(), now, TaskRenewCA, TaskRenewLeaf)
	served := m.leaf
	for range 2 * maxBundle {
		next := maintain(t, nil, m, protecttest.Hosts(), now, TaskRenewCA)
		requireServes(t, next, m, now)
		requireServes(t, m, next, now)
		m = next
	}
	require.Len(t, m.bundle, maxBundle)
	require.Equal(t, served, m.leaf, "the certificate that is trusted is served to the last")
}

func TestExpiredCAIsNotPublishedAgain(t *testing.T) {
	now := start()
	before := maintain(t, nil, nil, protecttest.Hosts(), now, TaskRenewCA, TaskRenewLeaf)
	now = now.Add(caLifetime + time.Hour)
	after := maintain(t, before, nil, protecttest.Hosts(), now, TaskRenewCA, TaskRenewLeaf)
	require.Len(t, after.bundle, 1)
	requireServes(t, after, after, now)
}

func TestReplicasWithOtherHostsAgree(t *testing.T) {
	now := start()
	other := spec.Hosts{Names: []string{"other.svc"}}
	mine := maintain(t, nil, nil, protecttest.Hosts(), now, TaskRenewCA, TaskRenewLeaf)
	both := maintain(t, mine, nil, other, now, TaskRenewLeaf)
	require.Equal(t, TaskNone, Due(both, protecttest.Hosts(), never, now), "and the first replica is content")
	require.Equal(t, TaskNone, Due(both, other, never, now))
}

func TestMaterialSurvivesItsSecret(t *testing.T) {
	now := start()
	first := maintain(t, nil, nil, protecttest.Hosts(), now, TaskRenewCA, TaskRenewLeaf)
	m := maintain(t, nil, first, protecttest.Hosts(), now, TaskRenewCA)
	data, err := m.encode()
	require.NoError(t, err)
	back, err := decode(data)
	require.NoError(t, err)
	require.Equal(t, m.BundlePEM(), back.BundlePEM())
	require.True(t, m.caKey.Equal(back.caKey))
	require.True(t, m.leafKey.Equal(back.leafKey))
	require.Equal(t, m.leaf.Raw, back.leaf.Raw)
	require.Equal(t, TaskNone, Due(back, protecttest.Hosts(), never, now))
}

func TestDecodeGarbage(t *testing.T) {
	now := start()
	encode := func() map[string][]byte {
		data, err := maintain(t, nil, nil, protecttest.Hosts(), now, TaskRenewCA, TaskRenewLeaf).encode()
		require.NoError(t, err)
		return data
	}
	good, other := encode(), encode()
	for name, tc := range map[string]struct {
		field  string
		value  []byte
		usable bool // the CA is kept, only the leaf is reissued
	}{
		"no bundle":               {fieldBundle, nil, false},
		"a bundle of text":        {fieldBundle, []byte(protecttest.Canary), false},
		"a bundle of keys":        {fieldBundle, good[fieldCAKey], false},
		"a bundle cut short":      {fieldBundle, good[fieldBundle][:len(good[fieldBundle])/2], false},
		"a bundle with no CA":     {fieldBundle, good[fieldLeaf], false},
		"another bundle":          {fieldBundle, other[fieldBundle], false},
		"no CA key":               {fieldCAKey, nil, false},
		"a certificate for a key": {fieldCAKey, good[fieldBundle], false},
		"another CA key":          {fieldCAKey, other[fieldCAKey], false},
		"no leaf":                 {fieldLeaf, nil, true},
		"another leaf":            {fieldLeaf, other[fieldLeaf], true},
		"no leaf key":             {fieldLeafKey, nil, true},
		"another leaf key":        {fieldLeafKey, other[fieldLeafKey], true},
	} {
		t.Run(name, func(t *testing.T) {
			data := map[string][]byte{}
			for key, value := range good {
				data[key] = value
			}
			data[tc.field] = tc.value
			m, err := decode(data)
			if !tc.usable {
				require.Error(t, err)
				require.NotContains(t, err.Error(), protecttest.Canary)
				return
			}
			require.NoError(t, err)
			maintain(t, m, nil, protecttest.Hosts(), now, TaskRenewLeaf)
		})
	}
}
