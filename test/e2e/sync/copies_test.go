package sync

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/lab"
)

// copyOf returns what `kubectl get -o yaml` of a clone is, moved to another place, with a key of
// its new owner.
func (e *env) copyOf(namespace, name, toNamespace, toName string) *corev1.Secret {
	e.Helper()
	copied := e.Get(namespace, name).DeepCopy()
	copied.Namespace, copied.Name = toNamespace, toName
	copied.UID, copied.ResourceVersion, copied.CreationTimestamp = "", "", metav1.Time{}
	copied.Data["own"] = []byte("theirs")
	return copied
}

// creates creates secret as a client that calls itself manager.
func (e *env) creates(secret *corev1.Secret, manager string) *corev1.Secret {
	e.Helper()
	created, err := e.Admin.CoreV1().Secrets(secret.Namespace).Create(e.Context(), secret, metav1.CreateOptions{FieldManager: manager})
	require.NoError(e, err)
	return created
}

// applies applies the copy's content and marks as a GitOps tool does.
func (e *env) applies(copied *corev1.Secret) *corev1.Secret {
	e.Helper()
	manifest := applycorev1.Secret(copied.Name, copied.Namespace).WithLabels(copied.Labels).WithAnnotations(copied.Annotations).WithData(copied.Data)
	applied, err := e.Admin.CoreV1().Secrets(copied.Namespace).Apply(e.Context(), manifest, metav1.ApplyOptions{FieldManager: "gitops", Force: true})
	require.NoError(e, err)
	return applied
}

// remain is a condition for Stays: these objects exist with their own key, and are the ones that they were.
func (e *env) remain(copies ...*corev1.Secret) func(context.Context) error {
	return func(context.Context) error {
		for _, copied := range copies {
			now := e.Get(copied.Namespace, copied.Name)
			if now == nil || now.UID != copied.UID {
				return fmt.Errorf("%s/%s was deleted", copied.Namespace, copied.Name)
			}
			if string(now.Data["own"]) != "theirs" {
				return fmt.Errorf("%s/%s was overwritten", copied.Namespace, copied.Name)
			}
		}
		return nil
	}
}

// Invariant 4.
func TestACopyOfACloneBelongsToItsOwner(t *testing.T) {
	e := newEnv(t)
	e.StageOf("copied", map[string]string{"k": "v"})
	h := e.Start(lab.Rule("copied", `sync: {namespaces: {include: ["copied-*"]}}`))
	e.HasClone("copied-a", "shared", map[string]string{"k": "v"})
	e.Settled(h)
	places := 0
	moved := func(within *env) *corev1.Secret {
		places++
		return within.copyOf("copied-a", "shared", within.Namespace(fmt.Sprint("uncopied-", places)), "shared")
	}
	for sentence, make := range map[string]func(within *env) *corev1.Secret{
		"created in a namespace that no rule selects": func(within *env) *corev1.Secret {
			return within.creates(moved(within), "kubectl-create")
		},
		"restored from a backup with its managed fields": func(within *env) *corev1.Secret {
			return within.creates(moved(within), mark.FieldManager)
		},
		"applied again and again": func(within *env) *corev1.Secret {
			copied := moved(within)
			first := within.applies(copied)
			for range 7 {
				require.Equal(t, first.UID, within.applies(copied).UID)
			}
			return first
		},
		"created under another name beside the clone": func(within *env) *corev1.Secret {
			return within.creates(within.copyOf("copied-a", "shared", "copied-a", "other"), "kubectl-create")
		},
		"of its labels alone": func(within *env) *corev1.Secret {
			copied := moved(within)
			copied.Annotations = nil
			return within.creates(copied, "replicator")
		},
	} {
		t.Run("a copy "+sentence+" stays", func(t *testing.T) {
			within := &env{e.Of(t)}
			within.Stays(within.remain(make(within)))
		})
	}
}

