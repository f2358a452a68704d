package sync

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/inspect"
	"github.com/headwater-k8s/headwater/sync/survey"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/e2e"
	"github.com/headwater-k8s/headwater/test/harness"
	"github.com/headwater-k8s/headwater/test/process"
)

func TestStatusSaysHowTheClonesStand(t *testing.T) {
	e := newEnv(t)
	f := newFleet(e, "stand", 4, "")
	e.NoSecrets(f.name(1))
	e.Secret(f.name(2), "shared", map[string]string{"k": "theirs"})
	h := e.Start(f.rules)
	e.HasClone(f.name(0), "shared", map[string]string{"k": "v"})
	e.HasClone(f.name(3), "shared", map[string]string{"k": "v"})
	e.Edit("stand-src", "shared", func(s *corev1.Secret) { s.Data["k"] = []byte("s3cret") })
	e.HasClone(f.name(3), "shared", map[string]string{"k": "s3cret"})
	require.Contains(t, e.HasEvent(f.name(1), "shared", "CloneFailed"), "exceeded quota")
	require.Contains(t, e.HasEvent("stand-src", "shared", "Propagated"), "2 clones written in")
	e.HasMetric(h, 1, "headwater_sync_clone_failing", map[string]string{"rule": "stand", "namespace": f.name(1)})
	e.HasMetric(h, 1, "headwater_sync_clones", map[string]string{"rule": "stand", "state": "failed"})
	h.Stop()
	e.Edit(f.name(3), "shared", func(s *corev1.Secret) { s.Data["k"] = []byte("edited") })

	user, file := e.Viewer("stand-viewer"), e.ConfigFile(f.rules)
	var status inspect.Status
	require.Equal(t, 2, e.Status(user, &status, "--config", file))
	require.Len(t, status.Rules, 1)
	rule := status.Rules[0]
	require.Equal(t, map[survey.Status]int{survey.Current: 1, survey.Failed: 1, survey.Conflicting: 1, survey.Drifting: 1}, rule.Clones)
	require.Len(t, rule.Problems, 3)
	source := rule.Sources[0]
	require.True(t, source.Exists)
	require.NotNil(t, source.LastChange)
	require.NotNil(t, source.Propagation)
	require.Equal(t, 2, source.Propagation.Clones)
	require.NotNil(t, status.Leader)
	require.False(t, status.Leader.Leads)

	out, problem, exit := e.Command(user, "status", "--config", file)
	require.Equal(t, 2, exit, problem)
	for _, part := range []string{
		"RULE", "DRIFTING", "stand: 1 clone failed (Missing): stand-1/shared\n  create Secret/stand-1/shared", "exceeded quota",
		"stand: 1 clone in conflict (Conflict): stand-2/shared\n", "to 2 clones in", "No replica leads, since ",
	} {
		require.Contains(t, out, part)
	}
	require.NotContains(t, out, "s3cret")
	out, _, exit = e.Command(user, "status", "--config", file, "-o", "yaml")
	require.Equal(t, 2, exit)
	require.Contains(t, out, "name: stand")

	_, problem, exit = e.Command("stand-nobody", "status", "--config", file)
	require.Equal(t, 1, exit)
	require.Contains(t, problem, "missing permissions: bind ClusterRole headwater-inspect to stand-nobody (deploy/rbac.yaml)")
	require.Contains(t, problem, "configmaps cluster-wide: get")
	_, problem, exit = e.Command(user, "status")
	require.Equal(t, 1, exit)
	require.Contains(t, problem, "there is no ConfigMap headwater-system/headwater, key headwater.yaml; pass --config FILE")
}

func TestEventsAndStatusFollowWhatIsNews(t *testing.T) {
	e := newEnv(t)
	f := newFleet(e, "news", 3, "")
	e.NoSecrets(f.name(1))
	h := e.Start(f.rules)
	e.HasNote(f.name(1), "shared", "CloneFailed", "exceeded quota: none")
	e.HasClone(f.name(0), "shared", map[string]string{"k": "v"})
	user, file := e.Viewer("news-viewer"), e.ConfigFile(f.rules)

	other := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{"count/secrets": resource.MustParse("0")},
	}}
	_, err := e.Admin.CoreV1().ResourceQuotas(f.name(1)).Create(t.Context(), other, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, e.Admin.CoreV1().ResourceQuotas(f.name(1)).Delete(t.Context(), "none", metav1.DeleteOptions{}))
	e.HasNote(f.name(1), "shared", "CloneFailed", "exceeded quota: other")
	out, problem, exit := e.Command(user, "status", "--config", file)
	require.Equal(t, 2, exit, problem)
	require.NotContains(t, out, "No replica leads")
	require.Contains(t, out, "exceeded quota: other")
	require.NotContains(t, out, "exceeded quota: none")

	require.NoError(t, e.Admin.CoreV1().ResourceQuotas(f.name(1)).Delete(t.Context(), "other", metav1.DeleteOptions{}))
	f.allHave("v")
	e.Settled(h)
	e.Edit("news-src", "shared", func(s *corev1.Secret) { s.Data["k"] = []byte("v2") })
	e.HasNote("news-src", "shared", "Propagated", "3 clones written in")
	require.NoError(t, e.Admin.CoreV1().Namespaces().Delete(t.Context(), f.name(2), metav1.DeleteOptions{}))
	e.HasNone(f.name(2), "shared")
	e.Edit("news-src", "shared", func(s *corev1.Secret) { s.Data["k"] = []byte("v3") })
	e.HasNote("news-src", "shared", "Propagated", "2 clones written in")
	out, problem, exit = e.Command(user, "status", "--config", file)
	require.Zero(t, exit, problem)
	require.Contains(t, out, "to 2 clones in")
}

