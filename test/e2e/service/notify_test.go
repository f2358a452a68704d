package service

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/test/lab"
)

// receiver is a webhook that keeps what it gets.
type receiver struct {
	*httptest.Server

	mu   sync.Mutex
	told []string
}

// receiver answers at once, or, if it hangs, when the test ends.
func (e *env) receiver(hangs bool) *receiver {
	e.Helper()
	r, done := &receiver{}, make(chan struct{})
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		lab.Told("a report", fmt.Sprint(request.URL, request.Header, string(body)))
		r.mu.Lock()
		r.told = append(r.told, string(body))
		r.mu.Unlock()
		if hangs {
			<-done
		}
	}))
	e.Cleanup(func() {
		close(done)
		r.Close()
	})
	return r
}

func (r *receiver) got() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.told...)
}

// Invariant 11, and 3 for receivers of reports.
func TestAConflictInManyNamespacesIsOneReport(t *testing.T) {
	const taken, value, token = 20, "v4lue-of-the-secret", "t0ken-of-the-receiver"
	e := newEnv(t)
	answers, hangs, later := e.receiver(false), e.receiver(true), e.receiver(false)
	e.Secret(e.Namespace("told-src"), "shared", map[string]string{"k": value})
	for i := range taken {
		name := e.Namespace(fmt.Sprintf("told-%d", i), "told=yes")
		e.Secret(name, "shared", map[string]string{"k": "theirs"})
	}
	e.Namespace("told-free", "told=yes")
	rule := "- name: told\n  source: {kind: Secret, namespace: told-src, name: shared}\n" +
		"  sync: {namespaces: {selector: {matchLabels: {told: \"yes\"}}}}\n"
	address := strings.TrimPrefix(answers.URL, "http://")
	// The tests before this one, on the same control plane, may have been too many leaders in a short time.
	e.Sections = fmt.Sprintf("notify:\n- {url: %s/%s, on: [Conflict]}\n- {url: 'generic://%s/%s?disabletls=yes&template=json', on: [Conflict]}\n", hangs.URL, token, address, token)
	h := e.Start(rule)
	e.HasClone("told-free", "shared", map[string]string{"k": value})

	e.Eventually(func(context.Context) error {
		return lab.ErrorIf(len(answers.got()) == 0 || len(hangs.got()) == 0, "told: %q and %q", answers.got(), hangs.got())
	})
	report := answers.got()[0]
	require.Contains(t, report, fmt.Sprintf(`Headwater: Conflict, rule told, %d times\nSecret told-`, taken))
	require.Contains(t, report, fmt.Sprintf("and %d more", taken-3))
	e.HasMetric(h, 1, "headwater_notifications_total", map[string]string{"result": "sent"})

	// One receiver hangs by now, and nothing else does.
	e.Edit("told-src", "shared", func(source *corev1.Secret) { source.Data["k"] = []byte(value + "-2") })
	e.HasClone("told-free", "shared", map[string]string{"k": value + "-2"})

	e.Sections = fmt.Sprintf("notify:\n- {url: %s/%s, on: [Propagated]}\n", later.URL, token)
	e.ConfigFile(rule)
	e.HasMetric(h, 1, "headwater_config_reloads_total", map[string]string{"result": "applied"})
	e.Edit("told-src", "shared", func(source *corev1.Secret) { source.Data["k"] = []byte(value + "-3") })
	e.Eventually(func(context.Context) error {
		return lab.ErrorIf(len(later.got()) == 0, "not told after the file was changed")
	})
	require.Contains(t, later.got()[0], "Headwater: Propagated, rule told")
	e.Holds(time.Second, func(context.Context) error {
		if told := answers.got(); len(told) > 1 {
			return fmt.Errorf("told more than once: %q", told)
		}
		return nil
	})
	log, err := h.Log()
	require.NoError(t, err)
	for _, text := range append(append(answers.got(), later.got()...), log) {
		require.NotContains(t, text, value)
		require.NotContains(t, text, token)
	}
}
