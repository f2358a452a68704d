package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/test/harness"
)

func (s *Story) sync(ctx context.Context) error {
	if err := s.tell.Step(ctx, "headwater starts and is ready", s.start); err != nil {
		return err
	}
	targets, err := s.targets(ctx)
	if err != nil {
		return err
	}
	err = s.tell.Step(ctx, "clones appear in every namespace but kube-*, platform and Headwater's own", s.untilClonedTo(targets, "first"))
	if err != nil {
		return err
	}
	s.tell.Say("clones in: %s", strings.Join(targets, ", "))
	err = s.tell.Step(ctx, "and nowhere else", func(ctx context.Context) error { return s.nowhereElse(ctx, targets) })
	if err != nil {
		return err
	}
	return s.stepInside(ctx, "the containers of team-a start, now that their Secret is there", "first")
}

func (s *Story) heal(ctx context.Context) error {
	err := s.tell.Step(ctx, "a new namespace, team-c, gets its clone", func(ctx context.Context) error {
		if err := harness.EnsureNamespace(ctx, s.admin, "team-c", nil); err != nil {
			return err
		}
		return s.untilClonedTo([]string{"team-c"}, "first")(ctx)
	})
	if err != nil {
		return err
	}
	err = s.tell.Step(ctx, "the clone in team-b is deleted, and comes back", func(ctx context.Context) error {
		if err := s.admin.CoreV1().Secrets(teamB).Delete(ctx, sourceName, metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("delete the clone: %w", err)
		}
		return s.untilClonedTo([]string{teamB}, "first")(ctx)
	})
	if err != nil {
		return err
	}
	return s.tell.Step(ctx, "the clone in team-b is edited, and is put right", s.tamper)
}

func (s *Story) tamper(ctx context.Context) error {
	clone, err := s.clone(ctx, teamB)
	if err != nil {
		return fmt.Errorf("read the clone: %w", err)
	}
	clone.Data["password"] = []byte("tampered")
	clone.Data["extra"] = []byte("added")
	if _, err := s.admin.CoreV1().Secrets(teamB).Update(ctx, clone, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("edit the clone: %w", err)
	}
	return harness.Eventually(ctx, func(ctx context.Context) error {
		if clone, err := s.clone(ctx, teamB); err != nil || len(clone.Data) != 2 {
			return errors.Join(errors.New("the added key is still there"), err)
		}
		return s.cloned(ctx, []string{teamB}, "first")
	})
}

func (s *Story) protect(ctx context.Context) error {
	err := s.tell.Step(ctx, "the API server has learned to ask Headwater about the source", eventually(func(ctx context.Context) error {
		return harness.Refused(s.patchSource(ctx, s.editor, "probe", metav1.DryRunAll))
	}))
	if err != nil {
		return err
	}
	secrets := s.editor.CoreV1().Secrets(platform)
	var message string
	attempts := []struct {
		verb string
		try  func(context.Context) error
	}{
		{"update", func(ctx context.Context) error {
			source, err := secrets.Get(ctx, sourceName, metav1.GetOptions{})
			if err != nil {
				return harness.Permanent(fmt.Errorf("jane cannot read the source: %w", err))
			}
			source.Data["password"] = []byte("slip")
			_, err = secrets.Update(ctx, source, metav1.UpdateOptions{})
			return err
		}},
		{"patch", func(ctx context.Context) error { return s.patchSource(ctx, s.editor, "slip") }},
		{"delete", func(ctx context.Context) error {
			return secrets.Delete(ctx, sourceName, metav1.DeleteOptions{})
		}},
		{"deletecollection", func(ctx context.Context) error {
			return secrets.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=" + sourceName})
		}},
	}
	for _, attempt := range attempts {
		err := s.tell.Step(ctx, "jane tries to "+attempt.verb+" the source, and is refused", func(ctx context.Context) error {
			err := attempt.try(ctx)
			if err := harness.Refused(err); err != nil {
				return err
			}
			message = err.Error()
			return nil
		})
		if err != nil {
			return err
		}
	}
	s.tell.Say("%s", message)
	return nil
}

func (s *Story) patchSource(ctx context.Context, client kubernetes.Interface, password string, dryRun ...string) error {
	patch := fmt.Appendf(nil, `{"stringData":{"password":%q}}`, password)
	_, err := client.CoreV1().Secrets(platform).Patch(ctx, sourceName, types.MergePatchType, patch, metav1.PatchOptions{DryRun: dryRun})
	return err
}

func (s *Story) spread(ctx context.Context) error {
	before, err := s.look(ctx)
	if err != nil {
		return err
	}
	targets, err := s.targets(ctx)
	if err != nil {
		return err
	}
	sights, err := s.lookInside(ctx)
	if err != nil {
		return err
	}
	err = s.tell.Step(ctx, "olga, cluster-admin through a ClusterRoleBinding, changes the password", func(ctx context.Context) error {
		return s.patchSource(ctx, s.operator, "second")
	})
	if err != nil {
		return err
	}
	err = s.tell.Step(ctx, "the change reaches every clone", s.untilClonedTo(targets, "second"))
	if err != nil {
		return err
	}
	err = s.tell.Step(ctx, "both pods that mount it are annotated, so that their kubelet rewrites the volume now",
		s.untilChanged(before, podKey(volumeWorkload), podKey(barePod)))
	if err != nil {
		return err
	}
	if err := s.tellFiles(ctx, sights, "second"); err != nil {
		return err
	}
	err = s.tell.Step(ctx, "the pod templates of both env consumers are stamped, after a debounce of 1 s",
		s.untilChanged(before, envWorkload, envFromWorkload))
	if err != nil {
		return err
	}
	if err := s.stepInside(ctx, "their rollouts end in processes that have the new value", "second"); err != nil {
		return err
	}
	return s.tell.Step(ctx, "nothing else was touched: not the volume's Deployment, not the one that does not use it", s.exactly(before,
		envWorkload, envFromWorkload, podKey(volumeWorkload), podKey(barePod)))
}
