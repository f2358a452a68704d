package sync

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

// label sets the label that the fleet's rule selects by, or takes it away if value is null.
func (f *fleet) label(i int, value string) {
	f.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"fleet":%s}}}`, value)
	_, err := f.Admin.CoreV1().Namespaces().Patch(f.Context(), f.name(i), types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(f, err)
}

// waits waits until the RuleStatus says that so many clones are to be deleted later than then, and
// returns when the first of them is.
func (f *fleet) waits(clones int, then time.Time) (next time.Time) {
	f.Helper()
	f.Eventually(func(ctx context.Context) error {
		said, err := lab.RuleStatus(ctx, f.RuleStatuses(), f.prefix)
		if err != nil {
			return err
		}
		counted := said.Status.Clones
		if counted == nil || counted.Waiting != clones || counted.NextRemoval == nil {
			return fmt.Errorf("it says %+v", counted)
		}
		if next = counted.NextRemoval.Time; !next.After(then) {
			return fmt.Errorf("it says %s", next)
		}
		synced := said.Status.Condition(rulestatus.Synced)
		return lab.ErrorIf(synced.Status != metav1.ConditionTrue || !strings.Contains(synced.Message, "no longer wanted"), "%v", synced)
	})
	return next
}

// gone waits until no namespace of the fleet has a clone.
func (f *fleet) gone() {
	f.Helper()
	for i := range f.n {
		f.HasNone(f.name(i), "shared")
	}
}

func TestWhatIsWantedAgainInTimeIsNotDeleted(t *testing.T) {
	all := func(f *fleet, value string) {
		for i := range f.n {
			f.label(i, value)
		}
	}
	deletes := "removeAfter: 10m, onSourceDeleted: Delete, onRuleRemoved: Delete"
	for sentence, test := range map[string]struct {
		prefix     string
		away, back func(f *fleet)
	}{
		"a namespace without its label for a moment": {"relabelled", func(f *fleet) { all(f, "null") }, func(f *fleet) { all(f, `"`+f.prefix+`"`) }},
		"a source that is replaced": {
			"newsource",
			func(f *fleet) {
				require.NoError(f, f.Admin.CoreV1().Secrets(f.prefix+"-src").Delete(f.Context(), "shared", metav1.DeleteOptions{}))
			},
			func(f *fleet) { f.Secret(f.prefix+"-src", "shared", map[string]string{"k": "v"}) },
		},
		"another target name by mistake": {
			"othername",
			func(f *fleet) { f.ConfigFile(strings.Replace(f.rules, deletes, deletes+", target: {name: other}", 1)) },
			func(f *fleet) { f.ConfigFile(f.rules) },
		},
		"a selector that selects nothing": {
			"noselection",
			func(f *fleet) { f.ConfigFile(strings.Replace(f.rules, "{fleet: ", "{fleet: no-", 1)) },
			func(f *fleet) { f.ConfigFile(f.rules) },
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := newFleet(newEnv(t), test.prefix, 2, deletes)
			h := f.StartAlone(f.rules)
			f.allHave("v")
			f.Settled(h)
			same := f.uids()
			test.away(f)
			next := f.waits(f.n, time.Now())
			require.WithinDuration(t, time.Now().Add(10*time.Minute), next, 2*time.Minute)
			f.Stays(same)
			test.back(f)
			f.HasMetric(h, float64(f.n), "headwater_sync_clones", map[string]string{"rule": f.prefix, "state": "current"})
			require.NoError(t, same(t.Context()))

			// Another time begins again.
			f.SecondLater()
			test.away(f)
			f.waits(f.n, next)
		})
	}
}

func TestARemovalIsCarriedOutWhenItsTimeIsOver(t *testing.T) {
	const wait = 40 * time.Second // a RuleStatus that shows it comes within ten
	f := newFleet(newEnv(t), "overdue", 2, "removeAfter: 40s")
	h := f.StartAlone(f.rules)
	f.allHave("v")
	f.Settled(h)
	away := time.Now()
	f.label(0, "null")
	f.label(1, "null")
	next := f.waits(f.n, time.Now())
	require.False(t, next.Before(away.Add(wait).Truncate(time.Second)))

	h.Kill() // the next leader goes on
	f.StartAlone(f.rules)
	f.Eventually(func(ctx context.Context) error {
		said, err := lab.RuleStatus(ctx, f.RuleStatuses(), "overdue")
		if err != nil {
			return err
		}
		if said.Status.Clones == nil || said.Status.Clones.NextRemoval == nil {
			return nil // it is over already
		}
		return lab.ErrorIf(!said.Status.Clones.NextRemoval.Time.Equal(next), "due at %s, and now at %s", next, said.Status.Clones.NextRemoval)
	})
	f.gone()
	require.False(t, time.Now().Before(next))
	require.Contains(t, f.HasEvent(f.name(0), "shared", "CloneRemoved"), "its rule no longer selects this namespace")
}

func TestAnApprovalDeletesAtOnceWhatWaits(t *testing.T) {
	f := newFleet(newEnv(t), "impatient", 2, "removeAfter: 24h")
	h := f.StartAlone(f.rules)
	user := f.approver()
	f.allHave("v")
	f.Settled(h)
	f.label(0, "null")
	f.label(1, "null")
	next := f.waits(2, time.Now())
	var planned struct {
		Steps []struct {
			Namespace, Action string
			Until             time.Time
		}
	}
	f.Answers(f.Viewer("impatient-viewer"), &planned, "plan", "--config", f.ConfigFile(f.rules))
	var due []time.Time // each from when its own namespace was labeled
	for _, step := range planned.Steps {
		if strings.HasPrefix(step.Namespace, "impatient-") && step.Action == "Leave" {
			due = append(due, step.Until.Truncate(time.Second))
		}
	}
	require.Len(t, due, 2, "%+v", planned)
	require.True(t, slices.MinFunc(due, time.Time.Compare).Equal(next), "the first is due at %s: %+v", next, planned)
	out, problem, exit := f.Command(user, "approve", "impatient")
	require.Zero(t, exit, problem)
	require.Contains(t, out, "2 of them")
	f.gone()
	f.HasNote(lab.Namespace, lab.Namespace, "Approved", "deletes at once")
	f.usedUp()
}

func TestWhatSomebodyDeletesOrPrunesDoesNotWait(t *testing.T) {
	f := newFleet(newEnv(t), "immediate", 2, "removeAfter: 24h")
	h := f.StartAlone(f.rules)
	f.allHave("v")
	f.Settled(h)
	f.Edit("immediate-src", "shared", func(s *corev1.Secret) { s.Immutable = new(true) })
	before := f.Get(f.name(0), "shared").UID
	f.Eventually(func(context.Context) error {
		return lab.ErrorIf(f.Get(f.name(0), "shared").Immutable == nil, "not immutable yet")
	})
	require.NoError(t, f.Admin.CoreV1().Secrets("immediate-src").Delete(t.Context(), "shared", metav1.DeleteOptions{}))
	f.Secret("immediate-src", "shared", map[string]string{"k": "w"})
	f.allHave("w") // recreated, since an immutable object cannot be changed
	require.NotEqual(t, before, f.Get(f.name(0), "shared").UID)

	other := newFleet(f.env, "immediate-too", 2, "removeAfter: 24h")
	f.ConfigFile(f.rules + other.rules)
	other.allHave("v")
	kept := lab.OneRule("kept")
	file, begin := f.ConfigFile(kept), f.Cluster.Mark()
	f.HasMetric(h, 4, "headwater_sync_clones", map[string]string{"rule": "(former)", "state": "retained"})
	user := f.approver()
	f.Grant("", "headwater-inspect", user)
	_, problem, exit := f.Command(user, "prune", "immediate", "--yes", "--config", file)
	require.Zero(t, exit, problem)
	f.gone()
	_, problem, exit = f.Command(user, "release", "immediate-too", "--yes", "--config", file)
	require.Zero(t, exit, problem)
	for i := range other.n {
		require.Empty(t, mark.Ours(f.Get(other.name(i), "shared").Labels))
	}
	waited, err := f.Cluster.Since(t.Context(), begin, func(r cluster.Request) bool { return r.IsWrite() && r.Name == "headwater-removals" })
	require.NoError(t, err)
	require.Empty(t, waited, "what is to wait is recorded")
}

// The shortest wait that nobody asked for.
func TestWithoutAWordClonesAreDeletedAfterHalfAMinute(t *testing.T) {
	const wait = 30 * time.Second
	e := newEnv(t)
	unsaid, removed, said := newFleet(e, "unsaid", 2, ""), newFleet(e, "unsaid-rule", 2, "onRuleRemoved: Delete"), newFleet(e, "said", 2, "removeAfter: 10m")
	h := e.StartAlone(unsaid.rules + removed.rules + said.rules)
	for _, f := range []*fleet{unsaid, removed, said} {
		f.allHave("v")
	}
	e.Settled(h)

	t.Log("a rule that is back in time")
	same, away := removed.uids(), time.Now()
	e.ConfigFile(unsaid.rules + said.rules)
	e.HasMetric(h, 1, "headwater_config_reloads_total", map[string]string{"result": "applied"})
	e.ConfigFile(unsaid.rules + removed.rules + said.rules)
	e.HasMetric(h, 2, "headwater_config_reloads_total", map[string]string{"result": "applied"})
	if time.Since(away) > wait {
		e.Inconclusive("the rule was away for %s", time.Since(away))
	}
	e.Stays(same)

	begin, away := e.Cluster.Mark(), time.Now()
	unsaid.label(0, "null")
	unsaid.label(1, "null")
	e.ConfigFile(unsaid.rules + said.rules)
	unsaid.gone()
	removed.gone()
	deleted, err := e.Cluster.Since(t.Context(), begin, func(r cluster.Request) bool { return r.Verb == "delete" && r.Resource == "secrets" && lab.Works(r) })
	require.NoError(t, err)
	require.Len(t, deleted, 4)
	for _, request := range deleted {
		require.GreaterOrEqual(t, request.Time.Sub(away), wait, "%s/%s", request.Namespace, request.Name)
	}
}

func TestAnApprovalOfWhatIsHeldLeavesWhatWaits(t *testing.T) {
	f := newFleet(newEnv(t), "impatient-not", 6, "removeAfter: 10m")
	h := f.StartAlone(f.rules)
	user := f.approver()
	f.allHave("v")
	f.Settled(h)
	f.label(0, "null")
	f.label(1, "null")
	f.waits(2, time.Now())
	for i := 2; i < 5; i++ {
		f.label(i, "null")
	}
	f.HasMetric(h, 3, "headwater_sync_clones", map[string]string{"rule": "impatient-not", "state": "held", "reason": "MassRemoval"})
	f.Eventually(func(ctx context.Context) error {
		said, err := lab.RuleStatus(ctx, f.RuleStatuses(), f.prefix)
		return errors.Join(err, lab.ErrorIf(err == nil && said.Status.Held == nil, "nothing is held"))
	})
	f.approves(user)
	for i := 2; i < 5; i++ {
		f.HasNone(f.name(i), "shared")
	}
	f.waits(2, time.Now())
	f.approves(user)
	f.HasNone(f.name(0), "shared")
	f.HasNone(f.name(1), "shared")
	f.usedUp()
}

func TestASuspendedRuleLetsNothingWaitOn(t *testing.T) {
	f := newFleet(newEnv(t), "suspending", 2, "removeAfter: 10m")
	h := f.StartAlone(f.rules)
	f.allHave("v")
	f.Settled(h)
	f.label(0, "null")
	f.label(1, "null")
	first := f.waits(2, time.Now())
	f.ConfigFile(strings.Replace(f.rules, "- name: suspending\n", "- name: suspending\n  suspend: true\n", 1))
	f.HasMetric(h, 2, "headwater_sync_clones", map[string]string{"rule": "suspending", "state": "retained", "reason": "Suspended"})
	f.SecondLater()
	f.ConfigFile(f.rules)
	f.waits(2, first)
}

// A rollout that is rolled back wants the source of the former revision again.
func TestASourceThatIsBackIsReplacedNoMore(t *testing.T) {
	for sentence, whileDown := range map[string]bool{"while Headwater runs": false, "while it is down": true} {
		t.Run(sentence, func(t *testing.T) {
			e := newEnv(t)
			prefix := map[bool]string{false: "rollback", true: "rollback-down"}[whileDown]
			rule, create, remove, have := rotation(e, prefix, ", removeAfter: 10m")
			f := &fleet{env: e, prefix: prefix}
			create("app-1")
			h := e.StartAlone(rule)
			have("app-1")
			e.apart(prefix+"-0", "app-1")
			create("app-2")
			have("app-2")
			remove("app-1")
			first := f.waits(5, time.Now())
			if whileDown {
				h.Kill()
			}
			e.apart(prefix+"-0", "app-2")
			create("app-1")
			if whileDown {
				e.StartAlone(rule)
			}
			remove("app-2")
			f.waits(5, first) // app-2, which app-1 replaces
			have("app-1")
			create("app-3")
			have("app-3")
			remove("app-1")
			f.waits(10, first)
			have("app-1")
		})
	}
}
