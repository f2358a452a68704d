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

// admission measures what the webhook adds to a protected write that it
// allows, and counts that no other write asks it. The floor is the same user's
// write of a Secret that nothing protects. Both are dry runs, which skip no
// more than the store: a real one would set off a fan-out.
func (a *arena) admission(ctx context.Context) error {
	editor, err := client(a.cluster.ConfigFor(allowed))
	if err != nil {
		return err
	}
	if err := harness.Grant(ctx, a.admin, "bench-secrets", allowed); err != nil {
		return err
	}
	const what = "protected write that is judged"
	unprotected := edit(editor, target(0), bare)
	err = harness.Eventually(ctx, func(ctx context.Context) error { // once the API server knows of the grant
		_, err := unprotected(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	protected := edit(editor, sourceNamespace, shared)
	took, base, err := alternate(ctx, a.options.samples, protected, unprotected)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	a.results.added(what, took, base, 3*time.Millisecond)
	neighbour := edit(editor, sourceNamespace, bare)
	if _, _, err := alternate(ctx, a.options.samples, neighbour, neighbour); err != nil {
		return err
	}
	reviews, err := a.headwater.Metric(ctx, "headwater_protect_requests_total", nil)
	if err != nil {
		return err
	}
	a.results.count("reviews of other writes, since the last start", reviews-float64(len(took)), 0, "")
	return nil
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
