package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/harness"
)

// samples is how often a latency is taken.
const samples = 100

// start measures the first fan-out, then a start with everything there.
func (a *arena) start(ctx context.Context) error {
	var err error
	first, err := a.untilAll(ctx, a.options.clones, shared, "0", func(context.Context) error {
		a.headwater, err = harness.Start(a.run)
		return err
	})
	if err != nil {
		return err
	}
	row("first start to last clone created", first.Round(time.Millisecond).String(), "")
	if err := a.headwater.Idle(ctx); err != nil {
		return err
	}
	a.headwater.Stop()
	began := time.Now()
	if a.headwater, err = harness.Start(a.run); err != nil {
		return err
	}
	if err := a.headwater.Ready(ctx); err != nil {
		return err
	}
	row("second start to ready", time.Since(began).Round(time.Millisecond).String(), "budget 5 s at 10,000 clones")
	if err := a.headwater.Idle(ctx); err != nil {
		return err
	}
	rss, err := residentMiB(a.headwater.PID())
	if err != nil {
		return err
	}
	row("resident memory", fmt.Sprintf("%d MiB", rss), "budget 100 MiB at 10,000 clones and 50,000 unrelated")
	return nil
}

// residentMiB reads the resident set of a process from Linux's /proc.
func residentMiB(pid int) (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0, fmt.Errorf("no VmRSS of process %d", pid)
	}
	kib, err := strconv.Atoi(fields[0])
	return kib / 1024, err
}

// fanOut compares a source edit with as many bare updates.
func (a *arena) fanOut(ctx context.Context) error {
	return a.compare(ctx, "source edit to last clone, against bare updates", 1.25,
		func(ctx context.Context) (time.Duration, error) {
			version := a.version()
			return a.untilAll(ctx, a.options.clones, shared, version, a.editSource(version))
		},
		func(ctx context.Context) (time.Duration, error) {
			version := a.version()
			return a.untilAll(ctx, a.options.clones, bare, version, func(ctx context.Context) error {
				return parallel(ctx, a.options.clones, func(ctx context.Context, i int) error {
					secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: target(i), Name: bare}, Data: payload(version)}
					_, err := a.client.CoreV1().Secrets(target(i)).Update(ctx, secret, metav1.UpdateOptions{})
					return err
				})
			})
		})
}

// compare prints the ratio of ours to floor, taken in turn.
func (a *arena) compare(ctx context.Context, what string, budget float64, ours, floor func(context.Context) (time.Duration, error)) error {
	var ratios []float64
	var last [2]time.Duration
	for range a.options.rounds {
		base, err := floor(ctx)
		if err != nil {
			return err
		}
		took, err := ours(ctx)
		if err != nil {
			return err
		}
		last = [2]time.Duration{took, base}
		ratios = append(ratios, took.Seconds()/base.Seconds())
	}
	slices.Sort(ratios)
	row(what, fmt.Sprintf("%.2f (%.2f–%.2f)", ratios[len(ratios)/2], ratios[0], ratios[len(ratios)-1]),
		fmt.Sprintf("budget %.2f; the last round %d ms to %d ms", budget, last[0].Milliseconds(), last[1].Milliseconds()))
	return nil
}

// newNamespaces measures from a namespace's creation to its clone.
func (a *arena) newNamespaces(ctx context.Context) error {
	next := 0
	add := func(ctx context.Context) error {
		next++
		name := fmt.Sprintf("bench-t-new-%05d", next)
		if err := harness.EnsureNamespace(ctx, a.client, name, nil); err != nil {
			return err
		}
		return a.until(ctx, name, func(*corev1.Secret) bool { return true })
	}
	return a.latency(ctx, "new namespace to its clone", "budget p99 50 ms", add)
}

// heals measures from an edit or deletion of a clone to its restoration.
func (a *arena) heals(ctx context.Context) error {
	i := 0
	err := a.latency(ctx, "clone deleted to restored", "budget p99 50 ms", func(ctx context.Context) error {
		i++
		namespace := target(i % a.options.clones)
		if err := a.client.CoreV1().Secrets(namespace).Delete(ctx, shared, metav1.DeleteOptions{}); err != nil {
			return err
		}
		return a.until(ctx, namespace, func(*corev1.Secret) bool { return true })
	})
	if err != nil {
		return err
	}
	return a.latency(ctx, "clone edited to restored", "budget p99 50 ms", func(ctx context.Context) error {
		i++
		namespace := target(i % a.options.clones)
		patch := []byte(`{"stringData":{"version":"tampered"}}`)
		if _, err := a.client.CoreV1().Secrets(namespace).Patch(ctx, shared, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return err
		}
		return a.until(ctx, namespace, func(s *corev1.Secret) bool { return string(s.Data["version"]) != "tampered" })
	})
}

