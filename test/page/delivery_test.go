package page

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/page"
	"github.com/headwater-k8s/headwater/test/lab"
)

const stagedRule = `
rules:
- name: shared
  source: {kind: Secret, namespace: NAME-src, name: shared}
  validate: [{key: password, is: Regex, pattern: "c4n4ry.*"}]
  sync:
    namespaces: {include: ["NAME-team-*"]}
    delivery:
      stages: [{name: canary, namespaces: {include: [NAME-team-1]}, approval: true, soak: 0s}]
      rest: {soak: 0s}
  reload: {}
`

func TestThePageShowsARevisionOnItsWayAndARejectedOne(t *testing.T) {
	e := newEnv(t)
	e.teams("strip", 3)
	e.RuleStatuses()
	h := e.start(strings.ReplaceAll(stagedRule, "NAME", "strip"))
	require.NoError(t, lab.Bind(t.Context(), e.Admin, "cluster-admin", "steerer"))
	b := open(t, h.MetricsURL+"/page")
	b.says(".delivery [role=status]", "Revision 1 is delivered")
	b.says("[data-stage=canary]", "1 of 1 namespace at revision 1")
	b.says("[data-stage=rest]", "2 of 2 namespaces at revision 1")

	e.put("strip-src", "shared", canary+"-2")
	b.says(".delivery [role=status]", "Revision 2 is being delivered: stage canary")
	b.says("[data-stage=canary]", "now", "1 of 1 namespace at revision 2", "an approval")
	b.says("[data-stage=rest]", "not reached", "0 of 2 namespaces at revision 2")
	b.says(".delivery .why", "waits for `headwater promote shared`")
	require.Equal(t, "step", b.ask("document.querySelector('[data-stage=canary]').getAttribute('aria-current')"))
	b.says(".legend", "has the revision under delivery")
	b.eventuallyByTab("document.activeElement.tagName", "CANVAS")
	b.says("#cursor", "strip-team-1: in sync, revision 2, which is being delivered")
	b.do(chromedp.KeyEvent(kb.ArrowRight))
	b.says("#cursor", "strip-team-2: in sync, revision 1")

	e.Reported("shared")
	_, stderr, exit := e.Command("steerer", "promote", "shared")
	require.Zero(t, exit, stderr)
	b.says(".delivery [role=status]", "Revision 2 is delivered")
	b.says("[data-stage=rest]", "2 of 2 namespaces at revision 2")

	e.put("strip-src", "shared", "x-"+canary)
	b.says(".delivery [role=status]", "Revision 3 is rejected: namespaces have revision 2")
	b.says(".delivery .why", "password")
	b.says("#headline", "1 needs attention", "1 delivery failed")
	b.says("#timeline", "Awaiting approval", "Stage passed", "Delivered", "Rejected", "rule shared")
	b.says("[data-stage=canary]", "1 of 1 namespace at revision 2")
	e.put("strip-src", "shared", canary+"-2")
	b.says(".delivery [role=status]", "Revision 2 is delivered")
	b.says("#headline", "All in sync")
	b.keptToItself(h.MetricsURL, canary)
}

// delivery is one of 400 namespaces, of which the first stage has 10.
func delivery(rule string, change func(*page.Delivery)) page.Delivery {
	d := page.Delivery{
		Rule: rule, Source: "ConfigMap/platform/" + rule, Revision: 7, EditedBy: "kubectl-edit", Recorded: time.Now().Add(-time.Minute),
		Verdict: "Delivering", Stage: "canary", Wanted: 7, Stable: 6, Gate: "consumers are healthy, within 30m",
		Stages: []page.Stage{
			{Name: "canary", Namespaces: 10, Have: 10, Healthy: 10, Soak: 600},
			{Name: "half", Namespaces: 195, Approval: true, Soak: 300},
			{Name: "rest", Namespaces: 195},
		},
	}
	change(&d)
	return d
}

func TestEveryStateOfADeliveryIsSaidInWordsAtEveryWidth(t *testing.T) {
	l := show(t, 6, 70)
	long := "1 namespace unhealthy: " + strings.Repeat("team", 15) + " (Deployment/" + strings.Repeat("web", 30) + ": CrashLoopBackOff)"
	l.deliver(
		delivery("rule-1", func(d *page.Delivery) { d.SoaksUntil = time.Now().Add(time.Hour - time.Second) }),
		delivery("rule-2", func(d *page.Delivery) {
			d.Waits, d.FailsAt = long, time.Now().Add(time.Hour)
			d.Stages[0].Healthy, d.Stages[0].Pending = 8, 2
		}),
		delivery("rule-3", func(d *page.Delivery) { d.Paused, d.Waits = "by jane at noon", "paused by jane at noon" }),
		delivery("rule-4", func(d *page.Delivery) {
			d.Verdict, d.Reason, d.Stages[0].Healthy, d.Stages[0].Unhealthy = "Held", long, 7, 3
		}),
		delivery("rule-5", func(d *page.Delivery) {
			d.Verdict, d.Stage, d.Reason, d.Wanted = "Rejected", "", "stage canary: "+long, 6
		}),
		delivery("rule-6", func(d *page.Delivery) {
			d.Verdict, d.Stage, d.Wanted, d.RolledBack = "Delivered", "", 5, "by jane at noon"
		}),
	)
	b := open(t, l.url+"/page")
	b.says("[data-rule=rule-1] .delivery", "Revision 7 is being delivered: stage canary", "edited by kubectl-edit", "10 healthy", "Gate: consumers are healthy, within 30m.")
	b.says("[data-rule=rule-1] [data-stage=half]", "not reached", "soak 5 min, then an approval")
	soak := b.text(".soak")
	require.Regexp(t, `soaks 5\d min `, soak)
	require.NoError(t, lab.Eventually(t.Context(), func(context.Context) error {
		if now := b.text(".soak"); now == soak {
			return fmt.Errorf("it still says %q", now)
		}
		return nil
	}), "it counts down")
	b.says("[data-rule=rule-2] .delivery", "8 healthy, 2 pending", "CrashLoopBackOff", "fails at")
	b.says("[data-rule=rule-3] .delivery", "is paused in stage canary", "paused by jane at noon")
	b.says("[data-rule=rule-4] .delivery", "is held in stage canary", "7 healthy, 3 unhealthy", "CrashLoopBackOff")
	b.says("[data-rule=rule-5] .delivery", "is rejected: namespaces have revision 6", "stage canary", "CrashLoopBackOff")
	b.says("[data-rule=rule-6] .delivery", "is rolled back to revision 5 by jane at noon")
	b.says("#headline", "2 need attention", "2 deliveries failed")
	for _, width := range []int64{1440, 901, 390} {
		for _, scheme := range []string{"light", "dark"} {
			b.do(b.looks(width, 900, scheme))
			b.becomes("innerWidth", fmt.Sprint(width))
			b.becomes(overflowing, "")
			require.Empty(t, b.ask(scrollers), "at %d", width)
			b.picture(fmt.Sprintf("delivery-%d-%s.jpg", width, scheme))
		}
	}
	l.deliver()
	b.becomes("document.querySelectorAll('.delivery').length", "0")
	b.keptToItself(l.url)
}
