package page

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/test/lab"
)

func TestMain(m *testing.M) { lab.Main(m) }

// env is lab.Env with the page.
type env struct{ *lab.Env }

func newEnv(t *testing.T) *env {
	t.Helper()
	e := lab.Parallel(t)
	require.NoError(t, lab.Apply(t.Context(), e.Cluster.Config(), filepath.Join(lab.Root(t), "deploy", "crd.yaml")))
	return &env{e}
}

// put creates or overwrites a Secret with this value.
func (e *env) put(namespace, name, value string) {
	e.Helper()
	e.Eventually(func(ctx context.Context) error {
		secrets := e.Admin.CoreV1().Secrets(namespace)
		found, err := secrets.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			_, err = secrets.Create(ctx, lab.Secret(namespace, name, map[string]string{"password": value}), metav1.CreateOptions{})
			return err
		}
		found.Data = map[string][]byte{"password": []byte(value)}
		_, err = secrets.Update(ctx, found, metav1.UpdateOptions{})
		return err
	})
}

// start runs Headwater with its page and waits until it is ready. The
// configuration is all of the file but its head.
func (e *env) start(config string, args ...string) *lab.Headwater {
	e.Helper()
	h := e.launch(config, args...)
	require.NoError(e, h.Ready(e.Context()))
	return h
}

// launch is start without waiting.
func (e *env) launch(config string, args ...string) *lab.Headwater {
	e.Helper()
	o := e.Options(e.sections(config))
	o.Webhook = "" // replicas run side by side
	o.Args = append([]string{"--page", "--page-localhost"}, args...)
	return e.Launch(o)
}

// sections takes in what comes before the rules, and returns these.
func (e *env) sections(config string) (rules string) {
	e.Sections, rules, _ = strings.Cut(config, "rules:\n")
	return rules
}

// rewrite puts another configuration in the place of the one that was started
// with.
func (e *env) rewrite(config string) {
	e.Helper()
	e.ConfigFile(e.sections(config))
}
