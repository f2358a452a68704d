package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/test/harness"
)

const (
	// addedBudget is what a call of the webhook may add to a write, tailBudget how
	// its tail may compare with that of a webhook that does nothing.
	addedBudget = 3 * time.Millisecond
	tailBudget  = 1.25
)

// admission measures what the webhook adds to a protected write that it
// allows, and counts that no other write asks it. One floor is the same user's
// write of a Secret that nothing protects; the other is that of a Secret which
// a webhook judges that does nothing. All are dry runs, which skip no more than
// the store: a real one would set off a fan-out.
func (a *arena) admission(ctx context.Context) error {
	editor, err := a.editor(ctx)
	if err != nil {
		return err
	}
	stop, err := a.sayYes(ctx)
	if err != nil {
		return err
	}
	defer stop()
	timers := []timer{edit(editor, sourceNamespace, shared), edit(editor, sourceNamespace, yes), edit(editor, target(0), bare)}
	reviews := 0
	judge := func(what string, took [][]time.Duration) {
		reviews += len(took[0])
		a.results.added(what, took[0], took[2], addedBudget)
		a.results.tail(what+", beside a webhook that does nothing", took[0], took[1], tailBudget)
	}
	took, err := inTurn(ctx, a.options.samples, timers...)
	if err != nil {
		return fmt.Errorf("protected write: %w", err)
	}
	judge("protected write that is judged", took)
	if took, err = load(ctx, a.options.rate, a.options.samples, timers...); err != nil {
		return fmt.Errorf("protected writes: %w", err)
	}
	judge(fmt.Sprintf("the same, %d a second", a.options.rate), took)
	if _, err := inTurn(ctx, a.options.samples, edit(editor, sourceNamespace, bare)); err != nil {
		return err
	}
	asked, err := a.headwater.Metric(ctx, "headwater_protect_requests_total", nil)
	if err != nil {
		return err
	}
	a.results.count("reviews of other writes, since the last start", asked-float64(reviews), 0, "")
	return nil
}

// editor is the user whom the rule allows, once the API server knows them.
func (a *arena) editor(ctx context.Context) (kubernetes.Interface, error) {
	editor, err := client(a.cluster.ConfigFor(allowed))
	if err != nil {
		return nil, err
	}
	if err := harness.Grant(ctx, a.admin, "bench-secrets", allowed); err != nil {
		return nil, err
	}
	if err := create(ctx, a.admin, secret(sourceNamespace, yes, "0")); err != nil {
		return nil, err
	}
	known := edit(editor, target(0), bare)
	err = harness.Eventually(ctx, func(ctx context.Context) error {
		_, err := known(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("grant to %s: %w", allowed, err)
	}
	return editor, nil
}

// edit times one edit, as a dry run.
func edit(as kubernetes.Interface, namespace, name string) timer {
	patch := []byte(`{"stringData":{"version":"dry"}}`)
	return func(ctx context.Context) (time.Duration, error) {
		began := time.Now()
		_, err := as.CoreV1().Secrets(namespace).Patch(ctx, name, types.MergePatchType, patch,
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return time.Since(began), err
	}
}
