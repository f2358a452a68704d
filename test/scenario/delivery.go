package scenario

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/lab"
)

const (
	settingsName = "shop-settings"
	shopCanary   = "shop-canary"
	shopEarly    = "shop-a"
	shopLast     = "shop-b"
)

// stagedRule waits for nothing longer than it must, so that the story is short.
const stagedRule = `
- name: shop-settings
  source: {kind: ConfigMap, namespace: platform, name: shop-settings}
  validate:
  - {key: limit, is: Regex, pattern: "[0-9]+"}
  sync:
    namespaces: {include: ["shop-*"]}
    delivery:
      stages:
      - {name: canary, namespaces: {include: [shop-canary]}, soak: 5s}
      - {name: early, namespaces: {include: [shop-a]}, soak: 0s}
      rest: {soak: 0s}
  protect: {allow: {users: [jane]}}
  reload: {debounce: 100ms, minInterval: 0s}
`

var shops = []string{shopCanary, shopEarly, shopLast}

func (s *Story) deliver(ctx context.Context) error {
	var denial error
	err := s.play(ctx,
		step{what: "ConfigMap platform/shop-settings with limit: 100, and a rule for it: first shop-canary, then shop-a, then the rest", do: s.stage},
		step{what: "a Deployment in each of the three namespaces reads the limit, and cannot run with 0", do: s.openShops},
		step{what: "jane sets the limit to 200: every stage passes, and every namespace gets it", do: func(ctx context.Context) error {
			return s.setLimit(ctx, "200", s.all(s.verdictOf(2, "Delivered"), s.limits("200", "200", "200")))
		}},
		step{what: "jane, an allowed user, mistypes: \"lots\" is not a number, and she is denied", do: func(ctx context.Context) error {
			err := lab.Eventually(ctx, func(ctx context.Context) error { // the webhook may not be registered yet
				return lab.Refused(s.patchLimit(ctx, "lots", metav1.DryRunAll))
			})
			if err != nil {
				return err
			}
			denial = s.patchLimit(ctx, "lots")
			return lab.Refused(denial)
		}, say: func() string { return denial.Error() }})
	if err != nil {
		return err
	}
	return s.failAtCanary(ctx)
}

// failAtCanary delivers a value that passes the validation, and that nothing can
// run with.
func (s *Story) failAtCanary(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	times, err := s.watchVerdict(ctx)
	if err != nil {
		return err
	}
	var held map[string][]string
	err = s.play(ctx,
		step{what: "jane sets the limit to 0: the canary gets it, and its new pod crashes", do: func(ctx context.Context) error {
			return s.setLimit(ctx, "0", times.crashed.happened)
		}},
		step{what: "Headwater rejects the revision", do: s.eventuallyInShops(times.rejected.happened), say: func() string {
			return "from the crash loop that the kubelet reported to the verdict: " + short(times.rejected.at.Sub(times.crashed.at))
		}},
		step{
			what: "and takes it back: every namespace has 200, and the canary is healthy again",
			do:   s.eventuallyInShops(s.all(s.limits("200", "200", "200"), s.shopsRun)),
		},
		step{what: "no namespace but the canary ever had the 0, by the history that etcd keeps", do: func(ctx context.Context) (err error) {
			if held, err = s.limitsHeld(ctx); err != nil {
				return err
			}
			for _, namespace := range shops {
				if slices.Contains(held[namespace], "0") != (namespace == shopCanary) {
					return fmt.Errorf("the clone in %s has had %v", namespace, held[namespace])
				}
			}
			return nil
		}, say: func() string {
			var lines []string
			for _, namespace := range shops {
				lines = append(lines, namespace+": "+strings.Join(held[namespace], ", then "))
			}
			return strings.Join(lines, "\n")
		}})
	if err != nil {
		return err
	}
	if err := s.tellWhatWasRead(ctx); err != nil {
		return err
	}
	return s.tellCommands(ctx)
}

// stage creates the source and the namespaces, and adds the rule to the
// configuration of the running Headwater.
func (s *Story) stage(ctx context.Context) error {
	for _, name := range shops {
		if err := lab.EnsureNamespace(ctx, s.admin, name, nil); err != nil {
			return err
		}
	}
	source := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: settingsName}, Data: map[string]string{"limit": "100"}}
	if _, err := s.operator.CoreV1().ConfigMaps(platform).Create(ctx, source, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the source: %w", err)
	}
	config, err := os.ReadFile(s.config)
	if err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	if err := os.WriteFile(s.config, append(config, stagedRule...), 0o600); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	return lab.Eventually(ctx, s.all(s.verdictOf(1, "Delivered"), s.limits("100", "100", "100")))
}

