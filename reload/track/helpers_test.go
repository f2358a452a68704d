package track

import (
	"bytes"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/workload"
)

func testHasher(t testing.TB, fill byte) *digest.Hasher {
	t.Helper()
	hasher, err := digest.New(bytes.Repeat([]byte{fill}, digest.KeySize))
	require.NoError(t, err)
	return hasher
}

func digests(h *digest.Hasher, data map[string]string) object.Digests {
	content := object.Content{Data: map[string][]byte{}}
	for key, value := range data {
		content.Data[key] = []byte(value)
	}
	return object.Digest(h, content)
}

const (
	soon  = 10 * time.Second
	quiet = 300 * time.Millisecond
)

var birth = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) // read only

func testMemory() *Memory {
	return NewMemory(prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "waiting"}, []string{"reason"}))
}

type data map[string]string

func controlled(name string, by *workload.Owner) *workload.Workload {
	return &workload.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}, Kind: kinds.KindDeployment, Owner: by}
}
