package kinds

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/lab"
)

// targetRule is lab.ReloadRule with a target of kind Bucket.
func targetRule(prefix, target string) string {
	return strings.Replace(lab.ReloadRule(prefix), "{debounce: 0s,",
		"{debounce: 0s, targets: [{group: example.com, version: v1, kind: Bucket, "+target+"}],", 1)
}

const setting = "allowSecretValues: true, selector: {matchLabels: {set: 'yes'}}, set: [{from: used, to: .spec.credentials.key}]"

// buckets is a kind that Headwater may write, with a schema that keeps anything.
func (e *env) buckets() kind {
	e.Helper()
	buckets := e.kind("example.com", "v1", "Bucket")
	buckets.install()
	buckets.grant()
	return buckets
}

func TestAnnotatedTargetIsStampedForAChangeAlone(t *testing.T) {
	e := newEnv(t)
	e.Plain() // the values are read where a rule sets them
	namespace := e.Stage("annotated")
	buckets := e.buckets()
	e.controlledDeployment(namespace, "of-chosen", buckets.create(namespace, "chosen", "metadata: {labels: {app: x}}"))
	e.controlledDeployment(namespace, "of-other", buckets.create(namespace, "other", ""))
	buckets.create("annotated-src", "beside", "metadata: {labels: {app: x}}")
	h := e.Start(targetRule("annotated", "annotate: true, selector: {matchLabels: {app: x}}"))
	e.Cloned("annotated", "used", "1")
	stamps := e.Adopted(h, namespace, "of-chosen", "of-other")
	chosen, beside := buckets.adopted(namespace, "chosen"), buckets.adopted("annotated-src", "beside")
	e.Settled(h)
	object, err := buckets.object(t.Context(), namespace, "chosen")
	require.NoError(t, err)
	require.NotContains(t, object.GetAnnotations(), mark.RestartedFor, "first sight is never a change")

	before := e.Cluster.Mark()
	e.Change("annotated", "used", "2")
	buckets.stamped(namespace, "chosen", chosen)
	buckets.stamped("annotated-src", "beside", beside)
	e.Settled(h)
	require.Len(t, e.writesTo(before, "buckets"), 2, "one write each, and none to what is not selected")
	e.HasEvent(namespace, "chosen", "Annotated")
	e.Restarted(namespace, stamps, "Deployment/of-chosen", "Deployment/of-other")

	h.Stop()
	again := e.Cluster.Mark()
	e.Settled(e.Start(targetRule("annotated", "annotate: true, selector: {matchLabels: {app: x}}")))
	require.Empty(t, e.Writes(again), "a restart of Headwater with nothing changed writes nothing")
}

func TestFieldsOfTargetsAreSetAndKept(t *testing.T) {
	e := newEnv(t)
	e.Plain() // the values are read where a rule sets them
	namespace := e.Stage("fields")
	buckets := e.buckets()
	const selected = "metadata: {labels: {set: 'yes'}}\nspec: {credentials: {user: theirs}}"
	buckets.create(namespace, "chosen", selected)
	buckets.create(namespace, "other", "spec: {credentials: {user: theirs}}")
	elsewhere := e.Namespace("fields-elsewhere") // no clone there
	buckets.create(elsewhere, "chosen", selected)
	h := e.Start(targetRule("fields", setting))
	buckets.hasField(namespace, "chosen", "1")
	buckets.hasField(namespace, "chosen", "theirs", "spec", "credentials", "user")
	e.Change("fields", "used", "2")
	buckets.hasField(namespace, "chosen", "2")
	e.Settled(h)

	quiet := e.Cluster.Mark()
	e.Change("fields", "unused", "2")
	buckets.merge(namespace, "chosen", "spec: {size: 3}")
	e.Settled(h)
	require.Empty(t, e.writesTo(quiet, "buckets"), "nothing that is set has changed")
	for _, at := range [][2]string{{namespace, "other"}, {elsewhere, "chosen"}} {
		object, err := buckets.object(t.Context(), at[0], at[1])
		require.NoError(t, err)
		_, found, _ := unstructured.NestedString(object.Object, "spec", "credentials", "key")
		require.False(t, found, "neither without the labels nor without a clone")
	}

	buckets.merge(namespace, "chosen", "spec: {credentials: {key: drifted}}")
	buckets.hasField(namespace, "chosen", "2")
	buckets.merge(namespace, "chosen", "spec: {credentials: {key: null}}")
	buckets.hasField(namespace, "chosen", "2")
	e.HasEvent(namespace, "chosen", "FieldsHealed")

	h.Stop()
	e.Change("fields", "used", "3")
	h = e.Start(targetRule("fields", setting))
	buckets.hasField(namespace, "chosen", "3")
	e.Settled(h)
	h.Stop()
	again := e.Cluster.Mark()
	h = e.Start(targetRule("fields", setting))
	e.Settled(h)
	require.Empty(t, e.Writes(again), "a restart of Headwater with nothing changed writes nothing")

	buckets.merge(namespace, "chosen", "metadata: {labels: {set: null}}")
	buckets.hasField(namespace, "chosen", "")
	buckets.hasField(namespace, "chosen", "theirs", "spec", "credentials", "user")
	e.requireNoValue(h, namespace)
}

