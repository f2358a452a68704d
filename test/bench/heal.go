package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/headwater-k8s/headwater/test/bench/measure"
)

// heals measures from the API server's answer to the deletion or edit of a
// clone until the clone is back. The floor is the bench doing the same to a
// Secret of its own, by way of a watch too.
func (a *arena) heals(ctx context.Context) error {
	clones, err := a.secrets(ctx, shared)
	if err != nil {
		return err
	}
	defer clones.Stop()
	own, err := a.secrets(ctx, bare)
	if err != nil {
		return err
	}
	defer own.Stop()
	err = a.latency(ctx, measure.Name{Key: "heal/deleted", What: "clone deleted to restored"},
		a.healing(a.deletes(shared), clones.Restored(watch.Added)),
		a.healing(a.deletes(bare), own.Repaired(watch.Deleted, a.recreates, watch.Added)))
	if err != nil {
		return err
	}
	return a.latency(ctx, measure.Name{Key: "heal/edited", What: "clone edited to restored"},
		a.healing(a.edits(shared), clones.Restored(watch.Modified)),
		a.healing(a.edits(bare), own.Repaired(watch.Modified, a.rewrites, watch.Modified)))
}

// healing does damage in the next namespace at each call, and times its repair.
func (a *arena) healing(damage, repair measure.Step) measure.Timer {
	next := -1
	return func(ctx context.Context) (time.Duration, error) {
		next++
		namespace := target(next % a.clones)
		if err := damage(ctx, namespace); err != nil {
			return 0, fmt.Errorf("damage: %w", err)
		}
		began := time.Now()
		err := repair(ctx, namespace)
		return time.Since(began), err
	}
}

func (a *arena) deletes(name string) measure.Step {
	return func(ctx context.Context, namespace string) error {
		return a.Admin.CoreV1().Secrets(namespace).Delete(ctx, name, metav1.DeleteOptions{})
	}
}

func (a *arena) edits(name string) measure.Step {
	return func(ctx context.Context, namespace string) error {
		_, err := a.Admin.CoreV1().Secrets(namespace).Patch(ctx, name, types.MergePatchType, []byte(measure.Tampering), metav1.PatchOptions{})
		return err
	}
}

func (a *arena) recreates(ctx context.Context, namespace string) error {
	return measure.Create(ctx, a.peer, bareClone(namespace, "0"))
}

func (a *arena) rewrites(ctx context.Context, namespace string) error {
	return measure.Update(ctx, a.peer, bareClone(namespace, "0"))
}
