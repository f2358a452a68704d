package page

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/page"
	"github.com/headwater-k8s/headwater/test/lab"
)

func TestThePageSaysThatTheFileIsInvalidAndWhichRulesAreGone(t *testing.T) {
	e := newEnv(t)
	e.teams("file", 2)
	h := e.start(rulesFor("file"))
	b := open(t, h.MetricsURL+"/page")
	b.says("#headline", "All in sync", "4 of 4")

	e.rewrite(strings.Replace(rulesFor("file"), "sync: {", "sync: {onConflict: Sometimes, ", 1))
	b.says("#file", "invalid", "keeps the last valid one in force", "line 8", "rules[0].sync.onConflict", "Sometimes", "AdoptIfEqual", "headwater check headwater.yaml")
	require.Equal(t, "alert", b.ask("document.querySelector('#file').role"), "it is read out")
	b.says("#headline", "1 needs attention", "4 of 4", "the configuration on disk is invalid")
	b.says("#todo", "To do 1", "headwater.yaml on disk is not in force", "headwater check headwater.yaml")

	before, _, _ := strings.Cut(rulesFor("file"), "- name: other")
	e.rewrite(before)
	b.says("#retained", "other (removed)", "2 clones")
	b.says("#headline", "All in sync", "2 of 2 in sync · 2 retained · 1 rule")
	b.becomes("document.querySelector('#file')", "null")
	require.Equal(t, "all,shared,other (removed)", b.ask("[...document.querySelector('#filter-rule').options].map((option) => option.textContent)"))
	require.NotContains(t, b.text("[data-rule=shared] h3"), "removed")
	b.keptToItself(h.MetricsURL, canary)
}

func TestWhatNeedsAPersonOrIsNotKnownIsNotAllInSync(t *testing.T) {
	l := show(t, 2, 2)
	b := open(t, l.url+"/page")
	b.says("#headline", "All in sync")
	l.hold(func(c *page.Conditions) {
		c.Todos = []page.Todo{{Rule: "rule-1", Reason: "AwaitingApproval", Message: "waits", Person: true, Command: "headwater promote rule-1"}}
	})
	b.says("#headline", "1 rule needs a person", "4 of 4")
	require.Equal(t, "trouble", b.ask("document.querySelector('#headline').dataset.is"))
	l.hold(func(c *page.Conditions) { c.Todos, c.Doubt = []page.Todo{}, "RuleStatuses cannot be written" })
	b.says("#headline", "1 needs attention", "RuleStatuses may be old")
	b.says("#doubt", "may be old: RuleStatuses cannot be written")
	l.hold(func(c *page.Conditions) { c.Doubt = "" })
	b.says("#headline", "All in sync")
}

func TestThePageListsWhatTheCommandStatusLists(t *testing.T) {
	e := newEnv(t)
	e.teams("todo", 2)
	e.put("todo-team-1", "other", canary+"-of-theirs")
	h := e.start(rulesFor("todo") + `
- name: lost
  source: {kind: Secret, namespace: todo-src, name: lost}
  sync: {namespaces: {include: ["todo-team-*"]}}
`)
	b := open(t, h.MetricsURL+"/page")
	b.says("#todo", "To do 1", "other", "Conflict", "headwater plan -o wide", "1 rule is not ready and goes on without you: lost (SourceMissing)")
	require.NoError(t, lab.Bind(t.Context(), e.Admin, "headwater-view", "todo-viewer"))
	e.Eventually(func(context.Context) error {
		told, _, exit := e.Command("todo-viewer", "status")
		if exit != 2 {
			return fmt.Errorf("exit %d: %s", exit, told)
		}
		for _, want := range []string{"\nother: 1 of 2 clones in sync: 1 conflict\n  run `headwater plan -o wide`\n", "\nlost: "} {
			if !strings.Contains(told, want) {
				return fmt.Errorf("%q is not in %s", want, told)
			}
		}
		return lab.ErrorIf(strings.Contains(told, "\nshared: "), "status lists what is ready: %s", told)
	})
	require.NoError(t, e.Admin.CoreV1().Secrets("todo-team-1").Delete(t.Context(), "other", metav1.DeleteOptions{}))
	e.put("todo-src", "lost", canary+"-1")
	b.becomes("document.querySelector('#todo')", "null")
	b.keptToItself(h.MetricsURL, canary)
}

