package workload_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/workload"
)

var birth = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestWhatAPodSaysOfItsContainers(t *testing.T) {
	ended := metav1.NewTime(birth)
	why, crashes, at := workload.PodTrouble(&corev1.Pod{Status: corev1.PodStatus{
		InitContainerStatuses: []corev1.ContainerStatus{{RestartCount: 1}},
		ContainerStatuses: []corev1.ContainerStatus{
			{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}},
			{
				RestartCount: 4000, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: ended}},
			},
		},
	}})
	require.Equal(t, workload.StuckCrashing, why.Reason())
	require.Equal(t, uint16(256), crashes)
	require.Equal(t, birth.Unix(), int64(at))
	require.Zero(t, workload.TroubleOf("NoProgress"))
	for i, reason := range workload.StuckReasons() {
		if reason != workload.StuckDeadline && reason != workload.StuckNoProgress && reason != workload.StuckStanding {
			require.Equal(t, workload.Trouble(i+1), workload.TroubleOf(string(reason)))
			require.Equal(t, reason, workload.TroubleOf(string(reason)).Reason())
		}
	}
}

func TestAPlannedRestartIsNoTrouble(t *testing.T) {
	rule := func(action corev1.ContainerRestartRuleAction, operator corev1.ContainerRestartRuleOnExitCodesOperator, codes ...int32) []corev1.ContainerRestartRule {
		return []corev1.ContainerRestartRule{{Action: action, ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: operator, Values: codes}}}
	}
	const one, all = corev1.ContainerRestartRuleActionRestart, corev1.ContainerRestartRuleActionRestartAllContainers
	const in, notIn = corev1.ContainerRestartRuleOnExitCodesOpIn, corev1.ContainerRestartRuleOnExitCodesOpNotIn
	for sentence, test := range map[string]struct {
		rules []corev1.ContainerRestartRule // of the first container, which exited with 42
		want  uint16                        // restarts of both containers that count
	}{
		"without rules":                          {nil, 6},
		"the exit code is in the list":           {rule(one, in, 1, 42), 3},
		"it is not in the list":                  {rule(one, in, 1), 6},
		"it is not among the others":             {rule(one, notIn, 1), 3},
		"it is among them":                       {rule(one, notIn, 42), 6},
		"all containers are restarted with it":   {rule(all, in, 42), 0},
		"they would be with another exit code":   {rule(all, in, 7), 6},
		"a rule without exit codes says nothing": {[]corev1.ContainerRestartRule{{Action: one}}, 6},
	} {
		t.Run(sentence, func(t *testing.T) {
			status := func(name string, exit int32) corev1.ContainerStatus {
				return corev1.ContainerStatus{
					Name: name, RestartCount: 3, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
					LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: exit}},
				}
			}
			why, crashes, _ := workload.PodTrouble(&corev1.Pod{
				Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "app", RestartPolicyRules: test.rules}, {Name: "sidecar"}}},
				Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{status("app", 42), status("sidecar", 137)}},
			})
			require.Equal(t, test.want, crashes)
			require.Equal(t, test.want > 0, why != 0)
		})
	}
}

func TestAPodIsNotReadyAsLongAsThatIsNotKnown(t *testing.T) {
	condition := func(is corev1.PodConditionType, status corev1.ConditionStatus) corev1.PodCondition {
		return corev1.PodCondition{Type: is, Status: status}
	}
	const balanced = corev1.PodConditionType("example.com/balanced")
	gated := []corev1.PodReadinessGate{{ConditionType: balanced}}
	lost := []corev1.PodCondition{condition(corev1.PodReady, "False"), condition(corev1.ContainersReady, "True")}
	for sentence, test := range map[string]struct {
		conditions []corev1.PodCondition
		want       workload.Readiness
		gates      []corev1.PodReadinessGate
	}{
		"nothing is known":           {nil, workload.NotReady, nil},
		"a gate of it is not known":  {lost, workload.NotReady, gated},
		"a gate of it is closed":     {append([]corev1.PodCondition{condition(balanced, "False")}, lost...), workload.NotReady, gated},
		"its gate is open":           {append([]corev1.PodCondition{condition(balanced, "True")}, lost...), workload.NodeLost, gated},
		"it is ready":                {[]corev1.PodCondition{condition(corev1.PodReady, "True"), condition(corev1.ContainersReady, "True")}, workload.Ready, nil},
		"a container is not":         {[]corev1.PodCondition{condition(corev1.PodReady, "False"), condition(corev1.ContainersReady, "False")}, workload.NotReady, nil},
		"its node stopped reporting": {lost, workload.NodeLost, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			kept := &corev1.Pod{Spec: harnessEnv(), Status: corev1.PodStatus{Conditions: test.conditions}}
			kept.Spec.ReadinessGates = test.gates
			pod, err := workload.KeepPod(kept, workload.ActedOn)
			require.NoError(t, err)
			require.Equal(t, test.want, pod.Readiness)
		})
	}
}

func TestWhoWroteThePodTemplateLast(t *testing.T) {
	entry := func(manager, subresource, fields string, after time.Duration) metav1.ManagedFieldsEntry {
		at := metav1.NewTime(birth.Add(after))
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, Time: &at, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const template, other = `{"f:spec":{"f:template":{}}}`, `{"f:spec":{"f:replicas":{}}}`
	for sentence, test := range map[string]struct {
		entry metav1.ManagedFieldsEntry
		want  bool
	}{
		"somebody, after the restart":        {entry("kubectl", "", template, time.Minute), true},
		"somebody, before it":                {entry("kubectl", "", template, -time.Minute), false},
		"Headwater":                          {entry(mark.FieldManager, "", template, time.Minute), false},
		"somebody who scaled it":             {entry("kubectl", "", other, time.Minute), false},
		"the controller, which wrote status": {entry("kube-controller-manager", "status", template, time.Minute), false},
	} {
		t.Run(sentence, func(t *testing.T) {
			edited := func(annotations map[string]string) bool {
				w, err := workload.KeepRolling(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
					Annotations: annotations, ManagedFields: []metav1.ManagedFieldsEntry{test.entry},
				}, Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: harnessEnv()}}}, workload.ActedOn)
				require.NoError(t, err)
				return w.Edited()
			}
			require.Equal(t, test.want, edited(map[string]string{mark.RestartedAt: mark.FormatTime(birth)}))
			require.False(t, edited(nil), "never restarted")
		})
	}
}
