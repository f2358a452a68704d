package page

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/test/lab"
)

// canary is the value of every Secret: it must never be seen.
const canary = "c4n4ry-of-the-page"

const twoRules = `
protect: {engine: Webhook}
rules:
- name: shared
  source: {kind: Secret, namespace: NAME-src, name: shared}
  sync: {namespaces: {include: ["NAME-team-*"]}}
  protect: {allow: {clusterRoles: [], groups: ["system:masters"]}}
- name: other
  source: {kind: Secret, namespace: NAME-src, name: other}
  sync: {namespaces: {include: ["NAME-team-*"]}}
`

func rulesFor(name string) string { return strings.ReplaceAll(twoRules, "NAME", name) }

// teams creates the sources of rulesFor(name), and that many namespaces for
// their clones.
func (e *env) teams(name string, many int) []string {
	e.Helper()
	e.Namespaces(name + "-src")
	e.put(name+"-src", "shared", canary+"-1")
	e.put(name+"-src", "other", canary+"-1")
	var teams []string
	for i := range many {
		teams = append(teams, fmt.Sprintf("%s-team-%d", name, i+1))
	}
	e.Namespaces(teams...)
	return teams
}

func TestThePageFollowsWhatHappens(t *testing.T) {
	e := newEnv(t)
	teams := e.teams("live", 12)
	h := e.start(rulesFor("live"))
	b := open(t, h.MetricsURL+"/page")
	b.says("#headline", "All in sync", "24 of 24", "2 rules", "12 namespaces with clones")
	e.put("live-src", "shared", canary+"-2")
	b.says("#timeline", "Propagated", "Secret/live-src/shared", "12 clones written in", "rule shared")
	b.says("#headline", "All in sync")

	e.Namespaces("live-team-13")
	b.says("#headline", "26 of 26", "13 namespaces")

	require.NoError(t, e.Admin.CoreV1().Namespaces().Delete(t.Context(), teams[0], metav1.DeleteOptions{}))
	b.says("#headline", "24 of 24", "12 namespaces")

	b.keptToItself(h.MetricsURL, canary)
}

func TestThePageShowsWhatWasRefusedAndReloaded(t *testing.T) {
	e := newEnv(t)
	e.teams("done", 3)
	h := e.start(strings.Replace(rulesFor("done"), "  protect:", "  reload: {debounce: 100ms}\n  protect:", 1))
	b := open(t, h.MetricsURL+"/page")
	b.says("#headline", "All in sync")
	require.NoError(t, lab.Grant(t.Context(), e.Admin, "done-editor", "done-mallory"))
	mallory := e.Client("done-mallory")
	e.Eventually(func(ctx context.Context) error { // once no policy of an earlier test refuses first
		_, err := mallory.CoreV1().Secrets("done-src").Patch(ctx, "shared", types.MergePatchType,
			[]byte(`{"stringData":{"password":"`+canary+`-of-mallory"}}`), metav1.PatchOptions{})
		if !apierrors.IsForbidden(err) || !strings.HasPrefix(err.Error(), `admission webhook "sources.protect.headwater.dev"`) {
			return fmt.Errorf("not refused by the webhook, which reports it: %w", err)
		}
		return nil
	})
	b.says("#timeline", "Denied", "Update of Secret done-src/shared by done-mallory", "rule shared")

	e.adopted("done-team-2", "web", lab.ByEnv("shared", "password"))
	e.put("done-src", "shared", canary+"-new")
	b.says("#timeline", "Restarted", "Deployment/done-team-2/web", "Secret/done-team-2/shared", "rule shared")
	b.keptToItself(h.MetricsURL, canary)
}

// Where policies refuse, the API server does not ask Headwater.
func TestThePageSaysWhereRefusalsOfPoliciesAre(t *testing.T) {
	e := newEnv(t)
	e.teams("policy", 2)
	h := e.start(strings.Replace(rulesFor("policy"), "engine: Webhook", "engine: Both", 1), "--cluster-name=prod-eu-1")
	b := open(t, h.MetricsURL+"/")
	b.says("#headline", "All in sync", "4 of 4")
	b.becomes("location.pathname", "/page")
	b.says("#cluster", "prod-eu-1")
	b.says("#refusals", "apiserver_validating_admission_policy_check_total", "audit log")
	b.keptToItself(h.MetricsURL, canary)
}