func TestFieldThatTheRuleNoLongerSetsIsGivenBack(t *testing.T) {
	e := newEnv(t)
	e.Plain() // the values are read where a rule sets them
	namespace := e.Stage("given-back")
	buckets := e.buckets()
	buckets.create(namespace, "chosen", "")
	const first = "{from: used, to: spec.first}"
	h := e.Start(targetRule("given-back", "allowSecretValues: true, set: ["+first+", {from: unused, to: spec.second}]"))
	buckets.hasField(namespace, "chosen", "1", "spec", "first")
	buckets.hasField(namespace, "chosen", "1", "spec", "second")
	e.ConfigFile(targetRule("given-back", "allowSecretValues: true, set: ["+first+"]"))
	buckets.hasField(namespace, "chosen", "", "spec", "second")
	buckets.hasField(namespace, "chosen", "1", "spec", "first")

	e.ConfigFile(lab.ReloadRule("given-back"))
	e.HasMetric(h, 2, "headwater_config_reloads_total", map[string]string{"result": "applied"})
	e.Change("given-back", "used", "2")
	e.Cloned("given-back", "used", "2")
	e.Settled(h)
	buckets.hasField(namespace, "chosen", "1", "spec", "first") // nobody asks for it any more, so it stays
}

func TestFieldOfARuleThatWasRenamedIsTakenOver(t *testing.T) {
	e := newEnv(t)
	e.Plain() // the values are read where a rule sets them
	namespace := e.Stage("renamed")
	buckets := e.buckets()
	buckets.create(namespace, "chosen", "metadata: {labels: {set: 'yes'}}")
	h := e.Start(targetRule("renamed", setting))
	buckets.hasField(namespace, "chosen", "1")
	e.ConfigFile(strings.Replace(targetRule("renamed", setting), "- name: renamed", "- name: renamed-again", 1))
	e.HasMetric(h, 1, "headwater_config_reloads_total", map[string]string{"result": "applied"})
	e.Change("renamed", "used", "2")
	buckets.hasField(namespace, "chosen", "2")
	e.requireNoValue(h, namespace)
}

func TestFieldThatAdmissionChangesIsReportedAndHealedOnceItStops(t *testing.T) {
	e := newEnv(t)
	e.Plain() // the values are read where a rule sets them
	namespace := e.Stage("lost-field")
	buckets := e.buckets()
	stop := e.Mutate(namespace, lab.Mutation{
		Resource: "buckets", Operations: "UPDATE", Condition: `has(object.spec) && has(object.spec.credentials)`,
		Patch: `JSONPatch{op: "add", path: "/spec/credentials/key", value: "theirs"}`,
	})
	buckets.create(namespace, "other", "spec: {credentials: {user: theirs}}")
	client, label := e.Dynamic().Resource(buckets.GroupVersionResource).Namespace(namespace), []byte(`{"metadata":{"labels":{"tried":"yes"}}}`)
	e.Eventually(func(ctx context.Context) error {
		other, err := client.Patch(ctx, "other", types.MergePatchType, label, metav1.PatchOptions{})
		if err != nil {
			return err // policies hear of a kind a moment later
		}
		_, found, err := unstructured.NestedString(other.Object, "spec", "credentials", "key")
		return errors.Join(err, lab.ErrorIf(!found, "nothing is changed yet"))
	})
	buckets.create(namespace, "chosen", "metadata: {labels: {set: 'yes'}}\nspec: {credentials: {user: theirs}}")
	h := e.Start(targetRule("lost-field", setting))
	require.Contains(t, e.HasEvent(namespace, "chosen", "TargetLost"), "stores field spec.credentials.key otherwise than Headwater writes it")
	stop()
	buckets.hasField(namespace, "chosen", "1")
	e.requireNoValue(h, namespace)
}

