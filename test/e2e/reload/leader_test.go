package reload

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/test/lab"
	"github.com/headwater-k8s/headwater/test/seed"
)

// failing plays the kubelet of the one pod of the Deployment web in the canary, which ran
// and does not any more. again is true if its container was started once more and runs.
func (s *staged) failing(again bool) {
	s.Helper()
	s.Eventually(func(ctx context.Context) error {
		pods, err := s.podsOf(ctx, s.canary, "web")
		pods = slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
		if err != nil || len(pods) != 1 {
			return fmt.Errorf("%d pods (%w)", len(pods), err)
		}
		if !again {
			return lab.SetCrashing(ctx, s.Admin, &pods[0])
		}
		pods[0].Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "app", RestartCount: 3, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: metav1.Now()}},
		}}
		_, err = s.Admin.CoreV1().Pods(s.canary).UpdateStatus(ctx, &pods[0], metav1.UpdateOptions{})
		return err
	})
}

// holder is who has the lease.
func (e *env) holder() string {
	e.Helper()
	return *lab.Read(e, e.Admin.CoordinationV1().Leases(lab.Namespace).Get, "headwater").Spec.HolderIdentity
}

// released ends the lease of a process that was killed, unless another has it by now.
func (e *env) released(killed string) {
	e.Helper()
	e.Eventually(func(ctx context.Context) error {
		lease, err := e.Admin.CoordinationV1().Leases(lab.Namespace).Get(ctx, "headwater", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if *lease.Spec.HolderIdentity != killed {
			return nil
		}
		lease.Spec.HolderIdentity = new(string)
		_, err = e.Admin.CoordinationV1().Leases(lab.Namespace).Update(ctx, lease, metav1.UpdateOptions{})
		return err
	})
}

// Invariant D11: in 20 deliveries, the leader is killed in the soak, what it saw begins to
// fail, and another process leads after the soak would have ended.
func TestNoBadValuePassesWhenTheLeaderIsKilledInTheSoak(t *testing.T) {
	const soak, sources = 10 * time.Second, 5
	rounds := int(seed.Number(t, "HEADWATER_KILLS", 4))
	e := newEnv(t)
	var all []*staged
	rules := ""
	for i := range sources {
		// The soak does not end before the leader is killed, however long that takes.
		s := newStaged(e, fmt.Sprint("lead", i), func(s *staged) { s.soak, s.pace = "1h", "minInterval: 0s, maxRestartsPerHour: 0" })
		all = append(all, s)
		rules += s.rule()
	}
	short := strings.ReplaceAll(rules, "soak: 1h", "soak: "+soak.String())
	reloads := map[*lab.Headwater]float64{}
	configured := func(h *lab.Headwater, rules string) {
		e.ConfigFile(rules)
		reloads[h]++
		e.HasMetric(h, reloads[h], "headwater_config_reloads_total", map[string]string{"result": "applied"})
	}
	leader := e.Start(rules)
	e.Webhook = "127.0.0.1:0" // no rule protects
	next := e.Start(rules)
	for _, s := range all {
		s.begun()
		s.serving(s.canary, "web", 1, lab.ByEnv("shared", "used"))
	}
	for round := range rounds {
		e.SettledFor(leader, lab.Settle)
		e.SecondLater()
		number := strconv.Itoa(round + 2)
		for _, s := range all {
			s.edit("bad-" + number)
		}
		bad := map[*staged]string{} // the stamps
		for _, s := range all {
			s.shows(number, waits)
			s.runs("web")
			bad[s] = s.Stamps(s.canary)["Deployment/web"]
		}
		for _, s := range all {
			s.shows(number, func(e revisions.Evidence) bool { return ran(e) && !waits(e) })
		}
		killed := e.holder()
		leader.Kill()
		configured(next, short)
		for i, s := range all {
			s.failing(i%2 == 1)
		}
		e.Holds(soak, func(context.Context) error { return nil })
		e.released(killed)
		leader = next
		for _, s := range all {
			s.verdict(number, revisions.Rejected)
			s.HasClone(s.canary, "shared", map[string]string{"used": "1", "unused": "1"})
		}
		for _, s := range all {
			s.Eventually(func(context.Context) error {
				return lab.ErrorIf(s.Stamps(s.canary)["Deployment/web"] == bad[s], "it was not restarted for the rollback")
			})
			s.rolledOut(s.canary, "web")
		}
		configured(leader, rules)
		next = e.Start(rules)
	}
	for _, s := range all {
		require.Equal(t, map[string]bool{"1": true}, e.HeldBy(s.rest, "shared", "used"), "%s, by etcd's history", s.prefix)
	}
}
