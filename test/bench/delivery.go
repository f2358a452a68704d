package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/sync/delivery"
	"github.com/headwater-k8s/headwater/sync/survey"
	"github.com/headwater-k8s/headwater/test/bench/measure"
	"github.com/headwater-k8s/headwater/test/lab"
)

const (
	stagedRule = "bench-staged"
	staged     = "staged" // a source with a clone in each target
	canaryRule = "bench-canary"
	canary     = "canary" // a source whose deliveries stay in their first stage
)

// atOnce and inStages clone another source into each target, without a delivery
// and with one of four stages.
const (
	atOnce = `
- name: ` + stagedRule + `
  source: {kind: Secret, namespace: ` + sourceNamespace + `, name: ` + staged + `}
  sync: {namespaces: {include: ["` + targets + `*"]}}
  reload: {}`
	inStages = `
- name: ` + stagedRule + `
  source: {kind: Secret, namespace: ` + sourceNamespace + `, name: ` + staged + `}
  sync: {namespaces: {include: ["` + targets + `*"]}, history: 3,
    delivery: {stages: [{name: a, percent: 25, soak: 0s}, {name: b, percent: 33, soak: 0s}, {name: c, percent: 50, soak: 0s}], rest: {soak: 0s}}}
  reload: {}
- name: ` + canaryRule + `
  source: {kind: Secret, namespace: ` + sourceNamespace + `, name: ` + canary + `}
  sync: {namespaces: {include: [` + targets + `00000, ` + targets + `00001]}, history: 3,
    delivery: {stages: [{name: a, namespaces: {include: [` + targets + `00000]}, approval: true, soak: 0s}]}}
  reload: {}`
)

// deliveries measure what stages cost: memory and fan-out beside the same rule without
// them, the first clone of a delivery, and a rollback.
func (a *arena) deliveries(ctx context.Context) error {
	for _, source := range []string{staged, canary} {
		if err := measure.Create(ctx, a.Admin, measure.Secret(sourceNamespace, source, "0")); err != nil {
			return err
		}
	}
	if err := a.stagedMemory(ctx); err != nil {
		return err
	}
	for _, rows := range []func(context.Context) error{a.stagedFanOut, a.canaries, a.rollbacks} {
		if err := rows(ctx); err != nil {
			return err
		}
	}
	_, err := a.startedBy(ctx, a.config())
	return err
}

// stagedMemory leaves Headwater running with stages.
func (a *arena) stagedMemory(ctx context.Context) error {
	var resident []float64
	for _, config := range []string{a.config(atOnce), a.config(inStages)} {
		if _, err := a.startedBy(ctx, config); err != nil { // which writes the clones
			return err
		}
		again, err := a.startedBy(ctx, config)
		if err != nil {
			return err
		}
		resident = append(resident, again.mib)
	}
	if err := a.delivered(ctx); err != nil {
		return err
	}
	a.results.BesideWithin(measure.Name{
		Key:  fmt.Sprintf("delivery/resident/clones=%d", a.clones),
		What: fmt.Sprintf("resident memory with %d clones delivered in stages", a.clones),
	}, resident[1], resident[0], stagedMemoryBudget, measure.MiB)
	return nil
}

// stagedFanOut compares a source edit that passes four stages with one that
// reaches as many namespaces at once.
func (a *arena) stagedFanOut(ctx context.Context) error {
	writes := 0
	name := measure.Name{Key: fmt.Sprintf("delivery/fan-out/clones=%d", a.clones), What: fmt.Sprintf("source edit to the last of %d clones, in 4 stages", a.clones)}
	err := a.compare(ctx, name, a.clones, stagedFanOutBudget, func(ctx context.Context) (time.Duration, error) {
		mark, version := a.Cluster.Mark(), a.version()
		took, err := a.untilAllHave(ctx, version, a.edit(staged, version))
		if err != nil {
			return 0, err
		}
		if err := a.delivered(ctx); err != nil {
			return 0, err
		}
		asked, err := a.since(ctx, mark)
		writes += asked.writes
		return took, err
	}, func(ctx context.Context) (time.Duration, error) {
		took, err := a.untilCloned(ctx)
		if err != nil {
			return 0, err
		}
		return took, a.headwater.Idle(ctx)
	})
	if err != nil {
		return err
	}
	perDelivery := float64(writes) / float64(a.rounds(a.clones))
	a.results.Count(measure.Name{Key: name.Key + "/writes", What: "writes of such a delivery beyond one per clone"},
		perDelivery-float64(a.clones), stagedWritesBudget, measure.Plain("writes"))
	return nil
}

