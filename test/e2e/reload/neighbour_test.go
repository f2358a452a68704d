package reload

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/test/lab"
)

// slowOnes are more namespaces than Headwater has workers.
const slowOnes, quickOnes = 100, 10

// neighbours makes the namespaces of a rule, in some of which a webhook will not answer.
func (e *env) neighbours(prefix string) (slow, quick []string) {
	e.Helper()
	for i := range slowOnes {
		slow = append(slow, e.Namespace(fmt.Sprintf("%s-s%03d", prefix, i), prefix+"=slow"))
	}
	for i := range quickOnes {
		quick = append(quick, e.Namespace(fmt.Sprintf("%s-q%03d", prefix, i), prefix+"=quick"))
	}
	return slow, quick
}

// have fails unless the clones in namespaces have value.
func (e *env) have(namespaces []string, value string) func(context.Context) error {
	return func(ctx context.Context) error {
		all, err := e.Admin.CoreV1().Secrets("").List(ctx, metav1.ListOptions{LabelSelector: "headwater.dev/clone"})
		if err != nil {
			return err
		}
		has := map[string]string{}
		for i := range all.Items {
			has[all.Items[i].Namespace] = string(all.Items[i].Data["used"])
		}
		for _, namespace := range namespaces {
			if has[namespace] != value {
				return fmt.Errorf("%s has %q", namespace, has[namespace])
			}
		}
		return nil
	}
}

func TestNamespacesWhereAWebhookDoesNotAnswerKeepNoOtherWaiting(t *testing.T) {
	for _, failure := range []admissionregistrationv1.FailurePolicyType{admissionregistrationv1.Fail, admissionregistrationv1.Ignore} {
		t.Run(string(failure), func(t *testing.T) {
			e := newEnv(t)
			prefix := "neighbour"
			e.Namespace(prefix + "-src")
			slow, quick := e.neighbours(prefix)
			e.Secret(prefix+"-src", "shared", map[string]string{"used": "1", "unused": "1"})
			h := e.StartAlone(lab.Rule(prefix, fmt.Sprintf("sync: {namespaces: {selector: {matchExpressions: [{key: %s, operator: Exists}]}}}", prefix)))
			e.Eventually(e.have(append(slow, quick...), "1"))
			e.Settled(h)
			delays := e.Delays()
			remove := e.Unanswered(prefix, "", "secrets", failure)
			e.IsUnanswered(func(ctx context.Context) error {
				_, err := e.Admin.CoreV1().Secrets(slow[0]).Patch(ctx, "shared", types.MergePatchType, []byte(`{"metadata":{"annotations":{"probe":"x"}}}`),
					metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
				return err
			})
			e.Change(prefix, "used", "2")
			e.WellBefore("a change", delays, e.have(quick, "2"))
			require.NoError(t, e.Admin.CoreV1().Secrets(quick[0]).Delete(t.Context(), "shared", metav1.DeleteOptions{}))
			e.WellBefore("a repair", delays, e.have(quick, "2"))
			e.Change(prefix, "used", "3") // by now it is known where it takes long
			e.WellBefore("the next change", delays, e.have(quick, "3"))
			remove()
			e.Eventually(e.have(slow, "3"))
		})
	}
}

func TestWorkloadsWhereAWebhookDoesNotAnswerKeepNoOtherWaiting(t *testing.T) {
	e := newEnv(t)
	prefix := "busy"
	e.Namespace(prefix + "-src")
	slow, quick := e.neighbours(prefix)
	e.Secret(prefix+"-src", "shared", map[string]string{"used": "1", "unused": "1"})
	h := e.StartAlone(lab.Rule(prefix, fmt.Sprintf("sync: {namespaces: {selector: {matchExpressions: [{key: %s, operator: Exists}]}}}", prefix), "reload: {debounce: 0s}"))
	e.Eventually(e.have(append(slow, quick...), "1"))
	for _, namespace := range append(slow, quick...) {
		d := lab.Deployment(namespace, "web", 0, lab.ByEnv("shared", "used"))
		e.Create(namespace, d)
	}
	stamped := func(namespaces []string) func(context.Context) error {
		return func(ctx context.Context) error {
			for _, namespace := range namespaces {
				read, err := e.Admin.AppsV1().Deployments(namespace).Get(ctx, "web", metav1.GetOptions{})
				if err != nil || !isStamped(read) {
					return fmt.Errorf("web of %s was not restarted (%w)", namespace, err)
				}
			}
			return nil
		}
	}
	e.Settled(h)
	delays := e.Delays()
	remove := e.Unanswered(prefix, "apps", "deployments", admissionregistrationv1.Fail)
	e.IsUnanswered(func(ctx context.Context) error {
		_, err := e.Admin.AppsV1().Deployments(slow[0]).Patch(ctx, "web", types.MergePatchType, []byte(`{"metadata":{"annotations":{"probe":"x"}}}`),
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
	e.Change(prefix, "used", "2")
	e.WellBefore("a restart", delays, stamped(quick))
	remove()
	e.Eventually(stamped(slow))
}

func isStamped(d *appsv1.Deployment) bool {
	return d.Spec.Template.Annotations["headwater.dev/restarted-for"] != ""
}
