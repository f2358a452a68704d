package reload

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/harness"
)

// deliveredRule delivers to the namespaces PREFIX-a and PREFIX-b before others.
func deliveredRule(prefix, onFailure string) string {
	return fmt.Sprintf("\n- name: %[1]s\n  source: {kind: Secret, namespace: %[1]s-src, name: shared}\n"+
		"  sync: {namespaces: {include: [\"%[1]s-*\"]}, delivery: {onFailure: %[2]s, stages: [{name: canary, namespaces: {include: [%[1]s-a, %[1]s-b]}}]}}\n"+
		"  reload: {debounce: 0s, minInterval: 0s}\n", prefix, onFailure)
}

// deliver starts the rule, whose first revision is delivered to two namespaces: canary,
// where a Deployment web of so many pods reads it, and rest, of a later stage.
func (e *env) deliver(prefix, onFailure string, replicas int32) (h *harness.Headwater, canary, rest string) {
	e.Helper()
	e.Node(prefix + "-node")
	canary, rest = e.Stage(prefix), e.Namespace(prefix+"-z")
	h = e.Start(deliveredRule(prefix, onFailure))
	e.verdict(prefix, "1", "Delivered")
	for _, namespace := range []string{canary, rest} {
		e.HasClone(namespace, "shared", map[string]string{"used": "1", "unused": "1"})
	}
	e.serving(canary, "web", replicas, harness.ByEnv("shared", "used"))
	e.Settled(h)
	e.SecondLater()
	return h, canary, rest
}

// verdict waits until the revision of the rule with that number has the verdict.
func (e *env) verdict(rule, number, want string) {
	e.Helper()
	e.Eventually(func(ctx context.Context) error {
		all, err := e.Admin.CoreV1().Secrets(harness.Namespace).List(ctx, metav1.ListOptions{
			LabelSelector: mark.Rule + "=" + rule + "," + mark.Revision + "=" + number,
		})
		if err != nil {
			return err
		}
		for _, one := range all.Items {
			if one.Annotations[mark.Verdict] == want {
				return nil
			}
			err = fmt.Errorf("revision %s is %s: %s", number, one.Annotations[mark.Verdict], one.Annotations[mark.Reason])
		}
		return fmt.Errorf("no revision %s that is %s: %w", number, want, err)
	})
}

func (e *env) reports(namespace string, matches func(string) bool) {
	e.Helper()
	e.Eventually(func(context.Context) error {
		if is := e.Get(namespace, "shared").Annotations[mark.Consumers]; !matches(is) {
			return fmt.Errorf("the clone in %s says: %q", namespace, is)
		}
		return nil
	})
}

func is(want string) func(string) bool { return func(got string) bool { return got == want } }

func TestADeliveryGoesOnWhenTheConsumersOfItsStageAreHealthy(t *testing.T) {
	e := newEnv(t)
	e.Namespace("rep-b") // has no consumers
	h, canary, rest := e.deliver("rep", "Rollback", 2)

	e.Change("rep", "used", "2")
	e.reports(canary, is("2 Pending: Deployment/web: rollout in progress"))
	e.HasClone(rest, "shared", map[string]string{"used": "1", "unused": "1"})
	e.rolledOut(canary, "web")
	e.verdict("rep", "2", "Delivered")
	e.HasClone(rest, "shared", map[string]string{"used": "2", "unused": "1"})
	e.reports(canary, is("2 Healthy"))
	require.Empty(t, e.Get("rep-b", "shared").Annotations[mark.Consumers], "a clone without consumers costs no write")
	e.Settled(h)
	quiet := e.Cluster.Mark()
	e.Stays(e.NoWrites(quiet))
}

// Invariant D2, with consumers.
func TestARevisionThatBreaksAConsumerIsTakenBack(t *testing.T) {
	e := newEnv(t)
	_, canary, rest := e.deliver("bad", "Rollback", 2)

	e.Change("bad", "used", "2")
	e.crashing(canary, "web")
	e.verdict("bad", "2", "Rejected")
	for _, namespace := range []string{canary, rest} {
		e.HasClone(namespace, "shared", map[string]string{"used": "1", "unused": "1"})
	}
	note := e.HasEvent("bad-src", "shared", "DeliveryRolledBack")
	require.Contains(t, note, "bad-a (Deployment/web: ")
	require.Contains(t, note, "every clone gets revision 1 again")
}

func TestABadRevisionAfterAHeldOneIsHeldToo(t *testing.T) {
	e := newEnv(t)
	h, canary, rest := e.deliver("held", "Hold", 2)

	e.Change("held", "used", "2")
	e.crashing(canary, "web")
	e.verdict("held", "2", "Held")
	e.replaceCrashing(canary, "web") // as people do
	e.crashing(canary, "web")
	e.Settled(h)
	e.SecondLater()
	e.Change("held", "used", "3")
	e.reports(canary, func(got string) bool {
		e.crashing(canary, "web")
		return strings.HasPrefix(got, "3 Unhealthy: Deployment/web: CrashLoopBackOff")
	})
	e.verdict("held", "3", "Held")
	e.HasClone(rest, "shared", map[string]string{"used": "1", "unused": "1"})

	e.replaceCrashing(canary, "web")
	e.rolledOut(canary, "web")
	e.reports(canary, is("3 Healthy"))
}

// replaceCrashing deletes the crashing pods of a Deployment.
func (e *env) replaceCrashing(namespace, name string) {
	e.Helper()
	pods, err := e.Admin.CoreV1().Pods(namespace).List(e.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
	require.NoError(e, err)
	deleted := 0
	for _, pod := range pods.Items {
		if len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].State.Waiting != nil {
			require.NoError(e, e.Admin.CoreV1().Pods(namespace).Delete(e.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
			deleted++
		}
	}
	require.Positive(e, deleted)
}

func TestAWorkloadOutsideItsWindowHoldsTheStage(t *testing.T) {
	e := newEnv(t)
	e.Sections = "reload: {windows: [{schedule: 0 0 29 2 *, duration: 1h, timeZone: Europe/Berlin}]}\n"
	_, canary, _ := e.deliver("win", "Rollback", 1)
	e.Change("win", "used", "2")
	e.reports(canary, func(got string) bool {
		return strings.HasPrefix(got, "2 Pending: Deployment/web: waits for its window")
	})
	e.verdict("win", "2", "Delivering")
}
