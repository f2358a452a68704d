package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/bench/measure"
	"github.com/headwater-k8s/headwater/test/lab"
	"github.com/headwater-k8s/headwater/test/node"
)

const (
	// refreshNamespaces is how many hold readers.
	refreshNamespaces = 10
	// crowd is how many pods make a node busy.
	crowd = 50
	// askAgain is Headwater's own confirmRefreshAfter.
	askAgain = 2 * time.Second
)

// refreshes measures on a real node from before a source edit until the new
// bytes are in the files that running containers read. The floor is the bench
// itself writing the Secrets and asking the kubelet. It stops Headwater in the
// end, to see how long a kubelet takes that nobody asks.
func (a *arena) refreshes(ctx context.Context) (err error) {
	measure.Progress("starting a node")
	n, err := node.Start(ctx, a.Cluster, node.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Stop()) }()
	if err := a.settle(ctx); err != nil {
		return err
	}
	few, err := a.board(ctx, n, 1)
	if err != nil {
		return err
	}
	what := "source edit to new bytes in containers"
	if err := a.refreshed(ctx, measure.Name{Key: fmt.Sprintf("refresh/pods=%d", len(few)), What: fmt.Sprintf("%s, %d pods", what, len(few))}, few); err != nil {
		return err
	}
	err = a.amid(ctx, n, func(ctx context.Context) error {
		return a.refreshed(ctx, measure.Name{
			Key:  fmt.Sprintf("refresh/pods=%d/churning=%d", len(few), crowd),
			What: fmt.Sprintf("%s, %d pods, while %d others start and end", what, len(few), crowd),
		}, few)
	})
	if err != nil {
		return err
	}
	more, err := a.board(ctx, n, crowd/refreshNamespaces)
	if err != nil {
		return err
	}
	all := slices.Concat(few, more)
	if err := a.refreshed(ctx, measure.Name{Key: fmt.Sprintf("refresh/pods=%d", len(all)), What: fmt.Sprintf("%s, %d pods", what, len(all))}, all); err != nil {
		return err
	}
	return a.unasked(ctx, all)
}

// refreshed adds the rows of one set of readers.
func (a *arena) refreshed(ctx context.Context, name measure.Name, readers []*reader) error {
	var ours, floor []time.Duration
	confirmed := 0
	for range a.options.rounds {
		took, late, err := a.refreshRound(ctx, readers)
		if err != nil {
			return err
		}
		ours, confirmed = append(ours, took...), confirmed+late
		if took, err = a.bareRefreshRound(ctx, readers); err != nil {
			return err
		}
		floor = append(floor, took...)
	}
	a.results.Latency(name, ours, floor, refreshBudget)
	a.results.Add(measure.Row{What: "  of these, only when the kubelet was asked again", Value: fmt.Sprintf("%d of %d", confirmed, len(ours))})
	return nil
}

// refreshRound is one source edit, and how many of the readers saw it no sooner
// than Headwater had asked their kubelet a second time.
func (a *arena) refreshRound(ctx context.Context, readers []*reader) (took []time.Duration, confirmed int, err error) {
	for _, r := range readers {
		if r.before, err = a.marks(ctx, r); err != nil {
			return nil, 0, err
		}
	}
	version := a.version()
	took, err = untilRead(ctx, readers, shared, version, a.editSource(fewNamespace, version), func(ctx context.Context, r *reader) (err error) {
		r.after, err = a.marks(ctx, r)
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	for _, r := range readers {
		if r.after[mark.RefreshedFor] != r.before[mark.RefreshedFor] && r.after[mark.RefreshConfirmed] == r.after[mark.RefreshedFor] {
			confirmed++
		}
	}
	return took, confirmed, lab.Eventually(ctx, func(ctx context.Context) error { return a.confirmed(ctx, readers) })
}

// confirmed is nil when Headwater has nothing left to ask of any kubelet.
func (a *arena) confirmed(ctx context.Context, readers []*reader) error {
	for _, r := range readers {
		marks, err := a.marks(ctx, r)
		if err != nil {
			return err
		}
		if marks[mark.RefreshedFor] == r.before[mark.RefreshedFor] || marks[mark.RefreshedFor] != marks[mark.RefreshConfirmed] {
			return fmt.Errorf("the refresh of %s/%s is not confirmed", r.namespace, r.name)
		}
	}
	return nil
}

func (a *arena) marks(ctx context.Context, r *reader) (map[string]string, error) {
	pod, err := a.Admin.CoreV1().Pods(r.namespace).Get(ctx, r.name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return pod.Annotations, nil
}

// bareRefreshRound is the same done by the bench, by the least number of
// requests: each Secret is written, then its readers' kubelet asked, and asked
// again after as long as Headwater waits.
func (a *arena) bareRefreshRound(ctx context.Context, readers []*reader) ([]time.Duration, error) {
	version := a.version()
	return untilRead(ctx, readers, bare, version, func(ctx context.Context) error {
		err := measure.Parallel(ctx, refreshNamespaces, func(ctx context.Context, i int) error {
			if err := a.writeBare(ctx, i, version); err != nil {
				return err
			}
			return a.ask(ctx, in(home(i), readers), version)
		})
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(askAgain):
			return a.ask(ctx, readers, version+" again")
		}
	}, nothing)
}

// in are those of readers that are in namespace.
func in(namespace string, readers []*reader) []*reader {
	return slices.DeleteFunc(slices.Clone(readers), func(r *reader) bool { return r.namespace != namespace })
}

func nothing(context.Context, *reader) error { return nil }

func (a *arena) writeBare(ctx context.Context, i int, version string) error {
	return measure.Update(ctx, a.peer, measure.Secret(home(i), bare, version))
}

// ask changes an annotation of every reader, as Headwater does.
func (a *arena) ask(ctx context.Context, readers []*reader, value string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"bench":%q}}}`, value)
	return measure.Parallel(ctx, len(readers), func(ctx context.Context, i int) error {
		_, err := a.peer.CoreV1().Pods(readers[i].namespace).Patch(ctx, readers[i].name, types.MergePatchType, patch, byPeer)
		return err
	})
}

// unasked adds how long a kubelet takes by itself.
func (a *arena) unasked(ctx context.Context, readers []*reader) error {
	if a.options.unasked == 0 {
		return nil
	}
	a.stop()
	var all []time.Duration
	for range a.options.unasked {
		measure.Progress("waiting for the kubelet's own round, up to 90 seconds")
		version := a.version()
		took, err := untilRead(ctx, readers, bare, version, func(ctx context.Context) error {
			return measure.Parallel(ctx, refreshNamespaces, func(ctx context.Context, i int) error { return a.writeBare(ctx, i, version) })
		}, nothing)
		if err != nil {
			return err
		}
		all = append(all, took...)
	}
	a.results.Alone(measure.Name{
		Key: fmt.Sprintf("refresh/unasked/pods=%d", len(readers)), What: fmt.Sprintf("the same without Headwater, %d pods", len(readers)),
	}, all)
	return nil
}
