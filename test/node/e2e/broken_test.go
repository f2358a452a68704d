//go:build node

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/test/lab"
)

// breaking is a value that breaks a consumer in its own way. The name is that of the
// Secret, of its rule and of the consumer.
type breaking struct {
	// stage is more of the canary stage.
	stage string
	// byFile is true if the consumer only mounts the Secret.
	byFile bool
	// run is what the consumer does in the canary, and rest in the last stage.
	run, rest string
	// beside is another consumer of the canary.
	beside string
	// ready is its readiness probe.
	ready string
	// before is done just before the edit.
	before func(e *env, name string)
	// verdicts are the right ones, and in is the stage in which it fails.
	verdicts []string
	in       string
}

const (
	runsOn = `exec sleep infinity`
	// crashesLate is 20 seconds after its start.
	crashesLate = `echo "$VALUE" >>/written/limits; [ "$VALUE" -gt 0 ] && exec sleep infinity; sleep 20; exit 1`
	// startsSlowly is ready, or fails, after 15 seconds.
	startsSlowly = `echo "$VALUE" >>/written/limits; sleep 15; touch /tmp/ready; [ "$VALUE" -gt 0 ] && exec sleep infinity`
	// startsByFile reads its file when it starts, and never again.
	startsByFile = `now=$(cat /shared/limit); echo "$now" >>/written/limits; [ "$now" -gt 0 ] && exec sleep infinity`
)

var breakings = map[string]breaking{
	"late":     {stage: "soak: 1m", run: crashesLate, rest: crashesLate, verdicts: []string{"Rejected"}, in: "canary"},
	"last":     {stage: "soak: 5s", run: runsOn, rest: runByEnv, verdicts: []string{"Rejected"}, in: "rest"},
	"slow":     {stage: "soak: 5s", run: startsSlowly, rest: runByEnv, beside: runsOn, ready: "test -e /tmp/ready", verdicts: []string{"Rejected"}, in: "canary"},
	"file":     {stage: "soak: 5s, restart: true", byFile: true, run: startsByFile, rest: startsByFile, verdicts: []string{"Rejected"}, in: "canary"},
	"recreate": {stage: "soak: 5s", run: runByEnv, rest: runByEnv, before: rollsOut, verdicts: []string{"Rejected", "Held"}, in: "canary"},
}

// rollsOut begins a rollout of somebody else that ends all pods before it starts others.
func rollsOut(e *env, name string) {
	_, err := e.Admin.AppsV1().Deployments(team).Patch(e.Context(), name, types.StrategicMergePatchType,
		[]byte(`{"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"},"template":{"metadata":{"annotations":{"version":"2"}}}}}`), metav1.PatchOptions{})
	require.NoError(e, err)
}

func (b breaking) spec(name, run string) corev1.PodSpec {
	spec := lab.ByEnv(name, "limit")
	if b.byFile {
		spec = lab.ByVolume(name)
	}
	spec.Containers[0].Command = []string{"sh", "-c", run}
	if b.ready != "" && run == b.run {
		spec.Containers[0].ReadinessProbe = &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", b.ready}}},
			PeriodSeconds: 1, FailureThreshold: 1, TimeoutSeconds: 20,
		}
	}
	return spec
}

// Invariants D1 and D2, by what containers read.
func TestWhateverAValueBreaksItIsTakenBack(t *testing.T) {
	e := newEnv(t)
	e.namespace(platform)
	e.namespace(team, "stage=canary")
	e.namespace(rest)
	var rules string
	for name, b := range breakings {
		e.Secret(platform, name, map[string]string{"limit": "100"})
		rules += strings.Replace(deliveredRule(name), "soak: 5s", b.stage, 1)
	}
	h := e.Start(rules)
	for name := range breakings {
		e.Verdict(name, "1", revisions.Delivered)
	}
	e.SecondLater() // so that it is known which value a pod started with
	for name, b := range breakings {
		e.deployWriter(rest, name, b.spec(name, b.rest))
		e.deployWriter(team, name, b.spec(name, b.run))
		if b.beside != "" {
			e.deployWriter(team, name+"-beside", b.spec(name, b.beside))
		}
	}
	for name := range breakings {
		e.available(name)
		e.runs(rest, name)
	}
	e.SettledFor(h, settle)
	e.SecondLater()
	for name, b := range breakings {
		if b.before != nil {
			b.before(e, name)
		}
		e.Edit(platform, name, func(s *corev1.Secret) { s.Data["limit"] = []byte("0") })
	}
	for name, b := range breakings {
		t.Run(name, func(t *testing.T) {
			e := e.of(t)
			var verdict, reason string
			e.Eventually(func(context.Context) error {
				if one := e.Revision(name, "2"); one != nil {
					verdict, reason = one.Annotations[mark.Verdict], one.Annotations[mark.Reason]
				}
				return lab.ErrorIf(!slices.Contains(b.verdicts, verdict), "revision 2 is %s: %s", verdict, reason)
			})
			if verdict == "Rejected" {
				require.Contains(t, reason, fmt.Sprintf("stage %s: ", b.in))
				e.takenBack(name)
			}
			if b.in == "canary" {
				require.Equal(t, "100\n", e.written(rest, name))
			}
		})
	}
}
