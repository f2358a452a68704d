package sync

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/progress"
	"github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

func (w *boardWorld) fail() string {
	target := w.target()
	fail(w.view.controller, target, errors.New("quota"), w.now())
	return target.String()
}

// fight has another client delete a clone that Headwater recreates, until it pauses.
func (w *boardWorld) fight() string {
	c := w.view.controller
	target := w.target()
	for range 20 {
		if _, exists := c.Caches.Clones[target.Kind].Get(target.Namespace, target.Name); exists {
			break
		}
		target = w.target()
	}
	state, err := c.State(target)
	if err != nil || state.Clone == nil {
		return "none"
	}
	clone := state.Clone
	state.Clone = nil
	for range 5 {
		c.progress.NoteChange(clone)
		c.progress.Settle(progress.Outcome{State: state, Decision: plan.Plan(state)}, c.progress.ChangeOf(target), w.now())
	}
	c.board.Changed(target)
	w.remove(w.typed(), "secrets", target.Namespace, target.Name)
	return fmt.Sprint(target, " ", c.progress.IsFought(target, w.now()))
}

func (w *boardWorld) changeRules() string {
	var set []spec.Rule
	names := map[string]bool{}
	for _, at := range w.random.Perm(len(w.rules)) {
		if rule := w.rules[at]; !names[rule.Name] && w.random.IntN(3) > 0 {
			names[rule.Name] = true
			set = append(set, rule)
		}
	}
	w.view.controller.Live.Swap(rules.NewSet(set...))
	return fmt.Sprint(slices.Sorted(maps.Keys(names)))
}

func (w *boardWorld) changeRevision() string {
	number := 1 + w.random.IntN(3)
	if w.random.IntN(4) == 0 {
		w.remove(w.typed(), "secrets", "headwater-system", fmt.Sprint("revision-", number))
		return fmt.Sprint(number, " deleted")
	}
	revision := recordedAs(number, string(rune('a'+w.random.IntN(3))), map[string]string{mark.Verdict: string(revisions.Delivered)})
	revision.ResourceVersion = w.nextVersion()
	w.put(w.typed(), "secrets", "headwater-system", revision)
	return strconv.Itoa(number)
}

func (w *boardWorld) approve() string {
	if w.random.IntN(3) == 0 {
		w.remove(w.typed(), "configmaps", "headwater-system", survey.ApprovalsName)
		return "none"
	}
	approvals := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "headwater-system", Name: survey.ApprovalsName, ResourceVersion: w.nextVersion()}, Data: map[string]string{},
	}
	for _, rule := range []string{"blog", "gold", "former"} {
		approval := survey.Approval{At: time.Now(), Removals: w.random.IntN(3)}
		if w.random.IntN(2) == 0 {
			approval.Leftovers = &plan.Leftovers{Fate: plan.PruneClones, Clones: 9, Revisions: plan.Revisions{object.Secret: "999999"}}
		}
		text, err := json.Marshal(approval)
		require.NoError(w.t, err)
		approvals.Data[rule] = string(text)
	}
	w.put(w.typed(), "configmaps", "headwater-system", approvals)
	return fmt.Sprint(approvals.Data)
}
