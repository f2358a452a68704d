package track

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/workload"
)

const (
	soon  = 10 * time.Second
	quiet = 300 * time.Millisecond
)

func testMemory() *Memory {
	return NewMemory(prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "waiting"}, []string{"reason"}))
}

func controlled(name string, by *workload.Owner) *workload.Workload {
	return &workload.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}, Kind: kinds.KindDeployment, Owner: by}
}
