package sync

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/inspect/reported"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/test/lab"
)

// past is a way by which content could get past the stages. Each begins with a delivery
// of w that waits in the canary, which has two of four namespaces; all have v.
type past struct {
	// rejected is true if w is rejected first.
	rejected bool
	// rules changes the rules in the file; nil changes nothing.
	rules func(rules string) string
	// act is done once the file is in force, and then checks what becomes of it.
	act func(f *fleet, user string)
}

func renamed(rules string) string {
	return strings.Replace(rules, "name: past-", "name: new-past-", 1)
}

// newName is the fleet after its rule was renamed.
func (f *fleet) newName() *fleet {
	after := *f
	after.prefix = "new-" + f.prefix
	return &after
}

func (f *fleet) forget(numbers ...int) {
	f.Helper()
	for _, number := range numbers {
		name := f.Revision(f.prefix, fmt.Sprint(number)).Name
		require.NoError(f, f.Admin.CoreV1().Secrets(lab.Namespace).Delete(f.Context(), name, metav1.DeleteOptions{}))
	}
}

// some waits until a revision has the verdict.
func (f *fleet) some(verdict revisions.Verdict) {
	f.Helper()
	f.Eventually(func(context.Context) error {
		for _, one := range f.revisions() {
			if one.Annotations[mark.Verdict] == string(verdict) {
				return nil
			}
		}
		return fmt.Errorf("no revision is %s", verdict)
	})
}

func withoutDelivery(rules string) string {
	before, _, _ := strings.Cut(rules, ", history")
	return before + "}\n"
}

