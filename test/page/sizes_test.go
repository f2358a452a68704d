package page

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/page"
	"github.com/headwater-k8s/headwater/internal/page/grid"
)

// crowded is the page of 50 rules with everything on it that there can be.
func crowded(t *testing.T) *landscape {
	t.Helper()
	l := show(t, 50, 400)
	for namespace := 1; namespace <= 300; namespace++ {
		l.set(3, namespace, grid.Conflict)
	}
	for namespace := 301; namespace <= 400; namespace++ {
		l.unset(4, namespace)
		l.set(5, namespace, grid.Retained)
	}
	l.set(7, 12, grid.Failed)
	l.set(8, 13, grid.Held)
	since := time.Now().Add(-3 * time.Hour)
	for i := range 30 {
		l.hear(fmt.Sprintf("rule-%d", i), "Restarted")
	}
	l.hold(func(c *page.Conditions) {
		for i := range c.Rules {
			c.Rules[i].Mode, c.Rules[i].Proof, c.Rules[i].Since = "Enforce", page.Proven, since
		}
		c.Rules = append(c.Rules, page.Rule{Name: "lost", Missing: "its source Secret/platform/lost does not exist"})
		c.Refusals = true
		c.Todos = []page.Todo{
			{Rule: "rule-2", Reason: "Invalid", Message: "line 3", Person: true, Command: "headwater status rule-2"},
			{Rule: "rule-3", Reason: "Conflict", Message: "100 of 400 clones in sync: 300 conflict", Person: true, Command: "headwater plan -o wide"},
			{Rule: "rule-8", Reason: "Held", Message: "399 of 400 clones in sync: 1 held", Person: true, Command: "headwater approve rule-8 --dry-run"},
			{Rule: "rule-9", Reason: "Progressing", Message: "399 of 400 clones in sync: 1 behind"},
			{Rule: "lost", Reason: "SourceMissing", Message: "its source Secret/platform/lost does not exist", Person: true, Command: "kubectl -n platform events --for secret/lost"},
		}
		waits := make([]page.Wait, 40)
		for i := range waits {
			waits[i] = page.Wait{Consumer: fmt.Sprintf("Deployment/team-%d/%s", i, strings.Repeat("web", 20)), Rule: "rule-1", What: "waits", Why: "no window is open", Since: since}
		}
		c.Waits = page.NewWaits(waits)
		c.File = &page.File{Name: "headwater.yaml", Since: since, Faults: []page.Fault{{Line: 3, Path: "rules[0].name", Message: strings.Repeat("long", 60)}}}
	})
	return l
}

const (
	// overflowing are elements that reach out of the window, or out of a parent
	// that cuts them off.
	overflowing = `[...document.querySelectorAll('body *')].filter((part) => {
		const box = part.getBoundingClientRect();
		if (part.closest('.spoken, .skip, .tip') || box.width === 0) return false;
		return box.right > innerWidth + 1 || box.left < -1 ||
			(part.scrollWidth > part.clientWidth + 1 && getComputedStyle(part).display !== 'inline');
	}).map((part) => part.outerHTML.slice(0, 90)).join(' AND ')`
	// scrollers are elements with a scroll bar of their own.
	scrollers = `[...document.querySelectorAll('body *')].filter((part) =>
		/auto|scroll/.test(getComputedStyle(part).overflowX + getComputedStyle(part).overflowY)).map((part) => part.outerHTML.slice(0, 90)).join(' AND ')`
	// small are targets that a finger misses; see WCAG 2.5.8.
	small = `[...document.querySelectorAll('a, button, input, select, summary, canvas')].filter((part) => {
		if (part.closest('.skip')) return false;
		const box = part.getBoundingClientRect();
		const [wide, high] = part.dataset.cell ? part.dataset.cell.split('x').map(Number) : [box.width, box.height];
		return box.width > 0 && (wide < 24 || high < 24);
	}).map((part) => part.outerHTML.slice(0, 90)).join(' AND ')`
)

