package reload

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/lab"
)

// edit edits a Deployment as its owner does with kubectl replace or edit.
func (e *env) edit(namespace, name string, change func(*appsv1.Deployment)) {
	e.Helper()
	e.Eventually(func(ctx context.Context) error {
		deployment := e.read(namespace, name)
		change(deployment)
		_, err := e.Admin.AppsV1().Deployments(namespace).Update(ctx, deployment, metav1.UpdateOptions{})
		if err != nil && !apierrors.IsConflict(err) {
			require.NoError(e, err)
		}
		return err
	})
}

// stripAll takes off what a manifest does not have, as kubectl replace does.
func stripAll(d *appsv1.Deployment) {
	d.Annotations, d.Spec.Template.Annotations = nil, nil
}

func stripTemplate(d *appsv1.Deployment) { d.Spec.Template.Annotations = nil }

// adoptedRevision waits until the ReplicaSet of the Deployment bears the baseline, as
// its controller copies it, and returns it.
func (e *env) adoptedRevision(namespace, name string) *appsv1.ReplicaSet {
	e.Helper()
	var first *appsv1.ReplicaSet
	e.Eventually(func(ctx context.Context) error {
		sets, err := e.Admin.AppsV1().ReplicaSets(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
		if err != nil || len(sets.Items) != 1 || sets.Items[0].Annotations[mark.Baseline] == "" {
			return errors.Join(err, errors.New("no baseline on the one ReplicaSet"))
		}
		first = &sets.Items[0]
		return nil
	})
	return first
}

// rollBack does what kubectl rollout undo does.
func (e *env) rollBack(namespace, name string, to *appsv1.ReplicaSet) {
	e.Helper()
	e.edit(namespace, name, func(d *appsv1.Deployment) {
		kept := maps.Clone(to.Annotations)
		maps.DeleteFunc(kept, func(key, _ string) bool { return strings.HasPrefix(key, "deployment.kubernetes.io/") })
		d.Annotations, d.Spec.Template = kept, *to.Spec.Template.DeepCopy()
		delete(d.Spec.Template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	})
}

// restartedSince waits until the Deployment bears a stamp, and returns both.
func (e *env) restartedSince(namespace, name string, before time.Time) (stamp string, at time.Time) {
	e.Helper()
	e.Eventually(func(context.Context) error {
		d := e.read(namespace, name)
		at = mark.ParseTime(d.Annotations[mark.RestartedAt])
		on := d.Spec.Template.Annotations
		if stamp = on[mark.RestartedFor] + on[mark.RestartedAfter]; stamp == "" || !at.After(before) {
			return errors.New("not restarted")
		}
		return nil
	})
	return stamp, at
}

func TestARestartThatIsTakenOffInTheMiddleIsRepeatedAtItsPace(t *testing.T) {
	const interval = 6 * time.Second
	e, namespace := onNode(t, "stripped")
	for _, name := range []string{"replaced", "template", "finished"} {
		e.serving(namespace, name, 1, lab.ByEnv("shared", "used"))
	}
	h := e.Start(pacedRule("stripped", "debounce: 0s, minInterval: "+interval.String()))
	e.Cloned("stripped", "used", "1")
	e.Settled(h)
	e.Change("stripped", "used", "2")
	e.restartedSince(namespace, "finished", time.Time{})
	e.rolledOut(namespace, "finished")
	e.edit(namespace, "finished", stripAll)
	for name, strip := range map[string]func(*appsv1.Deployment){"replaced": stripAll, "template": stripTemplate} {
		e.newPodBound(namespace, name) // and never runs
		first, began := e.restartedSince(namespace, name, time.Time{})
		e.edit(namespace, name, strip)
		require.Contains(t, e.HasEvent(namespace, name, "StampReverted"), "Headwater restarts it again")
		second, again := e.restartedSince(namespace, name, began)
		require.GreaterOrEqual(t, again.Sub(began), interval, name)
		require.NotEqual(t, first, second, "two stamps are alike")
		e.rolledOut(namespace, name)
	}
	e.rolledOut(namespace, "finished")
	e.Settled(h)
	finished := e.read(namespace, "finished")
	require.Empty(t, finished.Spec.Template.Annotations[mark.RestartedFor], "its pods started after the change")
	require.NotEmpty(t, finished.Annotations[mark.Baseline], "what it runs is recorded again")
	require.NotEmpty(t, finished.Annotations[mark.RestartedAt], "and when it was restarted")
	require.Equal(t, finished.Annotations[mark.RestartedAt], finished.Annotations[mark.RestartChecked], "the next leader need not check")
}

func TestARestartThatIsRolledBackKeepsIntervalAndBreaker(t *testing.T) {
	const interval = 6 * time.Second
	e, namespace := onNode(t, "undone")
	e.serving(namespace, "web", 1, lab.ByEnv("shared", "used"))
	h := e.Start(pacedRule("undone", "debounce: 0s, maxRestartsPerHour: 2, minInterval: "+interval.String()))
	e.Cloned("undone", "used", "1")
	e.Settled(h)
	original := e.adoptedRevision(namespace, "web")
	e.Change("undone", "used", "2")
	e.newPodBound(namespace, "web") // and never runs
	first, began := e.restartedSince(namespace, "web", time.Time{})

	e.rollBack(namespace, "web", original)
	require.Contains(t, e.HasEvent(namespace, "web", "RolledBack"), "Headwater restarts it again")
	second, again := e.restartedSince(namespace, "web", began)
	require.GreaterOrEqual(t, again.Sub(began), interval)
	require.NotEqual(t, first, second, "two stamps are alike")

	e.rollBack(namespace, "web", original)
	e.Waits(h, 1, "breaker")
	require.Empty(t, e.read(namespace, "web").Spec.Template.Annotations[mark.RestartedFor])
}
