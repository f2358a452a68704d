package scenario

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/lab"
)

// traces is what Headwater has left on each consumer: for a Deployment the
// annotations of its pod template, for a pod its own, for both those of the
// Deployment itself.
type traces map[string]string

// podKey names the pods of a workload in traces.
func podKey(workload string) string { return "pod of " + workload }

// selfKey names the Deployment's own metadata in traces.
func selfKey(workload string) string { return "metadata of " + workload }

func (s *Story) look(ctx context.Context) (traces, error) {
	seen := traces{}
	deployments, err := s.admin.AppsV1().Deployments(teamA).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list deployments: %w", err)
	}
	for _, deployment := range deployments.Items {
		seen[deployment.Name] = trace(deployment.Spec.Template.Annotations)
		if deployment.Name == volumeWorkload || deployment.Name == idleWorkload {
			seen[selfKey(deployment.Name)] = trace(deployment.Annotations)
		}
	}
	pods, err := s.admin.CoreV1().Pods(teamA).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	for _, pod := range pods.Items {
		workload := pod.Labels["app"]
		switch {
		case pod.Name == barePod:
			workload = barePod
		case workload == envWorkload || workload == envFromWorkload:
			continue // replaced by their rollout
		}
		seen[podKey(workload)] = trace(pod.Annotations)
	}
	return seen, nil
}

// trace is every annotation of Headwater's, in order, but that a refresh was
// asked for twice.
func trace(annotations map[string]string) string {
	var ours []string
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if strings.Contains(key, "headwater") && key != mark.RefreshConfirmed {
			ours = append(ours, key+"="+annotations[key])
		}
	}
	return strings.Join(ours, " ")
}

func (t traces) changedSince(before traces) []string {
	var changed []string
	for name, now := range t {
		if before[name] != now {
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	return changed
}

// untilChanged waits until each of names bears another trace than before.
func (s *Story) untilChanged(before traces, names ...string) func(context.Context) error {
	return eventually(func(ctx context.Context) error {
		now, err := s.look(ctx)
		if err != nil {
			return err
		}
		changed := now.changedSince(before)
		for _, name := range names {
			if !slices.Contains(changed, name) {
				return fmt.Errorf("%s is as before; changed so far: %v", name, changed)
			}
		}
		return nil
	})
}

// exactly checks for a while that names, and nothing else, changed.
func (s *Story) exactly(before traces, names ...string) func(context.Context) error {
	slices.Sort(names)
	return func(ctx context.Context) error {
		return lab.Holds(ctx, time.Second, func(ctx context.Context) error {
			now, err := s.look(ctx)
			if err != nil {
				return err
			}
			if changed := now.changedSince(before); !slices.Equal(changed, names) {
				return fmt.Errorf("changed: %v; should be: %v", changed, names)
			}
			return nil
		})
	}
}

// step is one that the story plays; one without do is left out. What say returns is told
// after it.
type step struct {
	what string
	do   func(context.Context) error
	say  func() string
}

// play carries out steps, until one fails.
func (s *Story) play(ctx context.Context, steps ...step) error {
	for _, one := range steps {
		if one.do == nil {
			continue
		}
		if err := s.tell.Step(ctx, one.what, one.do); err != nil {
			return err
		}
		if one.say != nil {
			s.tell.Say("%s", one.say())
		}
	}
	return nil
}