// A stopped process keeps its connections open, so that only silence tells.
func TestThePageSaysThatNoUpdateComes(t *testing.T) {
	e := newEnv(t)
	e.teams("stop", 2)
	h := e.start(rulesFor("stop"), lab.Alone)
	b := open(t, h.MetricsURL+"/page")
	b.says("#headline", "All in sync", "4 of 4")
	const connection = "document.querySelector('.connection').dataset.is"
	b.becomes(connection, "live")

	require.NoError(t, h.Pause())
	t.Cleanup(func() { _ = h.Resume() }) // or it could not stop
	b.becomes(connection, "silent")
	require.Regexp(t, `^no update since \d\d:\d\d:\d\d$`, b.text(".connection"))
	b.says("#headline", "As of ")
	require.Equal(t, "stale", b.ask("document.querySelector('#headline').dataset.is"), "nothing is green about it")

	require.NoError(t, h.Resume())
	b.becomes(connection, "live")
	e.Namespaces("stop-team-3")
	b.says("#headline", "All in sync", "6 of 6")
	require.NotContains(t, b.text("#headline"), "As of")
}

func TestThePageShowsWhatFailsAndWhy(t *testing.T) {
	e := newEnv(t)
	e.teams("bad", 5)
	e.put("bad-team-2", "shared", canary+"-of-theirs")
	e.NoSecrets("bad-team-4")
	h := e.start(rulesFor("bad"))
	b := open(t, h.MetricsURL+"/page")
	b.says("#headline", "3 need attention", "7 of 10")
	b.says("#problems", "conflict", "bad-team-2", "this object is not managed by Headwater; delete or rename it", "failed", "bad-team-4", "exceeded quota")

	b.do(chromedp.Click(`#problems li[data-state=conflict] .link`, chromedp.ByQuery))
	b.says("#detail", "bad-team-2", "rule shared", "conflict", "this object is not managed by Headwater", "Secret/bad-src/shared", "first seen by this page at", "kubectl -n bad-team-2 events --for secret/shared")

	require.NoError(t, e.Admin.CoreV1().Secrets("bad-team-2").Delete(t.Context(), "shared", metav1.DeleteOptions{}))
	b.says("#problems #detail", "in sync", "the clone matches its source and its rule")
	b.says("#headline", "2 need attention", "8 of 10")
	b.becomes("document.querySelectorAll('#problems .groups > li').length", "1")
	b.says("#problems .groups", "failed", "2 rules", "bad-team-4")
	b.keptToItself(h.MetricsURL, canary)
}

func TestThePageIsFiltered(t *testing.T) {
	e := newEnv(t)
	e.teams("sift", 11)
	e.put("sift-team-3", "shared", canary+"-of-theirs")
	e.put("sift-team-10", "other", canary+"-of-theirs")
	h := e.start(rulesFor("sift"))
	b := open(t, h.MetricsURL+"/page")
	b.says("#headline", "2 need attention", "20 of 22")
	rows := "[...document.querySelectorAll('#problems .names .link')].map((name) => name.textContent)"
	bands := "[...document.querySelectorAll('.band')].map((band) => band.dataset.rule)"
	names := "document.querySelector('canvas').getAttribute('aria-label').match(/, (\\d+ namespaces?),/)[1]"
	b.becomes(rows, "sift-team-10,sift-team-3")

	b.do(chromedp.SetValue("#filter-rule", "shared", chromedp.ByQuery),
		chromedp.Evaluate(`document.querySelector('#filter-rule').dispatchEvent(new Event('change', {bubbles: true}))`, nil))
	b.becomes(bands, "shared")
	b.becomes(rows, "sift-team-3")
	b.says("#headline", "1 needs attention", "10 of 11")

	b.do(chromedp.SendKeys("#filter-text", "TEAM-1", chromedp.ByQuery))
	b.becomes(names, "3 namespaces")
	b.becomes(rows, "")

	b.do(chromedp.Click(`.chip[data-state=current]`, chromedp.ByQuery))
	b.becomes(rows, "sift-team-1,sift-team-10,sift-team-11")
	b.becomes("location.search", "?rule=shared&text=team-1&states=current")
	b.do(chromedp.Reload())
	b.becomes(rows, "sift-team-1,sift-team-10,sift-team-11")
	b.becomes(bands, "shared")
	b.becomes("document.querySelector('#filter-text').value", "team-1")
	b.becomes(`document.querySelector('.chip[data-state=current]').getAttribute('aria-pressed')`, "true")

	b.do(chromedp.Click(`.filters button`, chromedp.ByQuery))
	b.becomes(bands, "shared,other")
	b.becomes(rows, "sift-team-10,sift-team-3")
	b.becomes("location.search", "")
	b.keptToItself(h.MetricsURL, canary)
}

