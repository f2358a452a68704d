package scenario

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/test/lab"
	"github.com/headwater-k8s/headwater/test/node"
)

// readings are where the container of each consumer has the password from.
var readings = map[string]func(*node.Container) (string, error){
	volumeWorkload:  fromFile,
	barePod:         fromFile,
	envWorkload:     func(c *node.Container) (string, error) { return c.Env("VALUE") },
	envFromWorkload: func(c *node.Container) (string, error) { return c.Env("password") },
}

const passwordFile = "/shared/password"

func fromFile(c *node.Container) (string, error) { return c.File(passwordFile) }

// sight is what one container reads, as it changes.
type sight struct {
	workload      string
	container     *node.Container
	before, after string
	took          time.Duration
	seen          chan error // that it changed, or why not
}

// lookInside watches the containers that mount the Secret, on a real node, from
// now on.
func (s *Story) lookInside(ctx context.Context) ([]*sight, error) {
	if s.options.Node == nil {
		return nil, nil
	}
	var sights []*sight
	for _, workload := range []string{volumeWorkload, barePod} {
		container, err := s.container(ctx, workload)
		if err != nil {
			return nil, err
		}
		one := &sight{workload: workload, container: container, seen: make(chan error, 1)}
		if one.before, err = fromFile(container); err != nil {
			return nil, fmt.Errorf("read the file of %s: %w", workload, err)
		}
		go one.watch(ctx, time.Now())
		sights = append(sights, one)
	}
	return sights, nil
}

func (s *sight) watch(ctx context.Context, began time.Time) {
	s.seen <- lab.Eventually(ctx, func(context.Context) (err error) {
		if s.after, err = fromFile(s.container); err == nil && s.after == s.before {
			err = fmt.Errorf("the container of %s still reads %q", s.workload, s.before)
		}
		s.took = time.Since(began)
		return err
	})
}

// tellFiles tells what became of sights.
func (s *Story) tellFiles(ctx context.Context, sights []*sight, password string) error {
	if s.options.Node == nil {
		return nil
	}
	return s.play(ctx, step{what: "the containers of both read the new bytes, and run on", do: func(ctx context.Context) error {
		for _, one := range sights {
			if err := <-one.seen; err != nil {
				return err
			}
			now, err := s.container(ctx, one.workload)
			if err != nil {
				return err
			}
			if one.after != password || now.ID != one.container.ID {
				return fmt.Errorf("%s reads %q in container %s, which was %s", one.workload, one.after, now.ID, one.container.ID)
			}
		}
		return nil
	}, say: func() string {
		var lines []string
		for _, one := range sights {
			lines = append(lines, fmt.Sprintf("%s in %s: %q before; %q, %s after olga's change", passwordFile, one.workload, one.before, one.after, short(one.took)))
		}
		return strings.Join(lines, "\n")
	}})
}

// inside is the step that the containers of all consumers come to read this password; on a
// real node.
func (s *Story) inside(what, password string) step {
	if s.options.Node == nil {
		return step{}
	}
	return step{what: what, do: s.untilAllRead(password)}
}

// untilAllRead waits until there is one running container of each consumer, and
// it reads this password.
func (s *Story) untilAllRead(password string) func(context.Context) error {
	return eventually(func(ctx context.Context) error {
		for workload, read := range readings {
			container, err := s.container(ctx, workload)
			if err != nil {
				return err
			}
			got, err := read(container)
			if err != nil {
				return fmt.Errorf("look into %s: %w", workload, err)
			}
			if got != password {
				return fmt.Errorf("the container of %s reads %q", workload, got)
			}
		}
		return nil
	})
}

// container is the one of a consumer in team-a.
func (s *Story) container(ctx context.Context, workload string) (*node.Container, error) {
	return s.containerIn(ctx, teamA, workload)
}

func (s *Story) containerIn(ctx context.Context, namespace, workload string) (*node.Container, error) {
	pods, err := s.admin.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	var found []*corev1.Pod
	for i, pod := range pods.Items {
		if pod.Name == workload || pod.Labels["app"] == workload {
			found = append(found, &pods.Items[i])
		}
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%s has %d pods", workload, len(found))
	}
	return s.options.Node.Container(found[0], "app")
}