// until polls without a pause: each read takes about a millisecond.
func (a *arena) until(ctx context.Context, namespace string, good func(*corev1.Secret) bool) error {
	ctx, cancel := context.WithTimeout(ctx, harness.Timeout)
	defer cancel()
	for {
		secret, err := a.client.CoreV1().Secrets(namespace).Get(ctx, shared, metav1.GetOptions{})
		if err == nil && good(secret) {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("clone in %s: %w", namespace, ctx.Err())
		}
	}
}

func (a *arena) latency(ctx context.Context, what, budget string, act func(context.Context) error) error {
	took := make([]time.Duration, 0, samples)
	for range samples {
		began := time.Now()
		if err := act(ctx); err != nil {
			return err
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	row(what, fmt.Sprintf("p50 %.1f ms, p99 %.1f ms", ms(took[samples/2]), ms(took[samples*99/100])), budget)
	return nil
}

// restarts compares the stamping of consumers with as many bare patches.
func (a *arena) restarts(ctx context.Context) error {
	err := parallel(ctx, a.options.clones, func(ctx context.Context, i int) error {
		for _, name := range []string{shared, bare} {
			spec := harness.ByNothing()
			if name == shared {
				spec = harness.ByEnv(shared, "version")
			}
			_, err := a.client.AppsV1().Deployments(target(i)).Create(ctx, harness.Deployment(target(i), name, 0, spec), metav1.CreateOptions{})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := a.headwater.Idle(ctx); err != nil {
		return err
	}
	return a.compare(ctx, "source edit to last consumer stamped, against bare updates and patches", 1.25,
		func(ctx context.Context) (time.Duration, error) {
			return a.untilStamped(ctx, shared, a.editSource(a.version()))
		},
		func(ctx context.Context) (time.Duration, error) {
			version := a.version()
			return a.untilStamped(ctx, bare, func(ctx context.Context) error { return a.bareReload(ctx, version) })
		})
}

// bareReload does by hand what Headwater does: an update of every Secret and a
// patch of every consumer.
func (a *arena) bareReload(ctx context.Context, version string) error {
	return parallel(ctx, a.options.clones, func(ctx context.Context, i int) error {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: target(i), Name: bare}, Data: payload(version)}
		if _, err := a.client.CoreV1().Secrets(target(i)).Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
			return err
		}
		patch := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`, mark.RestartedFor, version)
		_, err := a.client.AppsV1().Deployments(target(i)).Patch(ctx, bare, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

// untilStamped times act until every Deployment called name has another stamp.
func (a *arena) untilStamped(ctx context.Context, name string, act func(context.Context) error) (time.Duration, error) {
	selector := metav1.ListOptions{FieldSelector: "metadata.name=" + name}
	list, err := a.client.AppsV1().Deployments("").List(ctx, selector)
	if err != nil {
		return 0, err
	}
	before := map[string]string{}
	for _, deployment := range list.Items {
		before[deployment.Namespace] = deployment.Spec.Template.Annotations[mark.RestartedFor]
	}
	selector.ResourceVersion = list.ResourceVersion
	events, err := a.client.AppsV1().Deployments("").Watch(ctx, selector)
	if err != nil {
		return 0, err
	}
	defer events.Stop()
	began := time.Now()
	if err := act(ctx); err != nil {
		return 0, err
	}
	return waitForStamps(ctx, events, before, began)
}

// admission measures what the webhook adds to a protected write.
func (a *arena) admission(ctx context.Context) error {
	exempt, err := client(a.cluster.ConfigFor("exempt", "system:masters"))
	if err != nil {
		return err
	}
	asked, err := client(a.cluster.ConfigFor("asked"))
	if err != nil {
		return err
	}
	if err := harness.Grant(ctx, a.client, "bench-secrets", "asked"); err != nil {
		return err
	}
	dry := func(client kubernetes.Interface) func(context.Context) error {
		return func(ctx context.Context) error {
			_, _ = client.CoreV1().Secrets(sourceNamespace).Patch(ctx, shared, types.MergePatchType,
				[]byte(`{"stringData":{"version":"x"}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
			return nil
		}
	}
	if err := a.latency(ctx, "protected write that passes by the override verb, as a dry run", "the webhook is not asked", dry(exempt)); err != nil {
		return err
	}
	return a.latency(ctx, "protected write that Headwater judges, as a dry run", "budget 3 ms more, p99", dry(asked))
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func row(what, result, note string) { fmt.Printf("%-72s %-28s %s\n", what, result, note) }