// setLimit edits the source, and waits for condition.
func (s *Story) setLimit(ctx context.Context, limit string, condition func(context.Context) error) error {
	if err := s.patchLimit(ctx, limit); err != nil {
		return fmt.Errorf("change the source: %w", err)
	}
	return s.eventuallyInShops(condition)(ctx)
}

func (s *Story) patchLimit(ctx context.Context, limit string, dryRun ...string) error {
	patch := fmt.Appendf(nil, `{"data":{"limit":%q}}`, limit)
	_, err := s.editor.CoreV1().ConfigMaps(platform).Patch(ctx, settingsName, types.MergePatchType, patch, metav1.PatchOptions{DryRun: dryRun})
	return err
}

// limits is a condition on the clones in shops, in that order.
func (s *Story) limits(want ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		for i, namespace := range shops {
			clone, err := s.admin.CoreV1().ConfigMaps(namespace).Get(ctx, settingsName, metav1.GetOptions{})
			if err != nil {
				return fmt.Errorf("read the clone: %w", err)
			}
			if got := clone.Data["limit"]; got != want[i] {
				return fmt.Errorf("the limit in %s is %s, not %s", namespace, got, want[i])
			}
		}
		return nil
	}
}

// verdictOf is a condition on the revision of that number.
func (s *Story) verdictOf(number int, want string) func(context.Context) error {
	return func(ctx context.Context) error {
		list, err := s.admin.CoreV1().ConfigMaps(lab.Namespace).List(ctx, metav1.ListOptions{LabelSelector: fmt.Sprintf("%s=%d", mark.Revision, number)})
		if err != nil {
			return fmt.Errorf("list revisions: %w", err)
		}
		if len(list.Items) != 1 {
			return fmt.Errorf("there are %d revisions %d", len(list.Items), number)
		}
		if got := list.Items[0].Annotations[mark.Verdict]; got != want {
			return fmt.Errorf("revision %d is %s: %s", number, got, list.Items[0].Annotations[mark.Reason])
		}
		return nil
	}
}

// all is the condition that each of conditions is true.
func (s *Story) all(conditions ...func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, condition := range conditions {
			if err := condition(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

// limitsHeld are the limits that each namespace ever had, in order.
func (s *Story) limitsHeld(ctx context.Context) (map[string][]string, error) {
	editions, _, err := s.options.Cluster.History(ctx, 1, "configmaps")
	if err != nil {
		return nil, fmt.Errorf("read etcd's history: %w", err)
	}
	held := map[string][]string{}
	for _, edition := range editions {
		if clone, ok := edition.Object.(*corev1.ConfigMap); ok && edition.Name == settingsName {
			held[edition.Namespace] = slices.Compact(append(held[edition.Namespace], clone.Data["limit"]))
		}
	}
	return held, nil
}

// tellCommands shows what olga sees.
func (s *Story) tellCommands(ctx context.Context) error {
	kubeconfig := filepath.Join(s.options.Cluster.Dir(), operator+".kubeconfig")
	if err := s.options.Cluster.KubeconfigFor(kubeconfig, operator); err != nil {
		return err
	}
	for _, command := range []struct{ what, flags, shows string }{
		{"history " + settingsName, "", "Rejected"},
		{"diff " + settingsName + " 2 3 --values", " --config " + s.config, ""},
	} {
		var out []byte
		err := s.play(ctx, step{what: "headwater " + command.what, do: func(ctx context.Context) error {
			return lab.Eventually(ctx, func(ctx context.Context) (err error) { // a RuleStatus follows within a second
				args := strings.Fields(command.what + command.flags + " --kubeconfig " + kubeconfig)
				out, err = exec.CommandContext(ctx, s.options.Binary, args...).Output()
				if exited := (*exec.ExitError)(nil); errors.As(err, &exited) {
					return fmt.Errorf("%w: %s", err, exited.Stderr)
				}
				return cmp.Or(err, lab.ErrorIf(!strings.Contains(string(out), command.shows), "%s is not shown: %s", command.shows, out))
			})
		}, say: func() string { return strings.TrimSpace(string(out)) }})
		if err != nil {
			return err
		}
	}
	return nil
}

// notYet is nil where err is one that waiting heals.
func notYet(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
