package scenario

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/lab"
)

const (
	shop     = "shop"
	recorder = "recorder"
)

// runShop ends at once with a limit that nobody can pay with.
const runShop = `[ "$LIMIT" -gt 0 ] || { echo "the limit is $LIMIT" >&2; exit 1; }; exec sleep infinity`

// runRecorder writes down every value that its mounted file ever has.
const (
	readValues  = "/tmp/values"
	runRecorder = `last=; while true; do
now=$(cat /shared/limit)
if [ "$now" != "$last" ]; then echo "$now" >>` + readValues + `; last=$now; fi
usleep 50000
done`
)

// openShops creates the consumers, and waits until they run and Headwater has
// recorded what with.
func (s *Story) openShops(ctx context.Context) error {
	byEnv := lab.ByNothing()
	byEnv.Containers[0].Command = []string{"sh", "-c", runShop}
	byEnv.Containers[0].Env = []corev1.EnvVar{{Name: "LIMIT", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: settingsName}, Key: "limit",
	}}}}
	byVolume := lab.ByVolume("")
	byVolume.Containers[0].Command = []string{"sh", "-c", runRecorder}
	byVolume.Volumes[0].VolumeSource = corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: settingsName},
	}}
	for _, namespace := range shops {
		deployments := s.admin.AppsV1().Deployments(namespace)
		if _, err := deployments.Create(ctx, lab.Deployment(namespace, shop, 1, byEnv), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create deployment: %w", err)
		}
		if namespace == shopCanary {
			continue
		}
		if _, err := deployments.Create(ctx, lab.Deployment(namespace, recorder, 1, byVolume), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create deployment: %w", err)
		}
	}
	return s.eventuallyInShops(s.shopsRun)(ctx)
}

// shopsRun is the condition that every rollout is complete, and that Headwater
// knows the data that it runs.
func (s *Story) shopsRun(ctx context.Context) error {
	for _, namespace := range shops {
		list, err := s.admin.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("list deployments: %w", err)
		}
		for _, d := range list.Items {
			if err := lab.RolledOut(&d); err != nil {
				return err
			}
			if d.Annotations[mark.Baseline] == "" && d.Name == shop {
				return fmt.Errorf("%s in %s has no baseline yet", d.Name, namespace)
			}
		}
	}
	return nil
}

// eventuallyInShops waits for condition. Where there is no kubelet, the scenario
// plays it meanwhile.
func (s *Story) eventuallyInShops(condition func(context.Context) error) func(context.Context) error {
	return eventually(func(ctx context.Context) error {
		if s.options.Node == nil {
			if err := s.playKubelet(ctx); err != nil {
				return err
			}
		}
		return condition(ctx)
	})
}

// playKubelet reports for each new pod what a kubelet would: that it runs, or
// that it crashes, by the limit that its namespace has.
func (s *Story) playKubelet(ctx context.Context) error {
	return notYet(lab.PlayPods(ctx, s.admin, "status.phase=Pending", func(ctx context.Context, pod *corev1.Pod) (lab.Health, error) {
		if !slices.Contains(shops, pod.Namespace) {
			return lab.Waits, nil
		}
		clone, err := s.admin.CoreV1().ConfigMaps(pod.Namespace).Get(ctx, settingsName, metav1.GetOptions{})
		if err == nil && clone.Data["limit"] == "0" {
			return lab.Crashes, nil
		}
		return lab.Runs, err
	}))
}

// moment is when something was first seen.
type moment struct {
	seen chan time.Time
	at   time.Time
}

// happened fails until it was seen.
func (m *moment) happened(context.Context) error {
	select {
	case m.at = <-m.seen:
	default:
	}
	return lab.ErrorIf(m.at.IsZero(), "it has not happened yet")
}

// verdictTimes are when the kubelet reported the crash loop, and when Headwater
// rejected the revision.
type verdictTimes struct{ crashed, rejected *moment }

// watchVerdict watches for them until ctx ends.
func (s *Story) watchVerdict(ctx context.Context) (times verdictTimes, err error) {
	pods, err := s.admin.CoreV1().Pods(shopCanary).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return times, fmt.Errorf("watch pods: %w", err)
	}
	revisions, err := s.admin.CoreV1().ConfigMaps(lab.Namespace).Watch(ctx, metav1.ListOptions{LabelSelector: mark.Revision + "=3"})
	if err != nil {
		return times, fmt.Errorf("watch revisions: %w", err)
	}
	times.crashed = firstSeen(pods, func(pod *corev1.Pod) bool {
		return len(pod.Status.ContainerStatuses) > 0 && lab.InCrashLoop(pod.Status.ContainerStatuses[0])
	})
	times.rejected = firstSeen(revisions, func(revision *corev1.ConfigMap) bool { return revision.Annotations[mark.Verdict] == "Rejected" })
	return times, nil
}

// firstSeen is when an object of events first is as wanted.
func firstSeen[T any](events watch.Interface, wanted func(T) bool) *moment {
	m := &moment{seen: make(chan time.Time, 1)}
	go func() {
		defer events.Stop()
		for event := range events.ResultChan() {
			if object, ok := event.Object.(T); ok && wanted(object) {
				m.seen <- time.Now()
				return
			}
		}
	}()
	return m
}

// tellWhatWasRead shows, on a real node, what the containers in the later stages
// have read.
func (s *Story) tellWhatWasRead(ctx context.Context) error {
	if s.options.Node == nil {
		return nil
	}
	for _, namespace := range shops[1:] {
		var read string
		what := fmt.Sprintf("the container in %s that writes down every value it reads has never read the 0", namespace)
		err := s.play(ctx, step{what: what, do: eventually(func(ctx context.Context) error {
			container, err := s.containerIn(ctx, namespace, recorder)
			if err != nil {
				return err
			}
			if read, err = container.File(readValues); err != nil {
				return fmt.Errorf("read what it wrote down: %w", err)
			}
			return lab.ErrorIf(read != "100\n200\n", "it read %q", read)
		}), say: func() string { return strings.TrimSpace(read) }})
		if err != nil {
			return err
		}
	}
	return nil
}
