package page

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/page"
)

const source = "Secret/platform/rule-1"

// pixel is the colour inside of the first cell.
const pixel = "document.querySelector('canvas').getContext('2d').getImageData(1, 1, 1, 1).data.join()"

func TestTenThousandNamespacesAreShownAndFollowed(t *testing.T) {
	const namespaces = 10_000
	l := show(t, 10, namespaces)
	b := open(t, l.url+"/page")
	b.says("#headline", "All in sync", "100,000 of 100,000", "10 rules", "10,000 namespaces")
	inSync := b.ask(pixel)

	for namespace := range namespaces {
		l.set(1, namespace+1, page.Behind)
	}
	b.says("#headline", "10,000 on their way")
	l.feed.SpreadBegan("rule-1", source, namespaces)
	arrive := func(from, to int) {
		for namespace := from; namespace <= to; namespace++ {
			l.set(1, namespace, page.Current)
			l.feed.SpreadArrived("rule-1", source, true, namespace == namespaces)
		}
	}
	arrive(namespaces/2+1, namespaces-1)
	b.says("#headline", "5,001 on their way", "94,999 of 100,000")
	b.says("#spread", "4,999 of 10,000 so far")
	require.NotEqual(t, inSync, b.ask(pixel), "the first is still on its way")

	arrive(1, namespaces/2)
	l.set(10, 7777, page.Failed)
	arrive(namespaces, namespaces)
	b.says("#headline", "1 needs attention", "99,999 of 100,000")
	b.says("#spread", "10,000 clones written in")
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

func TestAChangeIsDrawnAsACurve(t *testing.T) {
	l := show(t, 1, 3)
	b := open(t, l.url+"/page")
	b.says("#spread", "No source has changed")
	l.feed.SpreadBegan("rule-1", source, 3)
	for namespace := 1; namespace <= 3; namespace++ {
		l.feed.SpreadArrived("rule-1", source, true, namespace == 3)
		b.says("#spread", map[bool]string{false: fmt.Sprintf("%d of 3 so far", namespace), true: "3 clones written in"}[namespace == 3])
	}
	line := b.ask("document.querySelector('#spread .line').getAttribute('d')")
	require.Regexp(t, `^M8 146(H[\d.]+V[\d.]+){3}H[\d.]+$`, line, "a step for each of three, from the bottom left")
	require.Contains(t, line, "V14.0H", "it ends at the top")
	require.True(t, strings.HasSuffix(line, "H332.0"), "and at the right: %s", line)
	require.NotEqual(t, "none", b.ask("getComputedStyle(document.querySelector('#spread .line')).stroke"))

	l.feed.SpreadBegan("rule-1", source, 3)
	l.feed.SpreadArrived("rule-1", source, false, true)
	l.set(1, 1, page.Held)
	b.says("#headline", "1 needs attention") // so that what needed no write would be here too
	b.says("#spread", "3 clones written in")
}

func TestTheNumbersOfAChangeAgree(t *testing.T) {
	l := show(t, 1, 3)
	b := open(t, l.url+"/page")
	l.feed.SpreadBegan("rule-1", source, 3)
	l.feed.SpreadArrived("rule-1", source, true, false)
	l.feed.SpreadArrived("rule-1", source, true, false)
	b.says("#spread", "2 of 3 so far") // which takes the page a while
	l.feed.SpreadArrived("rule-1", source, false, true)
	b.says("#spread", "2 clones written in", "last")
	const last = "[...document.querySelectorAll('.marks dd')].at(-1).textContent"
	require.Equal(t, "2 clones written in "+b.ask(last), b.text("#spread .said"), "the third needed no write")

	l.feed.SpreadBegan("rule-1", source, 1)
	l.feed.SpreadArrived("rule-1", source, false, true)
	l.feed.SpreadArrived("rule-1", source, true, false)
	b.says("#spread .said", "1 clone written after failing first")
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

func TestWhatIsRetainedIsNotCountedAsInSync(t *testing.T) {
	l := show(t, 2, 3)
	for namespace := 1; namespace <= 3; namespace++ {
		l.set(1, namespace, page.Retained)
	}
	b := open(t, l.url+"/page")
	b.says("#headline", "3 retained", "3 of 6 in sync")
	b.says(`[data-rule=rule-1] h3`, "3 retained, of 3")
	b.says(`[data-rule=rule-2] h3`, "all 3 in sync")
	b.says("#problems-title", "Not in sync 3")
	l.set(2, 2, page.Failed)
	b.says("#headline", "1 needs attention", "2 of 6 in sync · 3 retained")
}

func TestNothingOfTheListIsCutOff(t *testing.T) {
	l := show(t, 1, 100)
	l.set(1, 42, page.Conflict)
	b := open(t, l.url+"/page")
	b.says("#problems", "team-00042")
	for _, width := range []int64{1920, 1341, 1265, 901, 700, 390} {
		b.do(b.looks(width, 900, "light"))
		b.becomes("innerWidth", fmt.Sprint(width))
		require.Equal(t, "0", b.ask(`[...document.querySelectorAll('#problems tbody :is(th, td)')].filter((cell) =>
			cell.scrollWidth > cell.clientWidth || cell.getBoundingClientRect().right > document.querySelector('.scroll').getBoundingClientRect().right).length`), "at %d", width)
	}
}