// A failure that is over is none of a clone that is behind for another reason.
func TestStatusTellsNoOldStories(t *testing.T) {
	e := newEnv(t)
	f := newFleet(e, "old", 3, "")
	for i := range f.n {
		e.NoSecrets(f.name(i))
	}
	h := e.Start(f.rules)
	for i := range f.n {
		e.HasNote(f.name(i), "shared", "CloneFailed", "exceeded quota")
		require.NoError(t, e.Admin.CoreV1().ResourceQuotas(f.name(i)).Delete(t.Context(), "none", metav1.DeleteOptions{}))
	}
	f.allHave("v")
	h.Stop()

	user, file := e.Viewer("old-viewer"), e.ConfigFile(f.rules)
	// The API server notes the second of an edit: one in that of the failure may
	// be the older.
	stands := func(namespace string, want map[survey.Status]int) {
		t.Helper()
		tries := 0
		e.Eventually(func(context.Context) error {
			tries++
			e.Edit(namespace, "shared", func(s *corev1.Secret) { s.Data["k"] = fmt.Append(nil, "edited ", tries) })
			var status inspect.Status
			e.Status(user, &status, "--config", file)
			if got := status.Rules[0].Clones; !maps.Equal(got, want) {
				return fmt.Errorf("%v, want %v", got, want)
			}
			return nil
		})
	}
	stands(f.name(0), map[survey.Status]int{survey.Current: 2, survey.Drifting: 1})
	stands("old-src", map[survey.Status]int{survey.Behind: 3})
}

func TestASourceThatIsNotThereIsTold(t *testing.T) {
	e := newEnv(t)
	f := newFleet(e, "lost", 2, "")
	label := "- name: lost-label\n  source: {kind: Secret, namespace: lost-src, selector: {matchLabels: {share: nobody}}}\n  sync: {}\n  protect: {}\n"
	typo := "- name: lost-typo\n  source: {kind: Secret, namespace: lost-scr, name: shared}\n  sync: {}\n"
	h := e.Start(f.rules + label + typo)
	f.allHave("v")
	e.HasNote(harness.Namespace, harness.Namespace, "SourceMissing", "Secret/lost-scr/shared does not exist")
	e.HasMetric(h, 0, "headwater_sync_sources_missing", map[string]string{"rule": "lost"})
	e.HasMetric(h, 1, "headwater_sync_sources_missing", map[string]string{"rule": "lost-label"})
	e.HasMetric(h, 1, "headwater_sync_sources_missing", map[string]string{"rule": "lost-typo"})

	require.NoError(t, e.Admin.CoreV1().Secrets("lost-src").Delete(t.Context(), "shared", metav1.DeleteOptions{}))
	e.HasNote("lost-src", "shared", "SourceMissing", "existing clones stay as they are")
	e.HasMetric(h, 1, "headwater_sync_sources_missing", map[string]string{"rule": "lost"})
	user, file := e.Viewer("lost-viewer"), e.ConfigFile(f.rules+label+typo)
	for command, want := range map[string]int{"status": 2, "plan": 0} {
		out, problem, exit := e.Command(user, command, "--config", file)
		require.Equal(t, want, exit, problem)
		require.Contains(t, out, "lost: its source Secret/lost-src/shared does not exist")
		require.Contains(t, out, "lost-label: no object matches its source Secret/lost-src/(share=nobody)")
	}
	out, problem, exit := e.Command(user, "status", "--config", file)
	require.Equal(t, 2, exit, problem)
	require.Contains(t, out, "not tried: no object matches its source")

	e.Secret("lost-src", "shared", map[string]string{"k": "v2"})
	f.allHave("v2")
	e.HasMetric(h, 0, "headwater_sync_sources_missing", map[string]string{"rule": "lost"})
}