func TestThePageIsUsedByKeyboardAndScreenReader(t *testing.T) {
	e := newEnv(t)
	e.teams("keys", 4)
	e.put("keys-team-3", "shared", canary+"-of-theirs")
	h := e.start(rulesFor("keys"))
	b := open(t, h.MetricsURL+"/page")
	b.says("#headline", "1 needs attention")
	focused := "document.activeElement.closest('[data-rule]')?.dataset.rule ?? document.activeElement.className"

	b.do(chromedp.KeyEvent(kb.Tab))
	b.becomes(focused, "skip")
	b.eventuallyByTab(focused, "shared")
	b.says("#cursor", "keys-team-1: in sync")
	b.do(chromedp.KeyEvent(kb.ArrowRight))
	b.says("#cursor", "keys-team-2: in sync")
	b.do(chromedp.KeyEvent("n"))
	b.says("#cursor", "keys-team-3: conflict")
	b.do(chromedp.KeyEvent(kb.Enter))
	b.says("#detail", "keys-team-3", "this object is not managed by Headwater")
	b.do(chromedp.KeyEvent(kb.End))
	b.says("#cursor", "keys-team-4: in sync")
	b.do(chromedp.KeyEvent(kb.Escape))
	b.becomes("document.querySelector('#detail')", "null")

	b.says("#problems", "keys-team-3") // it comes after the headline
	b.eventuallyByTab("document.activeElement.textContent", "keys-team-3")
	require.NotEqual(t, "none", b.ask("getComputedStyle(document.activeElement).outlineStyle"), "where the focus is can be seen")
	b.do(chromedp.KeyEvent(kb.Enter))
	b.says("#detail", "keys-team-3")
	require.Equal(t, "polite", b.ask("document.querySelector('#detail').ariaLive"), "it is read out")
	require.Equal(t, "conflict", b.ask("document.querySelector('#problems .state').innerText.trim().replace(/^[^a-z]+/, '')"), "colour is not all that tells")
}

// eventuallyByTab goes on with Tab until an expression gives want.
func (b *tab) eventuallyByTab(expression, want string) {
	b.Helper()
	for range 40 {
		if b.ask(expression) == want {
			return
		}
		b.do(chromedp.KeyEvent(kb.Tab))
	}
	b.Fatalf("40 times Tab, and %s never was %q", expression, want)
}

func TestAReplicaThatDoesNotLeadSaysWhoDoes(t *testing.T) {
	e := newEnv(t)
	e.teams("two", 2)
	first := e.start(rulesFor("two"))
	require.NoError(t, first.Idle(t.Context()))
	second := e.start(rulesFor("two"))
	b := open(t, second.MetricsURL+"/page")
	b.says("#elsewhere", "Another replica leads", "leads, and serves the page with content", "kubectl --namespace headwater-system port-forward pod/")

	first.Stop()
	b.says("#headline", "All in sync", "4 of 4")
	b.becomes("document.querySelector('#elsewhere')", "null")
}

// A browser shows its token as a password; see serve.Gate.
func TestThePageIsForWhoMayGetIt(t *testing.T) {
	e := newEnv(t)
	e.teams("gate", 2)
	require.NoError(t, lab.Bind(t.Context(), e.Admin, "system:auth-delegator", lab.ServiceAccount))
	e.Create("", &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "gate-page"},
		Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"/page"}, Verbs: []string{"get"}}},
	})
	tokens := map[string]string{"": ""}
	for _, name := range []string{"viewer", "nobody"} {
		accounts := e.Admin.CoreV1().ServiceAccounts("gate-src")
		_, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		require.NoError(t, err)
		answer, err := accounts.CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		require.NoError(t, err)
		tokens[name] = answer.Status.Token
	}
	require.NoError(t, lab.Bind(t.Context(), e.Admin, "gate-page", "system:serviceaccount:gate-src:viewer"))
	address := strings.Replace(e.launch(rulesFor("gate"), "--metrics-auth").MetricsURL, "http:", "https:", 1)
	anyCertificate := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	for name, want := range map[string]int{"": http.StatusUnauthorized, "nobody": http.StatusForbidden, "viewer": http.StatusOK} {
		e.Eventually(func(ctx context.Context) error {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/page", nil)
			if err != nil {
				return err
			}
			request.Header.Set("Authorization", "Bearer "+tokens[name])
			response, err := anyCertificate.Do(request)
			if err == nil && response.StatusCode != want {
				err = fmt.Errorf("%q gets %s", name, response.Status)
			}
			if response != nil {
				_ = response.Body.Close()
			}
			return err
		})
	}
	openAs(t, address+"/page", tokens["viewer"]).says("#headline", "All in sync", "4 of 4")
}

func TestWithoutTheFlagThereIsNoPage(t *testing.T) {
	e := newEnv(t)
	e.teams("none", 1)
	h := e.start(rulesFor("none"), "--page=false")
	for _, path := range []string{"/page", "/page/stream", "/page/list"} {
		response, err := http.Get(h.MetricsURL + path)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusNotFound, response.StatusCode, path)
	}
}