// Invariant 5: they would be held, and what the rule removes with them.
func TestCopiesDoNotUseUpTheRemovalsOfTheirRule(t *testing.T) {
	f := newFleet(newEnv(t), "counted", 4, "")
	h := f.Start(f.rules)
	f.allHave("v")
	f.Settled(h)
	var copies []*corev1.Secret
	for i := range 5 {
		copies = append(copies, f.creates(f.copyOf("counted-0", "shared", f.Namespace(fmt.Sprint("uncounted-", i)), "shared"), "kubectl-create"))
	}
	f.Stays(f.remain(copies...))
	f.patchNamespace("counted-3", `{"metadata":{"labels":{"fleet":null}}}`)
	f.HasNone("counted-3", "shared")
	f.Stays(f.remain(copies...))
	f.HasMetric(h, 3, "headwater_sync_clones", map[string]string{"rule": "counted"})
	f.HasMetric(h, 0, "headwater_sync_clones", map[string]string{"state": "held"})
	f.HasNote("counted-3", "shared", "CloneRemoved", `rule "counted": Headwater deleted this clone: its rule no longer selects this namespace`)
	log, err := h.Log()
	require.NoError(t, err)
	require.Regexp(t, `"level":"info",[^\n]*"msg":"clone deleted","rule":"counted","clone":"Secret/counted-3/shared"`, log)
}

func TestManyRemovalsAreToldInFewEvents(t *testing.T) {
	f := newFleet(newEnv(t), "manifold", 12, "")
	f.Sections = "safety: {maxDeleteFraction: 1}\n"
	h := f.StartAlone(f.rules)
	f.allHave("v")
	f.Settled(h)
	began := time.Now()
	for i := range f.n {
		f.patchNamespace(f.name(i), `{"metadata":{"labels":{"fleet":null}}}`)
	}
	for i := range f.n {
		f.HasNone(f.name(i), "shared")
	}
	if took := time.Since(began); took > time.Minute {
		f.Inconclusive("they were removed within %s", took)
	}
	f.HasNote(lab.Namespace, lab.Namespace, "CloneRemoved", `rule "manifold": Headwater deleted 2 more clones within a minute`)
	told := 0
	for i := range f.n {
		told += len(lab.List(t, f.Admin.CoreV1().Events(f.name(i)).List, metav1.ListOptions{FieldSelector: "reason=CloneRemoved"}).Items)
	}
	require.Equal(t, 10, told)
}

func (e *env) patchNamespace(name, patch string) {
	e.Helper()
	_, err := e.Admin.CoreV1().Namespaces().Patch(e.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(e, err)
}

func TestTheClonesOfARemovedRuleGoWithoutTheirCopies(t *testing.T) {
	for sentence, test := range map[string]struct{ prefix, sync string }{
		"by headwater prune":       {"pruned", ""},
		"because the rule said so": {"dropped", "onRuleRemoved: Delete"},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := newFleet(newEnv(t), test.prefix, 2, test.sync)
			f.Namespace(test.prefix + "-not")
			kept := lab.OneRule("kept")
			h := f.Start(f.rules + kept)
			f.allHave("v")
			f.Settled(h)
			copies := []*corev1.Secret{
				f.creates(f.copyOf(f.name(0), "shared", test.prefix+"-not", "shared"), "kubectl-create"),
				f.creates(f.copyOf(f.name(0), "shared", f.name(0), "other"), mark.FieldManager),
			}
			f.Stays(f.remain(copies...))
			file := f.ConfigFile(kept)
			if test.sync == "" {
				user := f.approver()
				f.Grant("", "headwater-inspect", user)
				f.HasMetric(h, 2, "headwater_sync_clones", map[string]string{"rule": "(former)", "state": "retained"})
				out, problem, exit := f.Command(user, "prune", test.prefix, "--yes", "--config", file)
				require.Zero(t, exit, problem)
				require.Contains(t, out, "2 clones")
			}
			for i := range f.n {
				f.HasNone(f.name(i), "shared")
			}
			f.Stays(f.remain(copies...))
			f.HasNote(f.name(1), "shared", "CloneRemoved", test.prefix)
		})
	}
}