// A live connection confirms nothing while nobody renews the Lease.
func TestThePageSaysThatNobodyConfirmsWhatItShows(t *testing.T) {
	l := show(t, 1, 2)
	b := open(t, l.url+page.Path)
	b.says("#headline", "All in sync")
	l.mu.Lock()
	l.unconfirmed = time.Now().Add(-time.Minute)
	l.mu.Unlock()
	b.says("#headline", "As of "+l.unconfirmed.Format("15:04:05"), "All in sync")
	require.Equal(t, "stale", b.ask("document.querySelector('#headline').dataset.is"))
	l.mu.Lock()
	l.elsewhere = true
	l.mu.Unlock()
	b.says("#elsewhere", "headwater-0", "Nothing confirms that since "+l.unconfirmed.Format("15:04:05"))
}

func TestThePageSaysWhetherRulesProtectAndHaveASource(t *testing.T) {
	e := newEnv(t)
	e.teams("guard", 2)
	h := e.start(rulesFor("guard") + `
- name: lost
  source: {kind: Secret, namespace: guard-src, name: lost}
  sync: {namespaces: {include: ["guard-team-*"]}}
  protect: {}
- name: unsynced
  source: {kind: Secret, namespace: guard-src, name: unsynced}
  protect: {mode: Warn}
`)
	b := open(t, h.MetricsURL+"/page")
	const missing = "its source Secret/guard-src/lost does not exist; create it, or correct `source` in the configuration"
	b.says("#headline", "2 need attention", "2 rules without a source", "4 of 4 in sync", "3 rules")
	b.says("[data-rule=lost]", "no clones", "protection not tried", "No source: "+missing)
	require.Equal(t, "null", b.ask("document.querySelector('[data-rule=lost] canvas')"), "no empty grid")
	b.says("#protection", "lost Enforce", "not tried: "+missing, "unsynced Warn", "refuses nothing", "not protectedother")
	b.says("#protection", "1 of 2 verified", "shared Enforce", "verified, since")
	b.says("[data-rule=shared] h3", "protected")

	e.put("guard-src", "lost", canary)
	b.says("#headline", "1 rule without a source", "6 of 6 in sync")
	b.becomes("document.querySelector('.missing')", "null")
	b.says("#protection", "2 of 2 verified")
	b.keptToItself(h.MetricsURL, canary)
}

func TestThePageListsRestartsThatWaitWhileTheyDo(t *testing.T) {
	e := newEnv(t)
	e.teams("wait", 1)
	e.SetKey("wait-src", "shared", "extra", canary)
	config := strings.Replace(rulesFor("wait"), "  protect:", "  reload: {debounce: 100ms}\n  protect:", 1)
	h := e.start("reload: {windows: [{schedule: 0 0 29 2 *, duration: 1h}]}" + config)
	b := open(t, h.MetricsURL+"/page")
	b.says("#headline", "All in sync")
	require.Equal(t, "null", b.ask("document.querySelector('#waits')"), "nothing waits")
	e.adopted("wait-team-1", "web", lab.ByEnv("shared", "password"))
	e.adopted("wait-team-1", "lacking", lab.ByEnv("shared", "extra"))

	e.put("wait-src", "shared", canary+"-new")
	b.says("#waits", "Restarts that wait 2",
		"waits Deployment/wait-team-1/web", "none of its windows is open; changed: Secret/wait-team-1/shared", "rule shared", "until 20",
		"held Deployment/wait-team-1/lacking", "its pods could not start, or would read nothing of what changed; missing: key extra of Secret/wait-team-1/shared")

	e.SetKey("wait-src", "shared", "extra", canary)
	b.says("#waits", "Restarts that wait 1", "web")
	require.NotContains(t, b.text("#waits"), "lacking", "what it lacked is there again")
	e.rewrite(config)
	b.becomes("document.querySelector('#waits')", "null")
	b.says("#timeline", "Restarted", "Deployment/wait-team-1/web")
	b.keptToItself(h.MetricsURL, canary)
}

