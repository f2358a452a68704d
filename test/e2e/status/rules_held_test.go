package status

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/test/lab"
)

const heldRules = `
- {name: held-a, source: {kind: Secret, namespace: held-src, name: shared}, sync: {namespaces: {include: [held-a]}}, protect: {}}
- {name: held-b, source: {kind: Secret, namespace: held-src, name: other}, sync: {namespaces: {include: [held-a]}}}
`

// emptied is the file that a person did not mean.
func (e *env) emptied() string {
	return "apiVersion: headwater.dev/v1alpha1\nkind: Config\n" + e.Sections + "rules: []\n"
}

// rulesHeld waits until Headwater says that it holds the file, wherever it says so.
func (e *env) rulesHeld(h *lab.Headwater) {
	e.Helper()
	e.told("RulesHeld", "held-a, held-b")
	e.HasMetric(h, 1, "headwater_config_held", nil)
	e.HasMetric(h, 0, "headwater_config_valid", nil)
	e.becomes("held-a", ready("RulesHeld"))
}

// told waits for an Event about the configuration that says this.
func (e *env) told(reason, says string) {
	e.Helper()
	e.Eventually(func(ctx context.Context) error {
		found, err := e.Admin.EventsV1().Events(lab.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=" + reason})
		if err != nil {
			return err
		}
		for _, event := range found.Items {
			if strings.Contains(event.Note, says) {
				return nil
			}
		}
		return fmt.Errorf("no Event %s says %q", reason, says)
	})
}

// stays checks that all of the rules is in force: an edit is refused, and value is cloned.
func (e *env) stays(value string) {
	e.Helper()
	e.Eventually(func(ctx context.Context) error {
		return lab.Refused(lab.TryEdit(ctx, e.Client("held-editor"), "held-src", "shared", "x"))
	})
	e.SetKey("held-src", "other", "k", value)
	e.HasClone("held-a", "other", map[string]string{"k": value})
}

// What `helm upgrade` without values does to a cluster.
func TestAnEmptyConfigurationTakesNothingAway(t *testing.T) {
	e := newEnv(t)
	e.StageOf("held", map[string]string{"k": "v"})
	e.Secret("held-src", "other", map[string]string{"k": "v"})
	e.ClusterRole("held-edit", lab.SecretsEditor())
	e.Grant("", "held-edit", "held-editor")
	file := filepath.Join(e.Dir, "headwater.yaml")
	h := e.Start(heldRules)
	e.HasClone("held-a", "shared", map[string]string{"k": "v"})
	full, err := os.ReadFile(file)
	require.NoError(t, err)

	require.NoError(t, lab.Replace(file, e.emptied()))
	e.rulesHeld(h)
	e.stays("live")
	h.Stop()

	replica := e.Options(heldRules)
	require.NoError(t, lab.Replace(file, e.emptied()))
	h = e.Launch(replica)
	require.NoError(t, h.Ready(t.Context()))
	e.rulesHeld(h)
	e.stays("from the start")

	require.NoError(t, lab.Replace(file, string(full)))
	e.becomes("held-a", ready("Ready"))
	e.HasMetric(h, 0, "headwater_config_held", nil)

	require.NoError(t, lab.Replace(file, e.emptied()))
	e.rulesHeld(h)
	const approver = "held-approver"
	require.NoError(t, lab.BindIn(t.Context(), e.Admin, lab.Namespace, "headwater-approve", approver))
	_, told, exit := e.Command(approver, "approve", "--configuration", config.RevisionOf([]byte(e.emptied())))
	require.Zero(t, exit, told)
	e.HasMetric(h, 1, "headwater_config_valid", nil)
	e.Eventually(func(ctx context.Context) error {
		return lab.TryEdit(ctx, e.Client("held-editor"), "held-src", "shared", "x")
	})
	e.told("Approved", "held-approver")
	h.Stop()

	h = e.Launch(replica) // the empty one was in force
	require.NoError(t, h.Ready(t.Context()))
	e.HasMetric(h, 1, "headwater_config_valid", nil)
}

// A file that says what it removes needs no approval.
func TestAConfigurationMayNameWhatItRemoves(t *testing.T) {
	e := newEnv(t)
	e.StageOf("named", map[string]string{"k": "v"})
	e.Start(lab.OneRule("named") + "  protect: {}\n")
	e.HasClone("named-a", "shared", map[string]string{"k": "v"})
	file := filepath.Join(e.Dir, "headwater.yaml")
	require.NoError(t, lab.Replace(file, e.emptied()+"removedRules: [named]\n"))
	e.Eventually(func(ctx context.Context) error {
		configurations, err := e.Admin.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
		return errors.Join(err, lab.ErrorIf(len(configurations.Items) > 0, "the webhook is still registered"))
	})
	e.told("ProtectionWeakened", "Secret/named-src/shared: no protect section any more")
}

// Nobody can know what was in force before the first start.
func TestAFirstStartSaysThatItComparedNothing(t *testing.T) {
	e := newEnv(t)
	e.Start(lab.OneRule("first"))
	e.told("RulesNotCompared", "nobody knows")
	e.Eventually(func(ctx context.Context) error {
		stored, err := e.Admin.CoreV1().Secrets(lab.Namespace).Get(ctx, config.LastValidName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		raw, err := os.ReadFile(filepath.Join(e.Dir, "headwater.yaml"))
		if err == nil && string(stored.Data[config.ConfigMapKey]) != string(raw) {
			err = errors.New("another configuration is stored")
		}
		return errors.Join(err, lab.ErrorIf((len(stored.OwnerReferences) != 1 || stored.OwnerReferences[0].Kind != "ClusterRole"), "it does not go with an uninstallation: %v", stored.OwnerReferences))
	})
}
