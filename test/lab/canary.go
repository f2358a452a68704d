package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/headwater-k8s/headwater/test/canary"
)

// cage holds the canaries of all tests of the package. A test whose Headwater,
// command or cluster lets one out where it may not be fails.
var cage = canary.NewCage()

// Config is how to act as user; see Client.
func (e *Env) Config(user string, groups ...string) *rest.Config {
	e.Helper()
	config := e.Cluster.ConfigFor(user, groups...)
	config.ContentType, config.AcceptContentTypes = "application/json", "application/json"
	if !e.plain {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return cage.Transport(e.Name(), Namespace, next)
		})
	}
	return config
}

// Plain has the values of Secrets be no more than what the test writes, for a test
// of what is made of them elsewhere.
func (e *Env) Plain() {
	e.Helper()
	e.plain = true
	e.Admin = e.Client("admin", "system:masters")
}

// Told says that somebody outside of the cluster was told text, so that it is
// searched for values of Secrets.
func Told(place, text string) { cage.Search(place, []byte(text)) }

// guard fails the test, when it ends, for what the cage noted.
func (e *Env) guard() {
	e.Helper()
	mark := e.Cluster.Mark()
	e.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(e.Context()), Timeout)
		defer cancel()
		requests, err := e.Cluster.Since(ctx, mark, nil)
		if err != nil {
			e.Log("the audit log was not searched for values of Secrets:", err)
		}
		for _, request := range requests {
			cage.Search("the audit log", fmt.Append(nil, request.URI, request.UserAgent, request.Annotations))
		}
		if _, err := readWrites(ctx, e.Cluster); err != nil {
			e.Log("what was written was not searched for values of Secrets:", err)
		}
		for _, find := range cage.Finds() {
			e.Error(find)
		}
	})
}

// withoutValues is what a stored Secret says besides its values.
func withoutValues(secret *corev1.Secret) []byte {
	rest, err := json.Marshal(secret.ObjectMeta)
	if err != nil {
		return nil
	}
	return rest
}

// stream is the page's, which does not end.
const stream = "/page/stream"

// stop stops h, and searches what it says and has logged.
func stop(ctx context.Context, h *Headwater) (log string) {
	name := filepath.Base(h.LogFile)
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for _, path := range []string{"/metrics", "/readyz", "/page/list", stream} {
		searchAnswer(ctx, h.MetricsURL+path, path+" beside "+name)
	}
	h.Stop()
	log, _ = h.Log()
	Told(name, log)
	return log
}

// hasState reports whether the stream has sent the whole state that a new page
// gets.
func hasState(answer []byte) bool {
	sent := func(text string) bool { return bytes.Contains(answer, []byte(text)) }
	state := "event: grid\n"
	if sent(`"here":false`) {
		state = "event: conditions\n" // only the leader has a grid
	}
	return sent(state) && sent("event: reloads\n") && bytes.HasSuffix(answer, []byte("\n\n"))
}

// searchAnswer reads what is at url: of the stream the state, of all else
// everything, of both no more than comes in time. There may be nothing: the
// process may have ended, or have no page.
func searchAnswer(ctx context.Context, url, place string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return
	}
	defer func() { _ = response.Body.Close() }()
	var answer []byte
	buffer := make([]byte, 64<<10)
	for err == nil && (!strings.HasSuffix(url, stream) || !hasState(answer)) {
		var n int
		n, err = response.Body.Read(buffer)
		answer = append(answer, buffer[:n]...)
	}
	cage.Search(place, answer)
}
