package app

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"
	"go.uber.org/zap"

	"github.com/headwater-k8s/headwater/internal/config"
)

// From the Event to the receiver, through everything in between.
func TestAFileThatBecomesInvalidIsReported(t *testing.T) {
	told := make(chan string, 1)
	to := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		told <- string(body)
	}))
	t.Cleanup(to.Close)
	file := filepath.Join(t.TempDir(), "headwater.yaml")
	content := "apiVersion: headwater.dev/v1alpha1\nkind: Config\nrules: []\nnotify: [{url: '" + to.URL + "/t0ken'}]\n"
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	loaded, err := config.Load(file)
	require.NoError(t, err)
	settings := testSettings()
	settings.ConfigFile, settings.LeaderElect = file, false
	var b *boot
	app := fxtest.New(t, Options(settings, &Started{Config: loaded}, fakeClients(t), zap.NewNop()), fx.Populate(&b))
	app.RequireStart()
	t.Cleanup(app.RequireStop)
	require.Eventually(t, func() bool { return b.check().Ready() == nil }, time.Minute, 10*time.Millisecond)

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for broken := content; ; broken += "#\n" { // until the leader sees it
		require.NoError(t, os.WriteFile(file, []byte(broken+"rulez: []\n"), 0o600))
		select {
		case report := <-told:
			require.Contains(t, report, "Headwater: ConfigInvalid")
			require.NotContains(t, report, "t0ken")
			return
		case <-ctx.Done():
			require.Fail(t, "nothing was reported")
		case <-time.After(time.Second):
		}
	}
}