// pasts are the ways. Invariants D1 and D12.
var pasts = map[string]past{
	"rename": {rules: renamed, act: func(f *fleet, user string) {
		after := f.newName()
		after.verdict(2, revisions.Delivering)
		f.have("w", "w", "v", "v")
		after.verdict(1, revisions.Delivered)
		after.steer(user, "promote")
		f.have("w", "w", "w", "w")
		after.verdict(2, revisions.Delivered)
	}},
	"rename-rejected": {rejected: true, rules: renamed, act: func(f *fleet, user string) {
		after := f.newName()
		after.verdict(2, revisions.Rejected)
		f.Stays(func(context.Context) error { return nil })
		f.have("v", "v", "v", "v")
		require.NotContains(f, f.heldBy(f.name(2)), "w")
	}},
	"lost-all": {rejected: true, act: func(f *fleet, _ string) {
		f.forget(1, 2)
		f.some(revisions.Delivered) // of the other it may be known that it was rejected, if one went after the other
		f.HasClone(f.name(2), "shared", map[string]string{"k": "v"})
		f.Stays(func(context.Context) error { return nil })
		require.NotContains(f, f.heldBy(f.name(2)), "w")
	}},
	"lost-stable": {rejected: true, act: func(f *fleet, _ string) {
		f.forget(1)
		f.Stays(func(context.Context) error { return nil })
		f.have("v", "v", "v", "v")
		f.verdict(2, revisions.Rejected)
		f.edit("x")
		f.have("x", "x", "v", "v")
	}},
	"lost-stable-half-way": {act: func(f *fleet, user string) {
		f.forget(1)
		f.Stays(func(context.Context) error { return nil })
		f.have("w", "w", "v", "v")
		f.edit("x")
		f.HasNote(f.prefix+"-src", "shared", "DeliveryHeld", "it is not known what to go back to")
		f.have("w", "w", "v", "v")
		f.steer(user, "retry")
		f.have("x", "x", "v", "v")
	}},
	"lost-rejected": {rejected: true, act: func(f *fleet, _ string) {
		f.forget(2)
		f.have("w", "w", "v", "v")
		f.verdict(2, revisions.Delivering)
	}},
	"lost-half-way": {act: func(f *fleet, _ string) {
		f.forget(1, 2)
		f.some(revisions.Held)
		f.have("w", "w", "v", "v")
	}},
	"renamed-stage": {rules: func(rules string) string { return strings.Replace(rules, "name: canary", "name: first", 1) }, act: func(f *fleet, user string) {
		f.HasNote(f.prefix+"-src", "shared", "StagePassed", "revision 2 goes on with stage first")
		f.have("w", "w", "v", "v")
		f.steer(user, "promote")
		f.have("w", "w", "w", "w")
	}},
	"stage-before": {
		rules: func(rules string) string {
			_, line, _ := strings.Cut(rules, "name: ")
			name, _, _ := strings.Cut(line, "\n")
			return strings.Replace(rules, "stages: [", "stages: [{name: zero, namespaces: {include: ["+name+"-3]}, soak: 0s, approval: true}, ", 1)
		},
		act: func(f *fleet, user string) {
			f.have("w", "w", "v", "w")
			f.HasNote(f.prefix+"-src", "shared", "AwaitingApproval", "stage zero passed")
			f.steer(user, "promote")
			f.HasNote(f.prefix+"-src", "shared", "StagePassed", "revision 2 passed stage zero")
			f.Stays(func(context.Context) error { return nil })
			f.have("w", "w", "v", "w")
			f.steer(user, "promote")
			f.have("w", "w", "w", "w")
		},
	},
	"no-delivery": {rules: withoutDelivery, act: func(f *fleet, _ string) {
		f.have("w", "w", "w", "w") // somebody said so
	}},
	"no-delivery-rejected": {rejected: true, rules: withoutDelivery, act: func(f *fleet, user string) {
		f.Stays(func(context.Context) error { return nil })
		f.have("v", "v", "v", "v")
		var history reported.History
		f.Reported(f.prefix)
		f.Answers(user, &history, "history", f.prefix)
		require.Equal(f, 2, history.Sources[0].Revisions[0].Number)
		require.Equal(f, revisions.Rejected, history.Sources[0].Revisions[0].Verdict)
		f.edit("x")
		f.have("x", "x", "x", "x")
	}},
	"forged-marks": {act: func(f *fleet, _ string) {
		body := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"2","headwater.dev/consumers":"2 Healthy"}}}`, mark.Revision)
		for _, i := range []int{0, 2} {
			_, err := f.Admin.CoreV1().Secrets(f.name(i)).Patch(f.Context(), "shared", types.MergePatchType, body, metav1.PatchOptions{})
			require.NoError(f, err)
		}
		f.Eventually(func(context.Context) error {
			is := f.Get(f.name(2), "shared").Annotations[mark.Revision]
			return lab.ErrorIf(is != "1", "it says that it has revision %s", is)
		})
		f.have("w", "w", "v", "v")
		require.NotContains(f, f.heldBy(f.name(2)), "w")
	}},
	"takeover": {
		rules: func(rules string) string {
			return strings.Replace(rules, "sync: {", "sync: {onConflict: Overwrite, ", 1)
		},
		act: func(f *fleet, _ string) {
			require.NoError(f, f.Admin.CoreV1().Secrets(f.name(2)).Delete(f.Context(), "shared", metav1.DeleteOptions{}))
			f.have("w", "w", "v", "v")
			f.Edit(f.name(3), "shared", func(s *corev1.Secret) { // it is somebody's own now
				s.Labels, s.Annotations, s.Data = nil, nil, map[string][]byte{"k": []byte("theirs")}
			})
			f.have("w", "w", "v", "v")
			require.NotContains(f, f.heldBy(f.name(3)), "w")
		},
	},
	"all-at-once-left": {act: func(f *fleet, _ string) {
		at := func(value, delivery string) {
			f.Edit(f.prefix+"-src", "shared", func(s *corev1.Secret) {
				s.Data["k"], s.Annotations = []byte(value), map[string]string{mark.Delivery: delivery}
			})
		}
		at("x", mark.AllAtOnce)
		f.have("x", "x", "x", "x")
		f.verdict(3, revisions.Delivered)
		at("y", mark.AllAtOnce)
		f.have("y", "y", "x", "x")
		f.verdict(4, revisions.Delivering)
		at("z", mark.AllAtOnce+": leaked")
		f.have("z", "z", "z", "z")
	}},
	"two-requests": {act: func(f *fleet, user string) {
		f.Reported(f.prefix)
		var asking sync.WaitGroup
		exits, refused := make([]int, 2), make([]string, 2)
		for i, who := range []string{user, f.approver()} {
			verb := []string{"pause", "promote"}[i]
			asking.Go(func() { _, refused[i], exits[i] = f.Command(who, verb, f.prefix) })
		}
		asking.Wait()
		for i, verb := range []string{"pause", "promote"} { // done, or refused since it was too late
			require.Equal(f, exits[i] != 0, strings.Contains(refused[i], "the leader refused the "+verb), refused[i])
			f.HasNote(f.prefix+"-src", "shared", "DeliverySteered", verb)
		}
	}},
	"rollback-to-candidate": {act: func(f *fleet, user string) {
		f.Reported(f.prefix)
		_, refused, exit := f.Command(user, "rollback", f.prefix, "--to", "2", "--yes")
		require.NotZero(f, exit)
		require.Contains(f, refused, "revision 2 was never delivered to every namespace")
		f.have("w", "w", "v", "v")
	}},
}

func TestNoOtherWayLeadsPastTheStages(t *testing.T) {
	e := newEnv(t)
	fleets, before := map[string]*fleet{}, ""
	for name := range pasts {
		fleets[name] = newStagedIn(e, "past-"+name, waitsForApproval, "")
		before += fleets[name].rules
	}
	user := fleets["rename"].approver()
	h := e.StartAlone(before)
	for name, f := range fleets {
		f.have("v", "v", "v", "v")
		f.verdict(1, revisions.Delivered)
		f.edit("w")
		f.have("w", "w", "v", "v")
		f.HasNote(f.prefix+"-src", "shared", "AwaitingApproval", "")
		if pasts[name].rejected {
			f.steer(user, "rollback")
			f.verdict(2, revisions.Rejected)
			f.have("v", "v", "v", "v")
		}
	}
	e.HasMetric(h, float64(len(pasts)-5), "headwater_delivery_waits", map[string]string{"for": "Approval"})
	after := ""
	for name, f := range fleets {
		if change := pasts[name].rules; change != nil {
			f.rules = change(f.rules)
		}
		after += f.rules
	}
	e.ConfigFile(after)
	e.HasMetric(h, 1, "headwater_config_reloads_total", map[string]string{"result": "applied"})
	for name, f := range fleets {
		t.Run(name, func(t *testing.T) {
			within := *f
			within.env = &env{e.Of(t)}
			within.Dir = e.Dir // of the file
			pasts[name].act(&within, user)
		})
	}
}
