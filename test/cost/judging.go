package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/test/bench/measure"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

// judging measures protected writes that are allowed, and as many of a Secret
// that nothing protects: dry runs, which are judged as any write is, and
// change nothing.
func (y *yard) judging(ctx context.Context) error {
	const protected, bare = "judged", "bare"
	if err := y.setRules(ctx, fmt.Sprintf("- name: %s\n  source: {kind: Secret, namespace: %s, name: %s}\n  protect: {allow: {users: [%s]}}\n",
		protected, sourceNamespace, protected, allowed)); err != nil {
		return err
	}
	if err := lab.Grant(ctx, y.Admin, "cost-secrets", allowed); err != nil {
		return err
	}
	for _, name := range []string{protected, bare} {
		if err := measure.Create(ctx, y.Admin, secret(sourceNamespace, name, usualPayload)); err != nil {
			return err
		}
	}
	if err := y.start(ctx, y.Run); err != nil {
		return err
	}
	editor, err := kubernetes.NewForConfig(y.Cluster.ConfigFor(allowed))
	if err != nil {
		return err
	}
	if err := y.proven(ctx, editor, protected); err != nil {
		return err
	}
	for _, n := range y.options.judged {
		for _, one := range []struct {
			per  driver
			name string
		}{{perJudged, protected}, {perBare, bare}} {
			took, err := y.spend(ctx, func(ctx context.Context, _ cluster.Mark) (time.Time, error) {
				err := parallel(ctx, n, func(ctx context.Context, _ int) error { return dryEdit(ctx, editor, one.name) })
				return time.Now(), err
			})
			if err != nil {
				return err
			}
			delete(took, revision)
			delete(took, wal)
			y.book(one.per, n, took)
		}
	}
	return y.setRules(ctx, "")
}

// proven waits until the protection is seen to hold, and lets the editor in.
func (y *yard) proven(ctx context.Context, editor kubernetes.Interface, name string) error {
	return lab.Within(ctx, patience, func(ctx context.Context) error {
		proven, err := y.headwater.Metric(ctx, "headwater_protection_proven", nil)
		if err == nil && proven < 1 {
			err = fmt.Errorf("protection is not proven yet")
		}
		if err != nil {
			return err
		}
		return dryEdit(ctx, editor, name)
	})
}

func dryEdit(ctx context.Context, as kubernetes.Interface, name string) error {
	_, err := as.CoreV1().Secrets(sourceNamespace).Patch(ctx, name, types.MergePatchType, []byte(`{"stringData":{"version":"dry"}}`),
		metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}