func TestACopyWhereARuleWantsACloneIsAnObjectOfItsOwner(t *testing.T) {
	e := newEnv(t)
	e.StageOf("wanted", map[string]string{"k": "v"})
	e.Namespaces("wanting-copy", "wanting-restored", "wanting-unlabelled", "wanting-equal")
	rule := func(onConflict string) string {
		return lab.Rule("wanted", `sync: {onConflict: `+onConflict+`, namespaces: {include: ["wanted-*"], selector: {matchLabels: {wanted: "yes"}}}}`)
	}
	e.patchNamespace("wanted-a", `{"metadata":{"labels":{"wanted":"yes"}}}`)
	e.ConfigFile(rule("Skip"))
	h := e.Start(strings.Replace(rule("AdoptIfEqual"), `"wanted-*"`, `"want*"`, 1))
	e.HasClone("wanted-a", "shared", map[string]string{"k": "v"})
	e.Settled(h)
	unlabelled := e.copyOf("wanted-a", "shared", "wanting-unlabelled", "shared")
	unlabelled.Labels = nil
	copies := []*corev1.Secret{
		e.creates(e.copyOf("wanted-a", "shared", "wanting-copy", "shared"), "kubectl-create"),
		e.creates(e.copyOf("wanted-a", "shared", "wanting-restored", "shared"), mark.FieldManager),
		e.creates(unlabelled, mark.FieldManager),
	}
	equal := e.copyOf("wanted-a", "shared", "wanting-equal", "shared")
	delete(equal.Data, "own")
	adopted := e.creates(equal, mark.FieldManager)
	for _, copied := range append(copies, adopted) {
		e.patchNamespace(copied.Namespace, `{"metadata":{"labels":{"wanted":"yes"}}}`)
	}
	for _, copied := range copies {
		e.HasEvent(copied.Namespace, "shared", "Conflict")
	}
	e.Stays(e.remain(copies...))
	e.Eventually(func(context.Context) error {
		now := e.Get("wanting-equal", "shared")
		if now == nil || now.UID != adopted.UID {
			return lab.Permanent(errors.New("the equal copy was deleted"))
		}
		return lab.ErrorIf(now.Annotations[mark.Target] != "wanting-equal/shared", "its place is %q", now.Annotations[mark.Target])
	})
}

func TestARecreatedCloneNamesItsPlace(t *testing.T) {
	e := newEnv(t)
	e.Namespaces("recreated-src", "recreated-a", "recreated-other")
	create := func(value string) {
		source := lab.Secret("recreated-src", "shared", map[string]string{"k": value})
		source.Immutable = ptr.To(true)
		e.Create("recreated-src", source)
	}
	create("v")
	h := e.Start(lab.Rule("recreated", "sync: {namespaces: {include: [recreated-a]}}"))
	e.HasClone("recreated-a", "shared", map[string]string{"k": "v"})
	e.Settled(h)
	before := e.Get("recreated-a", "shared").UID
	require.NoError(t, e.Admin.CoreV1().Secrets("recreated-src").Delete(t.Context(), "shared", metav1.DeleteOptions{}))
	create("w")
	e.HasClone("recreated-a", "shared", map[string]string{"k": "w"})
	clone := e.Get("recreated-a", "shared")
	require.NotEqual(t, before, clone.UID)
	require.Equal(t, "recreated-a/shared", clone.Annotations[mark.Target])
	copied := e.creates(e.copyOf("recreated-a", "shared", "recreated-other", "shared"), "kubectl-create")
	e.Stays(e.remain(copied))
}