func TestStatusWatchShowsAChangeSpreading(t *testing.T) {
	e := newEnv(t)
	f := newFleet(e, "spread", 3, "")
	e.NoSecrets(f.name(1))
	h := e.Start(f.rules)
	e.HasClone(f.name(0), "shared", map[string]string{"k": "v"})
	e.HasEvent(f.name(1), "shared", "CloneFailed")
	user := e.Viewer("spread-viewer")
	tables, lines := f.watched(user), f.watched(user, "-o", "json")
	// As status says it, by the same words.
	const failed = "spread: 1 clone failed (Missing): spread-1/shared\n"
	out, problem, exit := e.Command(user, "status", "--config", f.ConfigFile(f.rules))
	require.Equal(t, 2, exit, problem)
	require.Contains(t, out, failed)
	tables.show(time.Now().UTC().Format("2006-01-02T"))
	tables.show(failed)
	lines.show(`"clones":{"current":2,"failed":1}`)
	h.Stop()
	tables.show("No replica leads, since ")
	e.Edit("spread-src", "shared", func(s *corev1.Secret) { s.Data["k"] = []byte("v2") })
	tables.show("spread: 2 clones behind (Outdated): spread-0/shared, spread-2/shared\n")
	lines.show(`"clones":{"behind":3}`)
	require.NoError(t, e.Admin.CoreV1().ResourceQuotas(f.name(1)).Delete(t.Context(), "none", metav1.DeleteOptions{}))
	require.NoError(t, os.Truncate(lines.file, 0))
	e.Start(f.rules)
	lines.show(`"clones":{"current":3}`)
}

func TestStatusWaitsUntilAllIsInSync(t *testing.T) {
	e := newEnv(t)
	f := newFleet(e, "wait", 3, "")
	e.NoSecrets(f.name(1))
	e.Start(f.rules)
	e.HasEvent(f.name(1), "shared", "CloneFailed")
	user, file := e.Viewer("wait-viewer"), e.ConfigFile(f.rules)
	for sentence, test := range map[string]struct {
		args  []string
		exit  int
		parts []string
	}{
		"what fails needs attention": {nil, 2, []string{"wait-1/shared"}},
		"the deadline ends a wait": {
			[]string{"--wait", "--timeout", "1s"},
			2,
			[]string{"waiting for: rule wait: 1 clone failed (wait-1/shared)", "not in sync after 1s; still waiting for: rule wait: 1 clone failed"},
		},
		"the rule alone":                     {[]string{"wait"}, 2, []string{"wait-1/shared"}},
		"a rule that does not exist":         {[]string{"wat"}, 1, []string{`no rule "wat" in the configuration, and no clone of such a rule; rules: wait`}},
		"other namespaces are fine":          {[]string{"--target-namespace", "wait-0,wait-2", "--wait"}, 0, []string{"wait   1         2 "}},
		"a glob finds it":                    {[]string{"--target-namespace", "wait-[1-2]"}, 2, []string{"wait-1/shared"}},
		"a namespace that nobody has made":   {[]string{"--target-namespace", "wait-9"}, 2, []string{"namespace wait-9 does not exist"}},
		"a namespace that no rule clones to": {[]string{"--target-namespace", "default"}, 0, []string{"no rule clones anything here"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			out, problem, exit := e.Command(user, append([]string{"status", "--config", file}, test.args...)...)
			require.Equal(t, test.exit, exit, out+problem)
			for _, part := range test.parts {
				require.Contains(t, out+problem, part)
			}
		})
	}
	ended := make(chan int, 1)
	go func() {
		_, _, exit := e.Command(user, "status", "--config", file, "--wait", "--timeout", "1m")
		ended <- exit
	}()
	require.NoError(t, e.Admin.CoreV1().ResourceQuotas(f.name(1)).Delete(t.Context(), "none", metav1.DeleteOptions{}))
	require.Zero(t, <-ended)
	f.allHave("v")
}

func TestStatusWithoutRuleStatusesLooksAtTheClusterItself(t *testing.T) {
	e := newEnv(t)
	user := e.Viewer("uninstalled-viewer")
	_, problem, exit := e.Command(user, "status")
	require.Equal(t, 1, exit, "there is no configuration")
	require.Contains(t, problem, "RuleStatuses is not installed; looking at the cluster itself")
	require.Contains(t, problem, "no configuration: there is no ConfigMap headwater-system/headwater")
	_, problem, _ = e.Command(user, "status", "--survey")
	require.NotContains(t, problem, "not installed")
}

// watched is what status --watch writes.
type watched struct {
	*fleet

	file string
}

