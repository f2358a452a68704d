package page

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/test/lab"
)

// pictures are those of the README, by the colours that are asked for.
var pictures = map[string]string{"light": "page.png", "dark": "page-dark.png"}

// maxPicture is what a picture may take in the repository, in bytes.
const maxPicture = 150 << 10

const picturedRules = `
protect: {engine: Webhook}
rules:
- name: app-settings
  source: {kind: Secret, namespace: platform, name: app-settings}
  sync:
    namespaces: {include: ["team-*"], exclude: ["team-1*"]}
    delivery:
      stages:
      - {name: canary, namespaces: {include: ["team-2*"]}, approval: true, soak: 0s}
      - {name: half, percent: 50, soak: 5m}
  reload: {}
- name: registry-login
  source: {kind: Secret, namespace: platform, name: registry-login}
  sync: {}
  protect: {}
  reload: {debounce: 100ms}
- name: ca-bundle
  source: {kind: Secret, namespace: platform, name: ca-bundle}
  sync: {}
`

// With UPDATE=1 it retakes the pictures, of a real cluster.
func TestThePageIsPictured(t *testing.T) {
	if os.Getenv("UPDATE") != "" {
		takePictures(t)
	}
	root := lab.Root(t)
	for _, name := range pictures {
		file, err := os.Stat(filepath.Join(root, "deploy", name))
		require.NoError(t, err, "take it: make screenshot")
		require.Less(t, file.Size(), int64(maxPicture))
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	for _, name := range pictures {
		require.Contains(t, string(readme), "deploy/"+name)
	}
}

func takePictures(t *testing.T) {
	t.Helper()
	e := newEnv(t)
	e.Namespaces("platform")
	for _, name := range []string{"registry-login", "ca-bundle", "app-settings"} {
		e.put("platform", name, canary)
	}
	for i := range 160 {
		e.Namespaces(fmt.Sprintf("team-%d", i+1))
	}
	e.put("team-38", "registry-login", canary)
	e.NoSecrets("team-97")
	h := e.start(picturedRules)
	b := open(t, h.MetricsURL+"/page")
	b.says("#problems", "conflict", "failed")
	e.showRefusalAndReload()
	b.says("[data-rule=app-settings] .delivery", "Revision 1 is delivered")
	e.put("platform", "app-settings", canary+"-2")
	b.says("[data-rule=app-settings] .delivery", "Revision 2 is being delivered: stage canary", "waits for `headwater promote app-settings`")
	b.says("#timeline", "Denied", "jane@example.com", "Restarted", "written in")
	b.says("#protection", "1 of 1 verified")
	b.says("#problems-title", "Needs attention 4 clones") // it comes after the headline
	for scheme, name := range pictures {
		var picture []byte
		b.do(b.looks(1440, 900, scheme), chromedp.Evaluate(`scrollTo(0, 0)`, nil), chromedp.CaptureScreenshot(&picture))
		require.NoError(t, os.WriteFile(filepath.Join(lab.Root(t), "deploy", name), picture, 0o644))
	}
}

// showRefusalAndReload has somebody refused to edit a source, and a workload
// restarted for an edit of it.
func (e *env) showRefusalAndReload() {
	e.Helper()
	web := lab.Deployment("team-12", "web", 0, lab.ByEnv("registry-login", "password"))
	e.Create("team-12", web)
	require.NoError(e, lab.Grant(e.Context(), e.Admin, "picture-editor", "jane@example.com"))
	jane := e.Client("jane@example.com")
	e.Eventually(func(ctx context.Context) error {
		_, err := jane.CoreV1().Secrets("platform").Patch(ctx, "registry-login", types.MergePatchType,
			[]byte(`{"stringData":{"password":"`+canary+`-of-jane"}}`), metav1.PatchOptions{})
		if !apierrors.IsForbidden(err) {
			return fmt.Errorf("not refused: %w", err)
		}
		web, err := e.Admin.AppsV1().Deployments("team-12").Get(ctx, "web", metav1.GetOptions{})
		if err == nil && web.Annotations["headwater.dev/baseline"] == "" {
			err = fmt.Errorf("no baseline yet")
		}
		return err
	})
	e.put("platform", "registry-login", canary+"-new")
}
