package track

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/workload"
)

const (
	soon  = time.Minute
	quiet = 300 * time.Millisecond
)

func testMemory() *Memory {
	return NewMemory(prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "waiting"}, []string{"reason"}))
}

func controlled(name string, by *workload.Owner) *workload.Workload {
	return &workload.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}, Kind: kinds.KindDeployment, Owner: by}
}

// known is what is known of the workload that k names.
func (m *Memory) known(k kinds.Key) decide.Known {
	return m.Known(&workload.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name}, Kind: k.Kind}, nil)
}

// debounce is how long the debounce still delays a restart of k.
func (m *Memory) debounce(k kinds.Key, now time.Time) time.Duration {
	return max(0, m.known(k).Debounced.Sub(now))
}

// begin and end have the workload that k names wait, and wait no more.
func (m *Memory) begin(k kinds.Key, one Waiter) (changed bool) {
	m.update(k, func(c *consumer) { changed = m.beginWait(c, one) })
	return changed
}

func (m *Memory) end(k kinds.Key) { m.update(k, func(c *consumer) { m.setWait(c, nil) }) }