// canaries measure from the API server's answer to an edit until the clone of the
// first stage has it. The floor is the bench doing the same to a Secret of its own.
func (a *arena) canaries(ctx context.Context) error {
	clones, err := a.secrets(ctx, canary)
	if err != nil {
		return err
	}
	defer clones.Stop()
	own, err := a.secrets(ctx, bare)
	if err != nil {
		return err
	}
	defer own.Stop()
	return a.latency(ctx, measure.Name{Key: "delivery/canary", What: "edit of a staged source to the clone in its canary"},
		func(ctx context.Context) (time.Duration, error) {
			version := a.version()
			if err := a.edit(canary, version)(ctx); err != nil {
				return 0, err
			}
			began := time.Now()
			err := clones.Until(ctx, inTarget(version))
			return time.Since(began), err
		},
		func(ctx context.Context) (time.Duration, error) {
			version := a.version()
			if err := a.edit(bare, version)(ctx); err != nil {
				return 0, err
			}
			began := time.Now()
			if err := own.Until(ctx, func(event watch.Event) bool { return measure.NamespaceOf(event) == sourceNamespace }); err != nil {
				return 0, err
			}
			if err := measure.Update(ctx, a.peer, bareClone(target(0), version)); err != nil {
				return 0, err
			}
			err := own.Until(ctx, inTarget(version))
			return time.Since(began), err
		})
}

// rollbacks compare a request to go back to another revision with as many bare
// updates.
func (a *arena) rollbacks(ctx context.Context) error {
	source := object.Ref{Kind: object.Secret, Namespace: sourceNamespace, Name: staged}.String()
	recorded, err := a.revisions(ctx)
	if err != nil {
		return err
	}
	round := 0
	name := measure.Name{Key: fmt.Sprintf("delivery/rollback/clones=%d", a.clones), What: fmt.Sprintf("rollback to the last of %d clones", a.clones)}
	return a.compare(ctx, name, a.clones, rollbackBudget, func(ctx context.Context) (time.Duration, error) {
		round++
		back := recorded[round%2] // the newest one is what all have at first
		took, err := a.untilAllHave(ctx, string(back.Data["version"]), func(ctx context.Context) error {
			request := delivery.Request{Verb: delivery.Rollback, To: numberOf(back), At: time.Now()}
			return survey.ChangeRequests(ctx, a.Admin, lab.Namespace, stagedRule, func(stored survey.Requests) { stored[source] = request })
		})
		if err != nil {
			return 0, err
		}
		return took, a.headwater.Idle(ctx)
	}, a.bareFanOut)
}

func (a *arena) edit(source, version string) func(context.Context) error {
	return func(ctx context.Context) error {
		return measure.Update(ctx, a.Admin, measure.Secret(sourceNamespace, source, version))
	}
}

// untilAllHave times act until every clone of the staged source has version.
func (a *arena) untilAllHave(ctx context.Context, version string, act func(context.Context) error) (time.Duration, error) {
	clones, err := a.secrets(ctx, staged)
	if err != nil {
		return 0, err
	}
	defer clones.Stop()
	return measure.Timed(ctx, act, clones.Each(a.clones, inTarget(version)))
}

// delivered waits until the newest revision of the staged source has passed every
// stage, and Headwater has nothing left to do.
func (a *arena) delivered(ctx context.Context) error {
	err := lab.Eventually(ctx, func(ctx context.Context) error {
		recorded, err := a.revisions(ctx)
		if err != nil {
			return err
		}
		return lab.ErrorIf(len(recorded) == 0 || recorded[0].Annotations[mark.Verdict] != string(revisions.Delivered), "the newest revision is not delivered yet")
	})
	return errors.Join(err, a.headwater.Idle(ctx))
}

// revisions returns the recorded revisions of the staged source, the newest first.
func (a *arena) revisions(ctx context.Context) ([]corev1.Secret, error) {
	list, err := a.Admin.CoreV1().Secrets(lab.Namespace).List(ctx, metav1.ListOptions{LabelSelector: mark.Revision + "," + mark.Rule + "=" + stagedRule})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(x, y corev1.Secret) int { return cmp.Compare(numberOf(y), numberOf(x)) })
	return list.Items, nil
}

// numberOf returns 0 for what is not a revision.
func numberOf(recorded corev1.Secret) int {
	number, _ := strconv.Atoi(recorded.Labels[mark.Revision])
	return number
}
