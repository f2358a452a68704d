package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/headwater-k8s/headwater/test/bench/measure"
	"github.com/headwater-k8s/headwater/test/lab"
	"github.com/headwater-k8s/headwater/test/node"
)

const (
	// lookEvery is how far a measured time may be beyond the true one.
	lookEvery = 10 * time.Millisecond
	// staleAfter is when a file that still holds the old bytes is a fault: a
	// kubelet takes no longer by itself.
	staleAfter = 2 * time.Minute
	// podsEvery is how often a pod is asked for that is to start.
	podsEvery = 200 * time.Millisecond
)

// reader is a pod whose container reads the clone and the bare Secret from
// files.
type reader struct {
	namespace, name string
	container       *node.Container
	// before and after are the pod's annotations before a round, and when its
	// file was new.
	before, after map[string]string
}

// roleLabel tells the pods of the bench apart.
const roleLabel = "bench"

func home(i int) string { return fmt.Sprintf("%s%d", homes, i) }

// settle makes the namespaces of the readers. The rule of their source is about
// no others: what it takes to write thousands of clones is measured elsewhere.
func (a *arena) settle(ctx context.Context) error {
	err := measure.Parallel(ctx, refreshNamespaces, func(ctx context.Context, i int) error { return a.addTarget(ctx, home(i)) })
	if err != nil {
		return err
	}
	return a.headwater.Idle(ctx)
}

// board starts readers, so many in each of the namespaces, and waits until they
// run and Headwater has taken note of them.
func (a *arena) board(ctx context.Context, n *node.Node, each int) ([]*reader, error) {
	measure.Progress("starting %d pods", each*refreshNamespaces)
	spec := lab.ByVolume(shared)
	spec.NodeName = n.Name()
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: bare, VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: bare},
	}})
	mounts := &spec.Containers[0].VolumeMounts
	*mounts = append(*mounts, corev1.VolumeMount{Name: bare, MountPath: "/" + bare})
	readers := make([]*reader, each*refreshNamespaces)
	err := measure.Parallel(ctx, len(readers), func(ctx context.Context, i int) (err error) {
		readers[i] = &reader{namespace: home(i % refreshNamespaces), name: fmt.Sprintf("reads-%d-%d", each, i)}
		readers[i].container, err = a.runPod(ctx, n, readers[i].namespace, readers[i].name, "reads", spec)
		return err
	})
	if err != nil {
		return nil, err
	}
	return readers, a.headwater.Idle(ctx)
}

// runPod waits until it runs.
func (a *arena) runPod(ctx context.Context, n *node.Node, namespace, name, role string, spec corev1.PodSpec) (container *node.Container, err error) {
	pods := a.Admin.CoreV1().Pods(namespace)
	meta := metav1.ObjectMeta{Name: name, Labels: map[string]string{roleLabel: role}}
	if _, err := pods.Create(ctx, &corev1.Pod{ObjectMeta: meta, Spec: spec}, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, podsEvery, measure.Patience, true, func(ctx context.Context) (bool, error) {
		pod, err := pods.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		container, last = n.Container(pod, "app")
		return last == nil, nil
	})
	if err != nil {
		return nil, fmt.Errorf("start pod %s/%s: %w", namespace, name, errors.Join(err, last))
	}
	return container, nil
}

// amid does something while other pods start and end all the time.
func (a *arena) amid(ctx context.Context, n *node.Node, do func(context.Context) error) error {
	churning, stop := context.WithCancel(ctx)
	defer stop()
	errs := make([]error, crowd)
	var all sync.WaitGroup
	for i := range crowd {
		all.Go(func() {
			if err := a.churn(churning, n, i); churning.Err() == nil {
				errs[i] = err
				stop()
			}
		})
	}
	err := do(ctx)
	stop()
	all.Wait()
	return errors.Join(err, errors.Join(errs...), a.clear(ctx))
}

// churn starts one pod after the other, each as soon as the one before it has
// run.
func (a *arena) churn(ctx context.Context, n *node.Node, i int) error {
	spec := lab.ByNothing()
	spec.NodeName = n.Name()
	namespace := home(i % refreshNamespaces)
	for turn := 0; ; turn++ {
		name := fmt.Sprintf("%s-%d-%d", churned, i, turn)
		if _, err := a.runPod(ctx, n, namespace, name, churned, spec); err != nil {
			return err
		}
		if err := a.Admin.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
}

// churned is the role of pods that come and go.
const churned = "churn"

// clear waits until none of these is left.
func (a *arena) clear(ctx context.Context) error {
	these := metav1.ListOptions{LabelSelector: roleLabel + "=" + churned}
	for i := range refreshNamespaces {
		if err := a.Admin.CoreV1().Pods(home(i)).DeleteCollection(ctx, metav1.DeleteOptions{}, these); err != nil {
			return err
		}
	}
	return wait.PollUntilContextTimeout(ctx, podsEvery, measure.Patience, true, func(ctx context.Context) (bool, error) {
		left, err := a.Admin.CoreV1().Pods(metav1.NamespaceAll).List(ctx, these)
		return err == nil && len(left.Items) == 0, err
	})
}

// untilRead times, for each reader, from the beginning of act until its file in
// the folder holds version, and calls then at that moment. A file that holds
// anything but the version or what was there before is a fault, and so is one
// that stays stale.
func untilRead(
	ctx context.Context, readers []*reader, folder, version string,
	act func(context.Context) error, then func(context.Context, *reader) error,
) ([]time.Duration, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, staleAfter, fmt.Errorf("it still holds the old bytes after %s", staleAfter))
	defer cancel()
	took, errs := make([]time.Duration, len(readers)), make([]error, len(readers)+1)
	began := time.Now()
	var all sync.WaitGroup
	for i, r := range readers {
		all.Go(func() {
			if errs[i] = r.untilReads(ctx, "/"+folder+"/version", version); errs[i] != nil {
				return
			}
			took[i] = time.Since(began)
			errs[i] = then(ctx, r)
		})
	}
	all.Go(func() { errs[len(readers)] = act(ctx) })
	all.Wait()
	return took, errors.Join(errs...)
}

func (r *reader) untilReads(ctx context.Context, file, version string) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	before, err := r.container.File(file)
	for now := before; ; now, err = r.container.File(file) {
		switch {
		case err != nil:
			return fmt.Errorf("%s of %s/%s: %w", file, r.namespace, r.name, err)
		case now == version:
			return nil
		case now != before:
			return fmt.Errorf("%s of %s/%s holds %q, which is neither the old version, %s, nor the new, %s", file, r.namespace, r.name, now, before, version)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s of %s/%s: %w", file, r.namespace, r.name, context.Cause(ctx))
		case <-ticker.C:
		}
	}
}