// adopted creates a Deployment and waits for its baseline: a change that comes
// before is none.
func (e *env) adopted(namespace, name string, spec corev1.PodSpec) {
	e.Helper()
	api := e.Admin.AppsV1().Deployments(namespace)
	_, err := api.Create(e.Context(), lab.Deployment(namespace, name, 0, spec), metav1.CreateOptions{})
	require.NoError(e, err)
	e.Eventually(func(ctx context.Context) error {
		is, err := api.Get(ctx, name, metav1.GetOptions{})
		if err == nil && is.Annotations["headwater.dev/baseline"] == "" {
			err = errors.New("no baseline yet")
		}
		return err
	})
}

func TestEveryConditionIsSaidInWordsAtEveryWidth(t *testing.T) {
	l := show(t, 5, 3)
	since := time.Now().Add(-2 * time.Hour)
	l.hold(func(c *page.Conditions) {
		for i, rule := range []page.Rule{
			{Mode: "Enforce", Proof: page.Proven, Since: since},
			{Mode: "Enforce", Proof: page.Unproven, Since: since, Why: "the API server allowed a change by an account without exemption"},
			{Mode: "Enforce", Proof: page.Untried},
			{Mode: "Audit"},
			{Missing: "its source is not there"},
		} {
			rule.Name, rule.Syncs = c.Rules[i].Name, true
			c.Rules[i] = rule
		}
		waits := make([]page.Wait, 60)
		for i := range waits {
			waits[i] = page.Wait{
				Consumer: fmt.Sprintf("Deployment/%s-%d/%s", strings.Repeat("team", 15), i, strings.Repeat("web", 20)),
				Rule:     "rule-1", What: "waits", Why: "no window is open", Since: since, Until: since.Add(3 * time.Hour),
			}
		}
		c.Waits = page.NewWaits(waits)
		c.File = &page.File{Name: "headwater.yaml", Since: since}
		for line := range 20 {
			c.File.Faults = append(c.File.Faults, page.Fault{Line: line + 1, Path: strings.Repeat("rules[0].", 30) + "name", Message: "it is wrong"})
		}
	})
	b := open(t, l.url+"/page")
	b.says("#headline", "1 rule without a source", "1 rule not verified to protect")
	b.says("#protection", "1 of 3 verified", "verified, since", "2 h ago", "not verified, since", "allowed a change", "not tried yet", "rule-4 Audit", "not protectedrule-5")
	require.Equal(t, "rule-2 Enforce", b.ask("document.querySelector('#protection li p').textContent"), "what is not verified comes first")
	b.says("[data-rule=rule-2] h3", "protection not verified")
	b.says("[data-rule=rule-4] h3", "audits only")
	b.says("#waits", "Restarts that wait 60", "Show 42 more", "and 10 more")
	b.says("#file", "Show 12 more")
	for _, width := range []int64{1920, 1341, 1265, 700, 390} {
		for _, scheme := range []string{"light", "dark"} {
			b.do(b.looks(width, 900, scheme))
			b.becomes("innerWidth", fmt.Sprint(width))
			require.Empty(t, b.ask(`[...document.querySelectorAll('#file, #file *, aside *, .band h3')].filter((part) =>
				part.scrollWidth > part.clientWidth + 1 && getComputedStyle(part).display !== 'inline' && !part.closest('.spoken')).map((part) => part.outerHTML.slice(0, 80))`), "at %d", width)
		}
	}
	l.hold(func(c *page.Conditions) { c.File, c.Waits = nil, page.NewWaits(nil) })
	b.becomes("document.querySelector('#file') ?? document.querySelector('#waits')", "null")
}
