package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/lab"
)

// pace is the pause between two steps of the work.
const pace = 40 * time.Millisecond

// step is one thing that somebody does; an error is that nobody answered.
type step struct {
	weight int
	name   string
	do     func(context.Context) error
}

func (w *world) steps() []step {
	return []step{
		{6, "the owner edits the key that is consumed", func(ctx context.Context) error { return w.editShared(ctx, "k") }},
		{3, "the owner edits another key", func(ctx context.Context) error { return w.editShared(ctx, "other") }},
		{6, "somebody edits the flags", w.editFlags},
		{2, "somebody edits what is delivered in stages", w.editStaged},
		{10, "mallory edits the source", w.attack},
		{6, "mallory strips a clone of its mark", w.strip},
		{10, "a stranger edits a clone", w.scribble},
		{5, "a stranger deletes a clone", w.snatch},
		{1, "namespaces come", w.gather},
		{1, "namespaces go", w.disperse},
		{1, "the configuration is changed", func(context.Context) error { w.withExtra = !w.withExtra; return w.configure() }},
	}
}

// work does one thing after another until ctx ends.
func (w *world) work(ctx context.Context) {
	steps := w.steps()
	total := 0
	for _, step := range steps {
		total += step.weight
	}
	for pauseFor(ctx, pace) == nil {
		at := w.rand.IntN(total)
		for _, step := range steps {
			if at -= step.weight; at >= 0 {
				continue
			}
			err := step.do(ctx)
			switch {
			case err == nil:
				w.report.steps[step.name]++
			case ctx.Err() == nil && !unavailable(err):
				w.report.violate("%s: %v", step.name, err)
			}
			break
		}
	}
}

func (w *world) next() string {
	w.edits++
	return strconv.Itoa(w.edits)
}

// editShared is a write that the rule allows. It may fail only if no answer comes.
func (w *world) editShared(ctx context.Context, key string) error {
	w.attempts[key]++
	_, err := w.owner.CoreV1().Secrets(sourceNamespace).Patch(ctx, shared, types.MergePatchType,
		fmt.Appendf(nil, `{"stringData":{%q:%q}}`, key, w.next()), metav1.PatchOptions{})
	return err
}

func (w *world) editFlags(ctx context.Context) error {
	_, err := w.stranger.CoreV1().ConfigMaps(sourceNamespace).Patch(ctx, flags, types.MergePatchType,
		fmt.Appendf(nil, `{"data":{"k":%q}}`, w.next()), metav1.PatchOptions{})
	return err
}

// attack must be refused, at whatever moment.
func (w *world) attack(ctx context.Context) error { return w.steal(ctx, metav1.PatchOptions{}) }

// steal is an error unless it was Headwater that refused it.
func (w *world) steal(ctx context.Context, options metav1.PatchOptions) error {
	_, err := w.mallory.CoreV1().Secrets(sourceNamespace).Patch(ctx, shared, types.MergePatchType,
		[]byte(`{"stringData":{"k":"stolen"}}`), options)
	return lab.Refused(err)
}

// strip must be refused as well: who could take off the mark has a clone that
// Headwater would not touch.
func (w *world) strip(ctx context.Context) error {
	_, err := w.mallory.CoreV1().Secrets(w.anyHome()).Patch(ctx, shared, types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}}}`, mark.CloneLabel), metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return lab.Refused(err)
}

func (w *world) anyHome() string { return fmt.Sprint(home, w.rand.IntN(homes)) }

// scribble is noted: who consumes a scribbled key may be restarted for it, too.
func (w *world) scribble(ctx context.Context) error {
	namespace := w.anyHome()
	if w.rand.IntN(2) == 0 {
		w.scribbled[namespace]++
		_, err := w.stranger.CoreV1().Secrets(namespace).Patch(ctx, shared, types.MergePatchType,
			[]byte(`{"stringData":{"k":"scribbled"}}`), metav1.PatchOptions{})
		return lab.IgnoreGone(err)
	}
	name := flags
	if w.rand.IntN(2) == 0 {
		name = staged
	}
	_, err := w.stranger.CoreV1().ConfigMaps(namespace).Patch(ctx, name, types.MergePatchType,
		[]byte(`{"data":{"k":"`+scribbled+`","more":"x"}}`), metav1.PatchOptions{})
	return lab.IgnoreGone(err)
}

// scribbled is what a stranger writes to a clone.
const scribbled = "scribbled"

func (w *world) snatch(ctx context.Context) error {
	if w.rand.IntN(2) == 0 {
		return lab.IgnoreGone(w.stranger.CoreV1().ConfigMaps(w.anyHome()).Delete(ctx, staged, metav1.DeleteOptions{}))
	}
	return lab.IgnoreGone(w.stranger.CoreV1().Secrets(w.anyHome()).Delete(ctx, shared, metav1.DeleteOptions{}))
}

// gather makes the crowd's namespaces, as far as they are not there.
func (w *world) gather(ctx context.Context) error {
	for i := range w.crowd {
		if err := lab.EnsureNamespace(ctx, w.admin, fmt.Sprint(crowd, i), nil); err != nil {
			return err
		}
	}
	return nil
}

// disperse deletes them.
func (w *world) disperse(ctx context.Context) error {
	for i := range w.crowd {
		err := w.admin.CoreV1().Namespaces().Delete(ctx, fmt.Sprint(crowd, i), metav1.DeleteOptions{})
		if lab.IgnoreGone(err) != nil && !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}
