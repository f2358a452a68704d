package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/test/lab"
)

func (s *Story) sync(ctx context.Context) error {
	var targets []string
	return s.play(ctx,
		step{what: "headwater starts and is ready", do: s.start},
		step{what: "clones appear in every namespace but kube-*, platform and Headwater's own", do: func(ctx context.Context) (err error) {
			if targets, err = s.targets(ctx); err != nil {
				return err
			}
			return s.untilClonedTo(targets, "first")(ctx)
		}, say: func() string { return "clones in: " + strings.Join(targets, ", ") }},
		step{what: "and nowhere else", do: func(ctx context.Context) error { return s.nowhereElse(ctx, targets) }},
		s.inside("the containers of team-a start, now that their Secret is there", "first"))
}

func (s *Story) heal(ctx context.Context) error {
	return s.play(ctx,
		step{what: "a new namespace, team-c, gets its clone", do: func(ctx context.Context) error {
			if err := lab.EnsureNamespace(ctx, s.admin, "team-c", nil); err != nil {
				return err
			}
			return s.untilClonedTo([]string{"team-c"}, "first")(ctx)
		}},
		step{what: "the clone in team-b is deleted, and comes back", do: func(ctx context.Context) error {
			if err := s.admin.CoreV1().Secrets(teamB).Delete(ctx, sourceName, metav1.DeleteOptions{}); err != nil {
				return fmt.Errorf("delete the clone: %w", err)
			}
			return s.untilClonedTo([]string{teamB}, "first")(ctx)
		}},
		step{what: "the clone in team-b is edited, and is put right", do: s.tamper})
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
	return lab.Eventually(ctx, func(ctx context.Context) error {
		if clone, err := s.clone(ctx, teamB); err != nil || len(clone.Data) != 2 {
			return errors.Join(errors.New("the added key is still there"), err)
		}
		return s.cloned(ctx, []string{teamB}, "first")
	})
}

func (s *Story) protect(ctx context.Context) error {
	secrets := s.editor.CoreV1().Secrets(platform)
	var refusal error
	tries := func(verb string, try func(context.Context) error) step {
		return step{what: "jane tries to " + verb + " the source, and is refused", do: func(ctx context.Context) error {
			refusal = try(ctx)
			return lab.Refused(refusal)
		}}
	}
	last := tries("deletecollection", func(ctx context.Context) error {
		return secrets.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=" + sourceName})
	})
	last.say = func() string { return refusal.Error() }
	return s.play(ctx,
		step{what: "the API server has learned to ask Headwater about the source", do: eventually(func(ctx context.Context) error {
			return lab.Refused(s.patchSource(ctx, s.editor, "probe", metav1.DryRunAll))
		})},
		tries("update", func(ctx context.Context) error {
			source, err := secrets.Get(ctx, sourceName, metav1.GetOptions{})
			if err != nil {
				return fmt.Errorf("jane cannot read the source: %w", err)
			}
			source.Data["password"] = []byte("slip")
			_, err = secrets.Update(ctx, source, metav1.UpdateOptions{})
			return err
		}),
		tries("patch", func(ctx context.Context) error { return s.patchSource(ctx, s.editor, "slip") }),
		tries("delete", func(ctx context.Context) error { return secrets.Delete(ctx, sourceName, metav1.DeleteOptions{}) }),
		last)
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
	err = s.play(ctx,
		step{what: "olga, cluster-admin through a ClusterRoleBinding, changes the password", do: func(ctx context.Context) error {
			return s.patchSource(ctx, s.operator, "second")
		}},
		step{what: "the change reaches every clone", do: s.untilClonedTo(targets, "second")},
		step{
			what: "both pods that mount it are annotated, so that their kubelet rewrites the volume now",
			do:   s.untilChanged(before, podKey(volumeWorkload), podKey(barePod)),
		})
	if err != nil {
		return err
	}
	if err := s.tellFiles(ctx, sights, "second"); err != nil {
		return err
	}
	return s.play(ctx,
		step{what: "the pod templates of both env consumers are stamped, after a debounce of 1 s", do: s.untilChanged(before, envWorkload, envFromWorkload)},
		s.inside("their rollouts end in processes that have the new value", "second"),
		step{
			what: "nothing else was touched: not the volume's Deployment, not the one that does not use it",
			do:   s.exactly(before, envWorkload, envFromWorkload, podKey(volumeWorkload), podKey(barePod)),
		})
}