func TestFieldThatSomebodyElseHoldsIsLeftAlone(t *testing.T) {
	e := newEnv(t)
	e.Plain() // the values are read where a rule sets them
	namespace := e.Stage("held-field")
	buckets := e.buckets()
	buckets.create(namespace, "edited", "metadata: {labels: {set: 'yes'}}\nspec: {credentials: {key: there-before}}")
	e.claim(buckets, namespace, "declared", "applied")
	h := e.Start(targetRule("held-field", setting))
	require.Contains(t, e.HasEvent(namespace, "edited", "TargetConflict"), "spec.credentials.key")
	note := e.HasEvent(namespace, "declared", "TargetConflict")
	require.Contains(t, note, "gitops")
	require.Contains(t, note, "force: true")
	e.HasMetric(h, 2, "headwater_reload_targets_total", map[string]string{"rule": "held-field", "result": "Conflict"})
	buckets.hasField(namespace, "edited", "there-before")
	buckets.hasField(namespace, "declared", "applied")
	e.Settled(h)

	e.ConfigFile(targetRule("held-field", "force: true, "+setting))
	buckets.hasField(namespace, "edited", "1")
	buckets.hasField(namespace, "declared", "1")

	// What was set and is then claimed is no drift.
	e.ConfigFile(targetRule("held-field", setting))
	e.HasMetric(h, 2, "headwater_config_reloads_total", map[string]string{"result": "applied"})
	e.claim(buckets, namespace, "declared", "claimed")
	e.Settled(h)
	buckets.hasField(namespace, "declared", "claimed")
	e.requireNoValue(h, namespace)
}

func TestValueThatNoFieldCanHoldIsRefused(t *testing.T) {
	e := newEnv(t)
	e.Plain() // the values are read where a rule sets them
	namespace := e.Stage("refused-value")
	buckets := e.buckets()
	buckets.create(namespace, "chosen", "metadata: {labels: {set: 'yes'}}")
	e.Edit("refused-value-src", "shared", func(s *corev1.Secret) { s.Data["used"] = []byte{0xff, 0xfe} })
	h := e.Start(targetRule("refused-value", setting))
	require.Contains(t, e.HasEvent(namespace, "chosen", "TargetRefused"), "not valid UTF-8")
	e.Settled(h)
	e.Edit("refused-value-src", "shared", func(s *corev1.Secret) { delete(s.Data, "used") })
	e.HasMetric(h, 2, "headwater_reload_targets_total", map[string]string{"rule": "refused-value", "result": "Refused"})
	e.Change("refused-value", "used", "text")
	buckets.hasField(namespace, "chosen", "text")
}

// hasField waits until the field at path, or the one that setting sets, is value;
// empty: until it is not there.
func (k kind) hasField(namespace, name, value string, path ...string) {
	k.Helper()
	if len(path) == 0 {
		path = []string{"spec", "credentials", "key"}
	}
	k.Eventually(func(ctx context.Context) error {
		object, err := k.object(ctx, namespace, name)
		if err != nil {
			return err
		}
		is, found, err := unstructured.NestedString(object.Object, path...)
		if err == nil && (is != value || found != (value != "")) {
			err = fmt.Errorf("%s of %s is %q, want %q", strings.Join(path, "."), name, is, value)
		}
		return err
	})
}

// claim applies the field that setting sets, as another tool would.
func (e *env) claim(buckets kind, namespace, name, value string) {
	e.Helper()
	body := fmt.Sprintf(`{"apiVersion": "example.com/v1", "kind": "Bucket", "metadata": {"name": %q, "labels": {"set": "yes"}}, "spec": {"credentials": {"key": %q}}}`, name, value)
	force := true
	_, err := e.Dynamic().Resource(buckets.GroupVersionResource).Namespace(namespace).
		Patch(e.Context(), name, types.ApplyPatchType, []byte(body), metav1.PatchOptions{FieldManager: "gitops", Force: &force})
	require.NoError(e, err)
}

