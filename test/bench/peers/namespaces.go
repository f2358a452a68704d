package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/test/bench/measure"
)

const (
	// runLabel is on every namespace of a run, and says of which.
	runLabel = "bench-peers.headwater.dev/run"
	// removeWithin is how long their removal may take.
	removeWithin = 5 * time.Minute
)

// namespaces are those that a run has made. Its methods may be called
// concurrently.
type namespaces struct {
	run string

	mu    sync.Mutex
	names map[string]bool
}

func newNamespaces(run string) *namespaces { return &namespaces{run: run, names: map[string]bool{}} }

// add makes one, which nobody else may have made before.
func (n *namespaces) add(ctx context.Context, client kubernetes.Interface, name string, labels marks) error {
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{runLabel: n.run}}}
	for key, value := range labels {
		object.Labels[key] = value
	}
	n.know(name, true) // whether or not the answer is heard
	_, err := client.CoreV1().Namespaces().Create(ctx, object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		n.know(name, false)
		return fmt.Errorf("namespace %s is there already: choose another -prefix, or, if an earlier run was killed, "+
			"remove what it left: kubectl delete namespaces -l %s", name, runLabel)
	}
	if err != nil {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	return nil
}

func (n *namespaces) know(name string, ours bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names[name] = ours
}

// within says whether a request goes to one of them, or makes one.
func (n *namespaces) within(method, path string) bool {
	const all = "/api/v1/namespaces"
	if path == all {
		return method == http.MethodPost
	}
	_, rest, found := strings.Cut(path, "/namespaces/")
	name, _, _ := strings.Cut(rest, "/")
	n.mu.Lock()
	defer n.mu.Unlock()
	return found && n.names[name]
}

// remove removes all of them, and waits until they are gone.
func (n *namespaces) remove(ctx context.Context, client kubernetes.Interface) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeWithin)
	defer cancel()
	ours := metav1.ListOptions{LabelSelector: runLabel + "=" + n.run}
	list, err := client.CoreV1().Namespaces().List(ctx, ours)
	if err != nil {
		return fmt.Errorf("remove what was made: %w", err)
	}
	measure.Progress("removing %d namespaces", len(list.Items))
	err = measure.Parallel(ctx, len(list.Items), func(ctx context.Context, i int) error {
		one := list.Items[i]
		err := client.CoreV1().Namespaces().Delete(ctx, one.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(one.UID))})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
	if err == nil {
		err = n.gone(ctx, client, ours)
	}
	if err != nil {
		return errors.Join(err, fmt.Errorf("to remove what is left: kubectl delete namespaces -l %s=%s", runLabel, n.run))
	}
	return nil
}

func (n *namespaces) gone(ctx context.Context, client kubernetes.Interface, ours metav1.ListOptions) error {
	return wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		left, err := client.CoreV1().Namespaces().List(ctx, ours)
		return err == nil && len(left.Items) == 0, err
	})
}