func TestFiftyRulesFitOnAPhoneAndOnADesktop(t *testing.T) {
	l := crowded(t)
	b := open(t, l.url+"/page")
	b.says("#headline", "304 need attention", "302 clones need attention", "the configuration on disk is invalid", "1 rule without a source")
	b.says("#waits", "Show 32 more")
	b.says("#todo", "To do 4", "Invalid", "headwater check headwater.yaml", "SourceMissing", "headwater approve rule-8 --dry-run", "1 rule is not ready and goes on without you: rule-9 (Progressing)")
	const first = "[...document.querySelectorAll('.band')].slice(0, 4).map((band) => band.dataset.rule)"
	b.becomes(first, "rule-3,rule-7,rule-8,rule-1")
	b.becomes("[...document.querySelectorAll('canvas')].map((canvas) => canvas.closest('.band').dataset.rule)", "rule-3,rule-7,rule-8")
	b.says("#problems", "conflict")
	b.do(chromedp.Click(`#problems li[data-state=conflict] .link`, chromedp.ByQuery))
	b.says("#detail", "team-00001")
	b.do(chromedp.Click(`#problems li[data-state=conflict] .more`, chromedp.ByQuery))
	b.says("#problems", "team-00200")
	for _, width := range []int64{2560, 1440, 901, 390} {
		b.do(b.looks(width, 900, "light"))
		b.becomes("innerWidth", fmt.Sprint(width))
		b.becomes(overflowing, "")
		require.Empty(t, b.ask(scrollers), "at %d", width)
		require.Equal(t, fmt.Sprint(width <= 640), b.ask("getComputedStyle(document.querySelector('.keys')).display === 'none'"), "the hint about the keyboard at %d", width)
		b.picture(fmt.Sprintf("crowded-%d.jpg", width))
	}
	b.becomes(small, "")
	b.says("[data-rule=rule-1]", "Show 400 namespaces")
	b.do(chromedp.Click(`[data-rule=rule-1] .more`, chromedp.ByQuery))
	b.becomes("document.querySelectorAll('canvas').length", "1")
	b.becomes(small, "")
	b.becomes(overflowing, "")
	b.keptToItself(l.url)
}

// With few rules, each is shown with its cells; of many, only those in trouble.
func TestEveryNumberOfRulesFitsAtEveryWidth(t *testing.T) {
	for rules, cells := range map[int]string{0: "0", 5: "5", 50: "1"} {
		t.Run(fmt.Sprint(rules, " rules"), func(t *testing.T) {
			l := show(t, rules, 300)
			if rules > 0 {
				l.set(rules, 7, grid.Failed)
				l.hold(func(c *page.Conditions) {
					c.Todos = []page.Todo{{Rule: fmt.Sprintf("rule-%d", rules), Reason: "Failed", Message: "299 of 300 clones in sync: 1 failed", Person: true, Command: "headwater plan -o wide"}}
				})
			}
			b := open(t, l.url+"/page")
			for _, width := range []int64{2560, 1440, 390} {
				b.do(b.looks(width, 900, "light"))
				b.becomes("innerWidth", fmt.Sprint(width))
				if width > 640 {
					b.becomes("document.querySelectorAll('canvas').length", cells)
				}
				if rules > 0 {
					b.becomes("document.querySelector('.band').dataset.rule", fmt.Sprintf("rule-%d", rules))
				}
				b.becomes(overflowing, "")
				require.Empty(t, b.ask(scrollers), "at %d", width)
				b.picture(fmt.Sprintf("rules-%d-%d.jpg", rules, width))
			}
			b.keptToItself(l.url)
		})
	}
}

// picture keeps what the tab shows in the folder PICTURES, to be looked at.
func (b *tab) picture(name string) {
	b.Helper()
	folder := os.Getenv("PICTURES")
	if folder == "" {
		return
	}
	var picture []byte
	b.do(chromedp.FullScreenshot(&picture, 90))
	require.NoError(b, os.WriteFile(filepath.Join(folder, name), picture, 0o644))
}
