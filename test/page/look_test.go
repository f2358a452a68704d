package page

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/page"
	"github.com/headwater-k8s/headwater/internal/page/grid"
)

// pixel is the colour inside of the first cell.
const pixel = "document.querySelector('canvas').getContext('2d').getImageData(1, 1, 1, 1).data.join()"

func TestTenThousandNamespacesAreShownAndFollowed(t *testing.T) {
	const namespaces = 10_000
	l := show(t, 10, namespaces)
	b := open(t, l.url+"/page")
	b.says("#headline", "All in sync", "100,000 of 100,000", "10 rules", "10,000 namespaces")
	inSync := b.ask(pixel)

	for namespace := range namespaces {
		l.set(1, namespace+1, grid.Behind)
	}
	b.says("#headline", "10,000 in progress")
	arrive := func(from, to int) {
		for namespace := from; namespace <= to; namespace++ {
			l.set(1, namespace, grid.Current)
		}
	}
	arrive(namespaces/2+1, namespaces-1)
	b.says("#headline", "5,001 in progress", "94,999 of 100,000")
	require.NotEqual(t, inSync, b.ask(pixel), "the first is still on its way")

	arrive(1, namespaces/2)
	l.set(10, 7777, grid.Failed)
	arrive(namespaces, namespaces)
	b.says("#headline", "1 needs attention", "99,999 of 100,000")
	b.says("#problems", "failed", "team-07777", "rule-10")
	b.becomes(pixel, inSync)
	b.keptToItself(l.url)
}

func TestWhatIsTypedIsSiftedOnce(t *testing.T) {
	l := show(t, 3, 1000)
	b := open(t, l.url+"/page")
	b.says("#headline", "All in sync")
	const names = "document.querySelector('canvas').ariaLabel.match(/, ([\\d,]+ namespaces?),/)[1]"
	b.becomes(names, "1,000 namespaces")
	b.do(chromedp.Evaluate(`
		window.arranged = 0;
		const scale = CanvasRenderingContext2D.prototype.scale;
		CanvasRenderingContext2D.prototype.scale = function (...by) { arranged++; return scale.apply(this, by); };
		const box = document.querySelector('#filter-text');
		for (let typed = 1; typed <= 'team-001'.length; typed++) {
			box.value = 'team-001'.slice(0, typed);
			box.dispatchEvent(new Event('input', {bubbles: true}));
		}`, nil))
	b.becomes(names, "100 namespaces")
	require.Equal(t, "team-001", b.ask("document.querySelector('#filter-text').value"))
	require.Equal(t, "3", b.ask("arranged"), "each rule is drawn once, not once for each letter")
}

func TestWhatHappenedIsShownTheLatestFirst(t *testing.T) {
	l := show(t, 2, 1)
	b := open(t, l.url+"/page")
	b.says("#timeline", "Nothing yet")
	l.hear("rule-1", "Propagated")
	b.says("#timeline", "Propagated")
	l.hear("rule-2", "StagePassed")
	l.hear("rule-2", "StagePassed")
	b.says("#timeline", "Stage passed", "Secret/platform/rule-2 and 1 more", "rule rule-2", "just now")
	const whats = "[...document.querySelectorAll('#timeline b')].map((b) => b.textContent).join()"
	b.becomes(whats, "Stage passed,Propagated")
	l.hear("rule-1", "Denied")
	b.becomes(whats, "Denied,Stage passed,Propagated")
	b.do(chromedp.SetValue("#filter-rule", "rule-2", chromedp.ByQuery),
		chromedp.Evaluate(`document.querySelector("#filter-rule").dispatchEvent(new Event("change", {bubbles: true}))`, nil))
	b.becomes(whats, "Stage passed")
}

func TestThePageIsLightOrDarkAsAPersonPrefers(t *testing.T) {
	l := show(t, 1, 100)
	b := open(t, l.url+"/page")
	b.says("#headline", "All in sync")
	const back = "getComputedStyle(document.body).backgroundColor"
	b.becomes(back, "rgb(244, 246, 245)")
	b.becomes(pixel, "147,203,186,255")
	b.do(b.looks(1440, 1000, "dark"))
	b.becomes(back, "rgb(15, 21, 20)")
	b.becomes(pixel, "44,109,93,255")
}

func TestRetainedClonesAreListedApartAndAreNoProblem(t *testing.T) {
	l := show(t, 2, 300)
	for namespace := 1; namespace <= 300; namespace++ {
		l.set(1, namespace, grid.Retained)
	}
	l.hold(func(c *page.Conditions) { c.Rules = c.Rules[1:] }) // the rule is removed
	b := open(t, l.url+"/page")
	b.says("#headline", "All in sync", "300 of 300 in sync", "300 retained", "1 rule")
	b.becomes("document.querySelector('#problems').hidden", "true")
	b.becomes("[...document.querySelectorAll('.band')].map((band) => band.dataset.rule)", "rule-2")
	b.says("#retained", "Retained clones 300", "rule-1 (removed)", "300 clones", "team-00001", "and 297 more")
	require.Equal(t, "false", b.ask("document.querySelector('#retained').open"))
	b.do(chromedp.Click("#retained summary", chromedp.ByQuery), chromedp.Click("#retained .more", chromedp.ByQuery))
	b.says("#retained", "team-00200", "and 100 more")

	l.set(2, 2, grid.Failed)
	l.set(1, 2, grid.Removing)
	b.says("#headline", "1 needs attention", "299 of 301 in sync · 1 in progress · 299 retained")
	b.says("[data-rule=rule-1] h3", "rule-1 (removed)", "1 in progress, of 1, 299 retained")
}