func TestAFullQuotaKeepsAnImmutableCloneUntilSomebodyMakesRoom(t *testing.T) {
	e := newEnv(t)
	e.Namespaces("room-src", "room-a")
	create := func(value string) {
		source := lab.Secret("room-src", "shared", map[string]string{"k": value})
		source.Immutable = ptr.To(true)
		e.Create("room-src", source)
	}
	create("v")
	h := e.Start(lab.Rule("room", "sync: {namespaces: {include: [room-a]}}"))
	e.HasClone("room-a", "shared", map[string]string{"k": "v"})
	e.Settled(h)
	e.NoMoreSecretsThan("room-a", 1)
	require.NoError(t, e.Admin.CoreV1().Secrets("room-src").Delete(t.Context(), "shared", metav1.DeleteOptions{}))
	create("w")
	failed := e.HasEvent("room-a", "shared", "CloneFailed")
	require.Contains(t, failed, "exceeded quota")
	require.Contains(t, failed, "raise it or delete the object yourself")
	e.Stays(func(context.Context) error {
		return lab.SameData(e.Get("room-a", "shared"), map[string]string{"k": "v"})
	})
	require.NoError(t, e.Admin.CoreV1().Secrets("room-a").Delete(t.Context(), "shared", metav1.DeleteOptions{}))
	e.HasClone("room-a", "shared", map[string]string{"k": "w"})
}

// Invariant 2, for the clones of builds that did not name the place.
func TestAnUpgradeGivesNoClonePlaceForItsOwnSake(t *testing.T) {
	f := newFleet(newEnv(t), "older", 50, "")
	h := f.Start(f.rules)
	f.allHave("v")
	f.Settled(h)
	h.Stop()
	without := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null}}}`, mark.Target)
	for i := range f.n {
		require.Equal(t, f.name(i)+"/shared", f.Get(f.name(i), "shared").Annotations[mark.Target])
		_, err := f.Admin.CoreV1().Secrets(f.name(i)).Patch(t.Context(), "shared", types.MergePatchType, without, metav1.PatchOptions{FieldManager: mark.FieldManager})
		require.NoError(t, err)
	}
	begin := f.Cluster.Mark()
	h = f.Start(f.rules)
	f.Settled(h)
	require.NoError(t, f.NoWrites(begin)(t.Context()))

	f.patchNamespace(f.name(3), `{"metadata":{"labels":{"fleet":null}}}`) // it may be a copy
	f.HasMetric(h, 1, "headwater_sync_clones", map[string]string{"rule": "older", "state": "retained"})
	f.Edit("older-src", "shared", func(s *corev1.Secret) { s.Data["k"] = []byte("w") })
	for i := range f.n {
		if i == 3 {
			continue
		}
		f.HasClone(f.name(i), "shared", map[string]string{"k": "w"})
		require.Equal(t, f.name(i)+"/shared", f.Get(f.name(i), "shared").Annotations[mark.Target])
	}
	f.HasClone(f.name(3), "shared", map[string]string{"k": "v"})

	user := f.approver()
	f.Grant("", "headwater-inspect", user)
	_, err := f.Admin.CoreV1().Secrets(f.name(0)).Patch(t.Context(), "shared", types.MergePatchType, without, metav1.PatchOptions{FieldManager: mark.FieldManager})
	require.NoError(t, err)
	out, problem, exit := f.Command(user, "prune", "older", "--yes", "--config", f.ConfigFile(f.rules))
	require.Zero(t, exit, problem)
	require.Contains(t, out, "1 clone of rule older, which does not want them")
	f.HasNone(f.name(3), "shared")
	require.NotNil(t, f.Get(f.name(0), "shared"), "the rule wants it")
	_, problem, exit = f.Command(user, "prune", "older", "--yes", "--config", f.ConfigFile(f.rules))
	require.NotZero(t, exit)
	require.Contains(t, problem, "is in the configuration")

	kept := lab.OneRule("kept")
	file := f.ConfigFile(kept)
	f.HasMetric(h, 49, "headwater_sync_clones", map[string]string{"rule": "(former)", "state": "retained"})
	_, problem, exit = f.Command(user, "prune", "older", "--yes", "--config", file)
	require.Zero(t, exit, problem)
	for i := range f.n {
		f.HasNone(f.name(i), "shared")
	}
}
