package reload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
	"github.com/headwater-k8s/headwater/test/seed"
)

// noiseImage is one that no registry has.
const noiseImage = "app:2"

// noise is what others do to a fleet of namespaces with a Deployment web each: they evict
// pods, scale, and roll out; one has an image that does not exist.
type noise struct {
	*env

	namespaces []string
}

// makes does one thing to a Deployment. What fails, because somebody else was faster,
// is no matter.
func (n noise) makes(ctx context.Context, dice *rand.Rand) {
	namespace := n.namespaces[dice.IntN(len(n.namespaces))]
	patch := ""
	switch dice.IntN(3) {
	case 0:
		pods, err := n.podsOf(ctx, namespace, "web")
		if err == nil && len(pods) > 0 {
			_ = n.Admin.CoreV1().Pods(namespace).Delete(ctx, pods[0].Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
		}
		return
	case 1:
		patch = fmt.Sprintf(`{"spec":{"replicas":%d}}`, 1+dice.IntN(3))
	case 2:
		patch = fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"version":"%d"}}}}}`, dice.IntN(1000))
	}
	_, _ = n.Admin.AppsV1().Deployments(namespace).Patch(ctx, "web", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
}

// health is what the kubelet says of a pod: it runs, if there is its image.
func (n noise) health(ctx context.Context, pod *corev1.Pod) (lab.Health, error) {
	switch {
	case pod.Status.Phase != corev1.PodPending || len(pod.Status.ContainerStatuses) > 0:
		return lab.Waits, nil
	case pod.Spec.Containers[0].Image != noiseImage:
		return lab.Runs, nil
	}
	return lab.Waits, n.keptWaiting("ImagePullBackOff")(ctx, pod)
}

// A good revision is delivered, whatever others do meanwhile. HEADWATER_NAMESPACES says in
// how many namespaces.
func TestNoiseOfOthersStopsNoGoodRevision(t *testing.T) {
	t.Parallel()
	size := int(seed.Number(t, "HEADWATER_NAMESPACES", 30))
	e := &env{lab.On(t, cluster.ForTest(t, cluster.Options{}))}
	n := noise{env: e}
	s := newStaged(e, "noise", func(s *staged) {
		s.soak, s.pace, s.selects = "2s", "minInterval: 0s, maxRestartsPerHour: 0", `include: ["noise-c*"]`
		s.stages = ", {name: half, percent: 50, soak: 2s}"
	})
	e.PlayKubelet("spec.nodeName=noise-node", n.health)
	for i := range size {
		name := fmt.Sprint("noise-", i)
		if i < 1+size/10 {
			name = fmt.Sprint("noise-c", i)
		}
		n.namespaces = append(n.namespaces, e.Namespace(name))
	}
	s.begin()
	s.SecondLater()
	for _, namespace := range n.namespaces {
		e.Create(namespace, lab.Deployment(namespace, "web", 1, lab.ByEnv("shared", "used")))
	}
	e.Eventually(func(ctx context.Context) error {
		all, err := e.Admin.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		ready := 0
		for _, d := range all.Items {
			ready += int(d.Status.AvailableReplicas)
		}
		return lab.ErrorIf(ready < size, "%d of %d run", ready, size)
	})
	s.ready()

	ctx, cancel := context.WithCancel(t.Context())
	var others sync.WaitGroup
	number := seed.Of(t)
	others.Go(func() {
		dice, tick := rand.New(rand.NewPCG(number, 0)), time.NewTicker(200*time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			n.makes(ctx, dice)
			<-tick.C
		}
	})
	defer others.Wait()
	defer cancel()
	began := time.Now()
	s.edit("2")
	e.patched("noise-c0", "web", `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"`+noiseImage+`"}]}}}}`)
	n.delivered(s, "2")
	t.Logf("delivered to %d namespaces in %s", size, time.Since(began).Round(time.Second))
	require.Empty(t, s.shows("2", ran).Failing)
}

// delivered waits until a revision is delivered, and fails at once if it is not to be.
func (n noise) delivered(s *staged, number string) {
	n.Helper()
	n.Eventually(func(context.Context) error {
		one := s.Revision(s.prefix, number)
		if one == nil {
			return fmt.Errorf("no revision %s", number)
		}
		is := one.Annotations[mark.Verdict]
		err := lab.ErrorIf(is != string(revisions.Delivered), "it is %s: %s, with %s", is, one.Annotations[mark.Reason], one.Annotations[mark.Evidence])
		if is == string(revisions.Rejected) || is == string(revisions.Held) {
			err = lab.Permanent(err)
		}
		return err
	})
}