func TestClonesWithTheSameProblemAreOneEntryAboveTheGrid(t *testing.T) {
	l := show(t, 2, 400)
	for namespace := 1; namespace <= 300; namespace++ {
		l.set(1, namespace, grid.Conflict)
	}
	l.set(2, 7, grid.Failed)
	b := open(t, l.url+"/page")
	b.says("#headline", "301 need attention")
	b.says("#problems-title", "Needs attention 301 clones")
	b.becomes("document.querySelectorAll('.groups > li').length", "2")
	b.says(".groups > li[data-state=conflict]", "rule-1", "300 clones", "team-00001", "team-00003", "and 297 more", "first seen by this page at")
	require.Equal(t, "true", b.ask(`document.querySelector('#problems').getBoundingClientRect().bottom <= document.querySelector('.bands').getBoundingClientRect().top`))
	b.do(chromedp.Click(".groups > li[data-state=conflict] .more", chromedp.ByQuery))
	b.says(".groups > li[data-state=conflict]", "team-00200", "and 100 more", "Show fewer")
	b.do(chromedp.Click(".groups > li[data-state=failed] .link", chromedp.ByQuery))
	b.says(".groups > li[data-state=failed] #detail", "team-00007", "rule rule-2", "kubectl -n team-00007 events --for secret/rule-2")
	b.keptToItself(l.url)
}

func TestNamespacesThatARuleDoesNotSelectAreDim(t *testing.T) {
	l := show(t, 2, 100)
	for namespace := 2; namespace <= 100; namespace += 2 {
		l.unset(1, namespace)
	}
	b := open(t, l.url+"/page")
	b.says("#headline", "150 of 150")
	b.says(".legend", "in sync", "not selected")
	const middle = `(() => { const canvas = document.querySelector('canvas'), [side] = canvas.dataset.cell.split('x').map(Number);
		const pitch = side + 3, at = pitch + Math.floor(side / 2);
		return canvas.getContext('2d').getImageData(at, Math.floor(side / 2), 1, 1).data.join() })()`
	b.becomes(middle, "212,219,216,255")
	l.unset(2, 2)
	b.says("#headline", "149 of 149")
}

func TestEmptyStatesAreTruthful(t *testing.T) {
	for sentence, test := range map[string]struct {
		rules int
		hold  func(*page.Conditions)
		want  []string
		grids string
	}{
		"namespaces without clones": {1, func(c *page.Conditions) { c.Namespaces = 300 }, []string{"No clones yet", "1 rule · 300 namespaces, none with clones"}, "0"},
		"no rule":                   {0, func(c *page.Conditions) { c.Namespaces = 300 }, []string{"No rule syncs", "0 rules · 300 namespaces, none with clones"}, "0"},
		"a rule without a source": {
			1, func(c *page.Conditions) { c.Rules[0].Missing = "its source does not exist" },
			[]string{"1 needs attention", "1 rule without a source"},
			"0",
		},
		"an invalid file": {
			1, func(c *page.Conditions) {
				c.File = &page.File{Name: "headwater.yaml", Faults: []page.Fault{{Line: 3, Path: "rules", Message: "rule \"a\" is defined twice"}}}
			},
			[]string{"1 needs attention", "the configuration on disk is invalid"},
			"0",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			l := show(t, test.rules, 0)
			l.hold(test.hold)
			b := open(t, l.url+"/page")
			b.says("#headline", test.want...)
			require.NotEqual(t, "good", b.ask("document.querySelector('#headline').dataset.is"), "nothing is green about it")
			require.Equal(t, test.grids, b.ask("document.querySelectorAll('canvas').length"), "no empty grid")
		})
	}
}

func TestThePageNamesTheCluster(t *testing.T) {
	b := open(t, show(t, 1, 1).url+"/page")
	b.says("#cluster", "prod-eu-1")
	require.Equal(t, "prod-eu-1 · Headwater", b.ask("document.title"))
}

func TestRefusalsAreShownWhereTheyCanBeKnown(t *testing.T) {
	l := show(t, 1, 1)
	guarded := func(refusals bool) {
		l.hold(func(c *page.Conditions) {
			c.Refusals, c.Rules[0].Mode, c.Rules[0].Proof = refusals, "Enforce", page.Proven
		})
	}
	guarded(false)
	b := open(t, l.url+"/page")
	b.says("#refusals", "policies refuse writes before Headwater is asked", "apiserver_validating_admission_policy_check_total", "audit log")
	guarded(true)
	b.becomes("document.querySelector('#refusals')", "null")
}