func (f *fleet) watched(user string, args ...string) watched {
	f.Helper()
	name := "watch" + strings.Join(args, "")
	w := watched{f, filepath.Join(f.Dir, name+".log")}
	kubeconfig := filepath.Join(f.Dir, name+".kubeconfig")
	require.NoError(f, f.Cluster.KubeconfigFor(kubeconfig, user))
	watching, err := process.Start(process.Spec{
		Name: name, Binary: e2e.Binary(f.T), LogFile: w.file,
		Args: append([]string{"status", "--watch", "--config", f.ConfigFile(f.rules), "--kubeconfig", kubeconfig}, args...),
	})
	require.NoError(f, err)
	f.Cleanup(func() { watching.Stop(e2e.Settle) })
	return w
}

func (w watched) show(part string) {
	w.Helper()
	w.Eventually(func(context.Context) error {
		content, err := os.ReadFile(w.file)
		if err == nil && !strings.Contains(string(content), part) {
			err = fmt.Errorf("%q is not in %q", part, content)
		}
		return err
	})
}

func TestPlanSaysWhatAFileWouldChange(t *testing.T) {
	e := newEnv(t)
	f := newFleet(e, "plan", 3, "")
	user := e.Viewer("plan-viewer")
	mark := e.Cluster.Mark()
	out, problem, exit := e.Command(user, "plan", "--config", e.ConfigFile(f.rules))
	require.Equal(t, 2, exit, problem)
	require.Regexp(t, `plan +Create +Missing +3 +plan-0/shared, plan-1/shared, plan-2/shared`, out)
	writes, err := e.Cluster.Since(t.Context(), mark, func(r cluster.Request) bool {
		return r.User == user && r.IsWrite() && !strings.HasSuffix(r.Resource, "reviews")
	})
	require.NoError(t, err)
	require.Empty(t, writes)

	h := e.Start(f.rules)
	f.allHave("v")
	e.Settled(h)
	out, _, exit = e.Command(user, "plan", "--config", e.ConfigFile(f.rules))
	require.Zero(t, exit)
	require.Contains(t, out, "Nothing would change.")
	h.Stop()

	typed := harness.Secret("plan-src", "shared", map[string]string{"username": "u", "password": "p"})
	typed.Type = corev1.SecretTypeBasicAuth
	require.NoError(t, e.Admin.CoreV1().Secrets("plan-src").Delete(t.Context(), "shared", metav1.DeleteOptions{}))
	_, err = e.Admin.CoreV1().Secrets("plan-src").Create(t.Context(), typed, metav1.CreateOptions{})
	require.NoError(t, err)
	file := e.ConfigFile(f.rule("namespaces: {include: [plan-0, plan-1]}"))
	out, problem, exit = e.Command(user, "plan", "--config", file, "-o", "json")
	require.Equal(t, 2, exit, problem)
	var plan inspect.Plan
	require.NoError(t, json.Unmarshal([]byte(out), &plan))
	actions := map[string]string{}
	for _, step := range plan.Steps {
		actions[step.Namespace] = string(step.Action) + " " + string(step.Reason)
	}
	require.Equal(t, map[string]string{
		"plan-0": "Recreate TypeChanged", "plan-1": "Recreate TypeChanged", "plan-2": "Delete NamespaceUnmatched",
	}, actions)
	out, _, exit = e.Command(user, "plan", "--config", e.ConfigFile("- name: other\n  source: {kind: Secret, namespace: plan-src, name: x}\n  sync: {}\n"))
	require.Zero(t, exit)
	require.Regexp(t, `plan +Leave +RuleRemoved +3`, out)

	e.Secret("plan-1", "taken", map[string]string{"username": "u", "password": "p"})
	out, _, exit = e.Command(user, "plan", "--config", e.ConfigFile(f.rule("onConflict: Overwrite, namespaces: {include: [plan-1]}, target: {name: taken}")))
	require.Equal(t, 2, exit)
	require.Regexp(t, `plan +Recreate +TakenOver +1 +plan-1/taken`, out)
}

// The clone that lost its label is found out by a request, which the survey of the
// service does not send.
func TestStatusAndMetricAgreeAboutACloneThatCannotBeRepaired(t *testing.T) {
	f := newFleet(newEnv(t), "agree", 1, "")
	h := f.Start(f.rules)
	f.allHave("v")
	f.Settled(h)
	patch := []byte(`{"metadata":{"labels":{"headwater.dev/clone":null}},"data":{"k":"Zm9yZ2Vk"},"immutable":true}`)
	_, err := f.Admin.CoreV1().Secrets(f.name(0)).Patch(t.Context(), "shared", types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(t, err)
	f.HasEvent(f.name(0), "shared", "Conflict")
	f.HasMetric(h, 1, "headwater_sync_clones", map[string]string{"rule": "agree", "state": "conflict", "reason": "Conflict"})
	f.HasMetric(h, 0, "headwater_sync_clones", map[string]string{"rule": "agree", "state": "behind"})
	require.Equal(t, map[survey.Status]int{survey.Conflicting: 1}, f.standings(f.approver()))
}
