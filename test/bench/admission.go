package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/test/bench/measure"
	"github.com/headwater-k8s/headwater/test/lab"
)

// fullRate is more writes a second than most clusters ever see. On a machine that
// they keep busy altogether, what a webhook adds is mostly waiting for a CPU: it
// is judged beside one that does nothing alone.
const fullRate = 500

// admission measures what the webhook adds to a protected write that it
// allows, and counts that no other write asks it. One floor is the same user's
// write of a Secret that nothing protects; the other is that of a Secret which
// a webhook judges that does nothing. All are dry runs, which skip no more than
// the store: a real one would set off a fan-out.
func (a *arena) admission(ctx context.Context) error {
	editor, err := a.editor(ctx, allowed)
	if err != nil {
		return err
	}
	stop, err := a.sayYes(ctx)
	if err != nil {
		return err
	}
	defer stop()
	timers := []measure.Timer{edit(editor, sourceNamespace, shared), edit(editor, sourceNamespace, yes), edit(editor, target(0), bare)}
	reviews := 0
	judge := func(key, what string, took [][]time.Duration, added func(of measure.Name, ours, floor []time.Duration)) {
		reviews += len(took[0])
		added(measure.Name{Key: "admission/" + key, What: what}, took[0], took[2])
		a.results.Tail(measure.Name{
			Key: "admission/" + key + "/beside=yes", What: what + ", beside a webhook that does nothing",
		}, took[0], took[1], tailBudget)
	}
	within := func(of measure.Name, ours, floor []time.Duration) { a.results.Added(of, ours, floor, addedBudget) }
	took, err := measure.InTurn(ctx, a.options.samples, timers...)
	if err != nil {
		return fmt.Errorf("protected write: %w", err)
	}
	judge("one-by-one", "protected write that is judged", took, within)
	for _, load := range []struct {
		key   string
		rate  int
		added func(of measure.Name, ours, floor []time.Duration)
	}{{fmt.Sprintf("rate=%d", a.options.rate), a.options.rate, within}, {"full", fullRate, a.results.Spreads}} {
		if took, err = measure.Load(ctx, load.rate, a.options.samples, timers...); err != nil {
			return fmt.Errorf("protected writes, %d a second: %w", load.rate, err)
		}
		judge(load.key, fmt.Sprintf("the same, %d a second", load.rate), took, load.added)
	}
	return a.othersAreNotAsked(ctx, editor, reviews)
}

// othersAreNotAsked counts the reviews of anything but the protected writes that
// there were.
func (a *arena) othersAreNotAsked(ctx context.Context, editor kubernetes.Interface, protected int) error {
	if _, err := measure.InTurn(ctx, a.options.samples, edit(editor, sourceNamespace, bare)); err != nil {
		return err
	}
	asked, err := a.headwater.Metric(ctx, "headwater_protect_requests_total", nil)
	if err != nil {
		return err
	}
	a.results.Count(measure.Name{
		Key: "admission/reviews-of-others", What: "reviews of other writes, since the last start",
	}, asked-float64(protected), 0, measure.Plain("reviews"))
	return nil
}

// editor acts as a user who may write Secrets, as far as the API server goes, once
// that is known there.
func (a *arena) editor(ctx context.Context, user string) (kubernetes.Interface, error) {
	editor, err := client(a.Cluster.ConfigFor(user))
	if err != nil {
		return nil, err
	}
	known := edit(editor, target(0), bare)
	err = lab.Eventually(ctx, func(ctx context.Context) error {
		_, err := known(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("grant to %s: %w", user, err)
	}
	return editor, nil
}

// edit times one edit, as a dry run.
func edit(as kubernetes.Interface, namespace, name string) measure.Timer {
	patch := []byte(`{"stringData":{"version":"dry"}}`)
	return func(ctx context.Context) (time.Duration, error) {
		began := time.Now()
		_, err := as.CoreV1().Secrets(namespace).Patch(ctx, name, types.MergePatchType, patch,
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return time.Since(began), err
	}
}
