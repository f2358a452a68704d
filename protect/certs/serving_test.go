package certs

import (
	"crypto/x509"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/protect/internal/protecttest"
)

func newCredential(t *testing.T, now time.Time) *credential {
	t.Helper()
	return maintain(t, nil, nil, protecttest.Hosts(), now, TaskRenewCA, TaskRenewLeaf).Credential()
}

func TestServe(t *testing.T) {
	const settle = time.Minute
	now := start()
	old, next := newCredential(t, now), newCredential(t, now)
	renewed := &credential{TLS: next.TLS, roots: append(next.roots[:1:1], old.roots...)}
	expired := newCredential(t, now.Add(-2*caLifetime))
	published := func(age time.Duration, bundles ...[]*x509.Certificate) publishedCAs {
		return publishedCAs{bundles: bundles, since: now.Add(-age)}
	}
	both := union(old.roots, next.roots)
	for sentence, tc := range map[string]struct {
		current, wanted *credential
		published       publishedCAs
		want            *credential
	}{
		"nothing, while there is nothing":                     {nil, nil, published(0), nil},
		"the first, whatever is published":                    {nil, next, published(0, old.roots), next},
		"what there is, while nothing else can be used":       {old, nil, published(0, old.roots), old},
		"the old, until the new CA is published":              {old, next, published(2*settle, old.roots), old},
		"the old, until every API server has heard":           {old, next, published(settle-1, both), old},
		"the new, once every API server has heard":            {old, next, published(settle, both), next},
		"the old, while one webhook does not trust the new":   {old, next, published(2*settle, both, old.roots), old},
		"the new, if nobody trusts the old any more":          {old, next, published(0, next.roots), next},
		"the new, if nobody trusts either":                    {old, next, published(0, nil), next},
		"the new, if the old has expired":                     {expired, next, published(0, union(expired.roots, next.roots)), next},
		"the new, while no webhook is registered":             {old, next, published(0), next},
		"the same with other CAs at once, as when one is old": {next, renewed, published(0, next.roots), renewed},
	} {
		t.Run(sentence, func(t *testing.T) {
			require.Same(t, tc.want, chooseServing(tc.current, tc.wanted, tc.published, settle, now))
		})
	}
}

func TestUnionKeepsTheOrder(t *testing.T) {
	a, b := newCredential(t, start()).roots[0], newCredential(t, start()).roots[0]
	require.Equal(t, []*x509.Certificate{b, a}, union([]*x509.Certificate{b}, nil, []*x509.Certificate{a, b}))
}
