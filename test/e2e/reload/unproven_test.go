package reload

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/test/lab"
)

// unproven is a canary in which nothing runs a new revision.
type unproven struct {
	// change changes the rule. before is done before the source is edited, and after once
	// the canary has the new value.
	change        func(*staged)
	before, after func(*staged)
}

// reading is a Deployment web of the canary that reads the Secret, as change changes it.
func reading(change func(*appsv1.Deployment)) func(*staged) {
	return func(s *staged) {
		d := lab.Deployment(s.canary, "web", 1, lab.ByEnv("shared", "used"))
		change(d)
		s.Create(s.canary, d)
		if *d.Spec.Replicas > 0 && !d.Spec.Paused {
			s.rolledOut(s.canary, "web")
		}
	}
}

// labelled labels a namespace.
func (s *staged) labelled(namespace, value string) {
	s.Helper()
	_, err := s.Admin.CoreV1().Namespaces().Patch(s.Context(), namespace, types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"stage":%q}}}`, value), metav1.PatchOptions{})
	require.NoError(s, err)
}

var unprovens = map[string]unproven{
	"no-namespace": {change: func(s *staged) { s.selects = "include: [typo-*]" }},
	"no-consumer":  {},
	"no-replicas":  {before: reading(func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32) })},
	"scaled-down": {before: reading(func(*appsv1.Deployment) {}), after: func(s *staged) {
		s.patched(s.canary, "web", `{"spec":{"replicas":0}}`)
	}},
	"partition": {before: func(s *staged) {
		set := lab.StatefulSet(s.canary, "web", 1, lab.ByEnv("shared", "used"))
		set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(1))}
		s.Create(s.canary, set)
		s.RunningPod(s.canary, "web")
	}},
	"on-delete": {before: func(s *staged) {
		set := lab.StatefulSet(s.canary, "web", 1, lab.ByEnv("shared", "used"))
		set.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
		s.Create(s.canary, set)
		s.RunningPod(s.canary, "web")
	}},
	"cron-job": {before: func(s *staged) {
		s.Create(s.canary, lab.CronJob(s.canary, "web", lab.ByEnv("shared", "used")))
	}},
	"opted-out": {before: reading(func(d *appsv1.Deployment) { d.Annotations = map[string]string{mark.Reload: "Off"} })},
	"paused":    {before: reading(func(d *appsv1.Deployment) { d.Spec.Paused = true })},
	"failing-before": {before: func(s *staged) {
		s.Create(s.canary, lab.Deployment(s.canary, "web", 1, lab.ByEnv("shared", "used")))
		s.isCrashing(s.canary, "web")
	}},
	"foreign-object": {
		change: func(s *staged) {
			s.selects = fmt.Sprintf("include: [%s-b]", s.prefix)
			s.Namespace(s.prefix + "-b")
			s.Secret(s.prefix+"-b", "shared", map[string]string{"used": "theirs"})
		},
		before: func(s *staged) { s.serving(s.prefix+"-b", "web", 1, lab.ByEnv("shared", "used")) },
	},
	"deleted": {before: reading(func(*appsv1.Deployment) {}), after: func(s *staged) {
		require.NoError(s, s.Admin.CoreV1().Namespaces().Delete(s.Context(), s.canary, metav1.DeleteOptions{}))
	}},
	"relabelled": {
		change: func(s *staged) { s.selects = "selector: {matchLabels: {stage: " + s.prefix + "}}" },
		before: func(s *staged) {
			s.labelled(s.canary, s.prefix)
			s.serving(s.canary, "web", 1, lab.ByEnv("shared", "used"))
		},
		after: func(s *staged) { s.labelled(s.canary, "none") },
	},
	"tolerated": {change: func(s *staged) { s.gate = ", maxUnhealthy: 1" }, before: reading(func(*appsv1.Deployment) {}), after: func(s *staged) {
		s.isCrashing(s.canary, "web")
	}},
	"other-key": {before: func(s *staged) { s.serving(s.canary, "web", 1, lab.ByEnv("shared", "unused")) }},
}

// Invariant D10: where nothing in the canary runs the revision, there is no verdict. It is
// reported once, and the delivery goes on by itself when something runs it.
func TestWhatNothingRunsIsNeitherPassedNorRejected(t *testing.T) {
	e := newEnv(t)
	all, rules := map[string]*staged{}, ""
	for name, row := range unprovens {
		s := newStaged(e, name, func(s *staged) {
			s.timeout = "15s"
			if row.after != nil { // which is to come before that
				s.timeout = "1h"
			}
			if row.change != nil {
				row.change(s)
			}
		})
		all[name] = s
		rules += s.rule()
	}
	e.RuleStatuses() // by which commands go
	h := e.Start(rules)
	for _, s := range all {
		s.h = h
		s.begun()
	}
	e.SecondLater()
	for name, s := range all {
		if before := unprovens[name].before; before != nil {
			before(s)
		}
		s.serving(s.rest, "web", 1, lab.ByEnv("shared", "used"))
	}
	e.SettledFor(h, lab.Settle)
	e.SecondLater()
	for _, s := range all {
		s.edit("2")
	}
	for name, s := range all {
		after := unprovens[name].after
		if after == nil {
			continue
		}
		s.HasClone(s.canary, "shared", map[string]string{"used": "2", "unused": "1"})
		s.shows("2", waits)
		after(s)
	}
	for name, s := range all {
		if unprovens[name].after != nil {
			s.shows("2", func(e revisions.Evidence) bool { return !waits(e) })
		}
	}
	e.ConfigFile(strings.ReplaceAll(rules, "timeout: 1h", "timeout: 15s"))
	for name, s := range all {
		t.Run(name, func(t *testing.T) {
			s := *s
			s.env = &env{e.Of(t)}
			s.HasNote(s.prefix+"-src", "shared", "NoEvidence", "promote "+s.prefix+" --unproven")
			s.verdict("2", revisions.Delivering)
			require.Equal(t, "1", string(s.Get(s.rest, "shared").Data["used"]))
		})
	}
	e.HasMetric(h, 0, "headwater_delivery_failures_total", nil)
	e.HasMetric(h, float64(len(all)), "headwater_delivery_waits", map[string]string{"for": "NoEvidence"})
	out, _, exit := e.Command(e.Viewer("unproven-viewer"), "plan", "--config", e.Dir+"/headwater.yaml")
	require.Zero(t, exit)
	const nothing = ", so nothing can prove a value there: check what it selects; rest has "
	require.Contains(t, out, "no-namespace: stages: canary has 0 namespaces and 0 consumers"+nothing+"2 namespaces and 1 consumer\n")
	require.Contains(t, out, "no-replicas: stages: canary has 1 namespace and 1 consumer, 1 of them idle"+nothing+"1 namespace and 1 consumer\n")

	e.HasNote("no-namespace-src", "shared", "EmptyStage", "no namespace is in stage canary now, so it proves nothing")

	// From now on a rollout has all the time that it takes.
	e.ConfigFile(strings.ReplaceAll(rules, "timeout: 15s", "timeout: 1h"))
	e.HasMetric(h, 2, "headwater_config_reloads_total", map[string]string{"result": "applied"})
	s := all["no-replicas"]
	before := s.Stamps(s.rest)
	s.patched(s.canary, "web", `{"spec":{"replicas":1}}`)
	s.rolledOut(s.canary, "web")
	s.has("2")
	s.Restarted(s.rest, before, "Deployment/web")
	s.rolledOut(s.rest, "web")
	s.verdict("2", revisions.Delivered)

	// Somebody answers for the canary alone: the next stage still takes evidence of its own.
	waived := all["no-consumer"]
	before = waived.Stamps(waived.rest)
	user := "unproven-steers"
	require.NoError(t, lab.Bind(t.Context(), e.Admin, "headwater-view", user))
	require.NoError(t, lab.BindIn(t.Context(), e.Admin, lab.Namespace, "headwater-deliver", user))
	e.Reported(waived.prefix)
	_, problem, exit := e.Command(user, "promote", waived.prefix, "--unproven")
	require.Zero(t, exit, problem)
	waived.has("2")
	waived.verdict("2", revisions.Delivering)
	waived.Restarted(waived.rest, before, "Deployment/web")
	waived.rolledOut(waived.rest, "web")
	waived.verdict("2", revisions.Delivered)
	for _, s := range all {
		require.Equal(t, s == all["no-replicas"] || s == waived, e.HeldBy(s.rest, "shared", "used")["2"], s.prefix)
	}
}
