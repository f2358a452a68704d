package webhook

import (
	"crypto/x509"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/protect/certs"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// never says that no CA has settled.
func never(*x509.Certificate) bool { return false }

// maintain calls certs.Maintain while no API server trusts a new CA yet.
func maintain(t testing.TB, m, previous *certs.Material, hosts spec.Hosts, now time.Time, want ...certs.Task) *certs.Material {
	t.Helper()
	kept, done, err := certs.Maintain(m, previous, hosts, never, now)
	require.NoError(t, err)
	require.Equal(t, want, done)
	require.Equal(t, certs.TaskNone, certs.Due(kept, hosts, never, now))
	return kept
}
