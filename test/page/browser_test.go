package page

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/test/lab"
)

// browsers are the names that Chromium goes by.
var browsers = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// tab is one tab of a Chromium of its own. It keeps all that reached it.
type tab struct {
	*testing.T

	ctx   context.Context
	token string

	mu sync.Mutex
	// asked are the addresses of all requests, heard all that was answered,
	// problems what the page or the browser complained about.
	asked, heard, problems []string
	reading                sync.WaitGroup
}

func open(t *testing.T, address string) *tab {
	t.Helper()
	return openAs(t, address, "")
}

// openAs types token as the password when it is asked for one, and takes any
// certificate.
func openAs(t *testing.T, address, token string) *tab {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium(t)), chromedp.UserDataDir(profile(t)), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.IgnoreCertErrors, chromedp.WSURLReadTimeout(lab.Timeout))
	ctx, end := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(end)
	ctx, closeTab := chromedp.NewContext(ctx)
	t.Cleanup(closeTab)
	b := &tab{T: t, ctx: ctx, token: token}
	chromedp.ListenTarget(ctx, b.hear)
	require.NoError(t, chromedp.Run(ctx)) // it ends with the context of the first run
	if token != "" {
		b.do(fetch.Enable().WithHandleAuthRequests(true))
	}
	b.do(network.Enable(), log.Enable(), b.looks(1440, 1000, "light"), chromedp.Navigate(address))
	return b
}

// profile is a folder for a browser, whose processes may write to it for a moment
// after it was closed.
func profile(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	t.Cleanup(func() {
		require.Eventually(t, func() bool { return os.RemoveAll(folder) == nil }, time.Minute, 20*time.Millisecond)
	})
	return folder
}

func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range browsers {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatalf("no Chromium here, which the page is tried in: none of %s is in PATH; apt-get install chromium", strings.Join(browsers, ", "))
	return ""
}

func (b *tab) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch event := event.(type) {
	case *network.EventRequestWillBeSent:
		b.asked = append(b.asked, event.Request.URL)
	case *network.EventEventSourceMessageReceived:
		b.heard = append(b.heard, event.EventName+" "+event.Data)
	case *network.EventLoadingFinished:
		b.reading.Go(func() { b.read(event.RequestID) })
	case *fetch.EventRequestPaused:
		b.reading.Go(func() { _ = chromedp.Run(b.ctx, fetch.ContinueRequest(event.RequestID)) })
	case *fetch.EventAuthRequired:
		answer := &fetch.AuthChallengeResponse{Response: fetch.AuthChallengeResponseResponseProvideCredentials, Username: "me", Password: b.token}
		b.reading.Go(func() { _ = chromedp.Run(b.ctx, fetch.ContinueWithAuth(event.RequestID, answer)) })
	case *runtime.EventExceptionThrown:
		b.problems = append(b.problems, event.ExceptionDetails.Error())
	case *log.EventEntryAdded:
		if event.Entry.Level == log.LevelError {
			b.problems = append(b.problems, event.Entry.Text+" "+event.Entry.URL)
		}
	}
}

// read keeps the body of an answer. Listeners must not wait, so that it runs
// beside them.
func (b *tab) read(id network.RequestID) {
	var body []byte
	err := chromedp.Run(b.ctx, chromedp.ActionFunc(func(ctx context.Context) (err error) {
		body, err = network.GetResponseBody(id).Do(ctx)
		return err
	}))
	if err == nil { // else it was that of a stream, which is heard message by message
		b.mu.Lock()
		defer b.mu.Unlock()
		b.heard = append(b.heard, string(body))
	}
}

// looks sets the size of the window and the colours that a person prefers.
func (b *tab) looks(wide, high int64, scheme string) chromedp.Action {
	return chromedp.Tasks{
		emulation.SetDeviceMetricsOverride(wide, high, 1, false),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
		}),
	}
}

func (b *tab) do(actions ...chromedp.Action) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, lab.Timeout)
	defer cancel()
	require.NoError(b, chromedp.Run(ctx, actions...))
}

// text is what an element says; empty when it is not there.
func (b *tab) text(selector string) string {
	b.Helper()
	var text string
	b.do(chromedp.Evaluate(fmt.Sprintf("document.querySelector(%q)?.textContent ?? ''", selector), &text))
	return text
}

// says waits until an element says all of words.
func (b *tab) says(selector string, words ...string) {
	b.Helper()
	require.NoError(b, lab.Eventually(b.Context(), func(context.Context) error {
		text := b.text(selector)
		for _, word := range words {
			if !strings.Contains(text, word) {
				return fmt.Errorf("%s says %q, not %q", selector, text, word)
			}
		}
		return nil
	}))
}

// ask evaluates an expression that gives a text.
func (b *tab) ask(expression string) string {
	b.Helper()
	var answer string
	b.do(chromedp.Evaluate("String("+expression+")", &answer))
	return answer
}

// becomes waits until an expression gives want.
func (b *tab) becomes(expression, want string) {
	b.Helper()
	require.NoError(b, lab.Eventually(b.Context(), func(context.Context) error {
		if answer := b.ask(expression); answer != want {
			return fmt.Errorf("%s is %q, not %q", expression, answer, want)
		}
		return nil
	}))
}

// keptToItself checks that nothing was asked of anybody but the page's own
// origin, that nothing went wrong, and that none of secrets was in anything that
// came or is shown.
func (b *tab) keptToItself(address string, secrets ...string) {
	b.Helper()
	var document string
	b.do(chromedp.OuterHTML("html", &document))
	b.reading.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(b, b.problems)
	own, err := url.Parse(address)
	require.NoError(b, err)
	require.NotEmpty(b, b.asked)
	for _, asked := range b.asked {
		to, err := url.Parse(asked)
		require.NoError(b, err)
		require.Equal(b, own.Host, to.Host, "%s is elsewhere", asked)
	}
	all := strings.Join(append(b.heard, document), "\n")
	require.Contains(b, all, "grid ", "what came was read")
	require.Contains(b, all, "takeDelta", "what came was read")
	for _, secret := range secrets {
		require.NotContains(b, all, secret)
	}
}