// requireNoValue checks that no value of key used is in what Headwater says of
// namespace.
func (e *env) requireNoValue(h *lab.Headwater, namespace string) {
	e.Helper()
	const value = "hunter2-of-targets"
	e.Change(strings.TrimSuffix(namespace, "-a"), "used", value)
	e.Cloned(strings.TrimSuffix(namespace, "-a"), "used", value)
	e.Settled(h)
	log, err := h.Log()
	require.NoError(e, err)
	metrics, err := h.Metrics(e.Context())
	require.NoError(e, err)
	events := lab.List(e, e.Admin.EventsV1().Events(namespace).List, metav1.ListOptions{})
	said := log + metrics
	for _, event := range events.Items {
		said += event.Note
	}
	require.NotContains(e, said, value)
	require.NotContains(e, said, base64.StdEncoding.EncodeToString([]byte(value)))
}

// What is annotated is made to act on the change, as by a restart; what is set
// is kept as it should be, whenever that is.
func TestWindowsAndBreakerHoldForAnnotatedTargetsAndNotForFields(t *testing.T) {
	e := newEnv(t)
	e.Plain() // the values are read where a rule sets them
	namespace := e.Stage("paced")
	buckets, safes := e.buckets(), e.kind("example.com", "v1", "Safe")
	safes.install()
	safes.grant()
	buckets.create(namespace, "annotated", "")
	safes.create(namespace, "set", "")
	rule := targetRule("paced", "annotate: true}, {group: example.com, version: v1, kind: Safe, allowSecretValues: true, "+
		"set: [{from: used, to: spec.credentials.key}]")
	e.Sections = "reload: {windows: [{schedule: 0 0 29 2 *, duration: 1h, timeZone: Europe/Berlin}]}\n"
	h := e.Start(rule)
	e.Cloned("paced", "used", "1")
	before := buckets.adopted(namespace, "annotated")
	safes.hasField(namespace, "set", "1")
	e.Settled(h)

	user := e.Viewer("paced-viewer")
	e.ClusterRole("paced-viewer", rbacv1.PolicyRule{APIGroups: []string{"example.com"}, Resources: []string{buckets.Resource, safes.Resource}, Verbs: []string{"list", "watch"}})
	e.Grant("", "paced-viewer", user)
	for _, line := range []string{
		`Bucket\.example\.com/paced-a/annotated +Listed +- +rule paced +Restart +Current`,
		`Safe\.example\.com/paced-a/set +Fields used +- +rule paced +Set +Current +the rule keeps its fields at the values`,
	} {
		e.Eventually(func(context.Context) error { // the grant may be news to the API server
			out, problem, _ := e.Command(user, "consumers", "Secret/"+namespace+"/shared", "--config", e.ConfigFile(rule))
			return lab.ErrorIf(!regexp.MustCompile(line).MatchString(out), "no line %s in %s%s", line, out, problem)
		})
	}

	e.Change("paced", "used", "2")
	e.Waits(h, 1, "window")
	require.Contains(t, e.HasEvent(namespace, "annotated", "RestartWaits"), "when its windows are open next")
	safes.hasField(namespace, "set", "2")
	require.Equal(t, before, buckets.adopted(namespace, "annotated"))

	e.Sections = "reload: {windows: [{schedule: '* * * * *', duration: 1h}]}\n"
	e.ConfigFile(strings.Replace(rule, "{debounce: 0s,", "{debounce: 0s, maxRestartsPerHour: 1,", 1))
	buckets.stamped(namespace, "annotated", before)
	e.Waits(h, 0, "window")
	before = buckets.adopted(namespace, "annotated")

	e.Change("paced", "used", "3")
	e.Waits(h, 1, "breaker")
	e.HasNote(namespace, "annotated", "RestartWaits", "restarted 1 times within an hour")
	safes.hasField(namespace, "set", "3")
	require.Equal(t, before, buckets.adopted(namespace, "annotated"))
}
