package notify

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/internal/kube/events"
)

var start = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func conflict(rule, namespace string) events.Event {
	return events.Event{
		Rule: rule, About: &corev1.ObjectReference{Kind: "Secret", Namespace: namespace, Name: "blogsecret"},
		Warning: true, Persisting: true, Reason: "Conflict", Note: "is not Headwater's",
	}
}

func reloaded(namespace string) events.Event {
	return events.Event{
		Rule: "a", About: &corev1.ObjectReference{Kind: "Secret", Namespace: namespace, Name: "blogsecret"},
		Reason: "Reloaded", Note: "12 restarted, 3 pods refreshed",
	}
}

func texts(reports []report) []string {
	texts := make([]string, len(reports))
	for i, one := range reports {
		texts[i] = one.text
	}
	return texts
}

func TestAThousandConflictsAreOneReport(t *testing.T) {
	g := newGroups()
	for i := range 1000 {
		g.add(topicConflict, conflict("blogsecret", fmt.Sprintf("team-%d", i)), start.Add(time.Duration(i)*time.Millisecond))
	}
	require.Equal(t, start.Add(gather), g.next())
	require.Empty(t, g.take(start.Add(gather-1)))
	require.Equal(t, []string{strings.Join([]string{
		"Headwater: Conflict, rule blogsecret, 1000 times",
		"Secret team-0/blogsecret: is not Headwater's",
		"Secret team-1/blogsecret: is not Headwater's",
		"Secret team-2/blogsecret: is not Headwater's",
		"and 997 more",
	}, "\n")}, texts(g.take(start.Add(gather))))
	require.Zero(t, g.next(), "nothing is told twice")
}

func TestEachRuleAndReasonIsAReportOfItsOwn(t *testing.T) {
	g := newGroups()
	g.add(topicConflict, conflict("a", "x"), start)
	g.add(topicConflict, conflict("b", "x"), start)
	g.add(topicReloaded, reloaded("x"), start)
	g.add(topicHeld, events.Event{Reason: "MassRemoval", Note: "3 of 4"}, start)
	require.Equal(t, []string{
		"Headwater: Conflict, rule a\nSecret x/blogsecret: is not Headwater's",
		"Headwater: Conflict, rule b\nSecret x/blogsecret: is not Headwater's",
		"Headwater: MassRemoval\nHeadwater: 3 of 4",
		"Headwater: Reloaded, rule a\nSecret x/blogsecret: 12 restarted, 3 pods refreshed",
	}, texts(g.take(start.Add(gather))))
}

func TestWhatGoesOnIsReportedEveryFiveMinutes(t *testing.T) {
	g := newGroups()
	told := 0
	for second := range 20 * 60 { // as restarts do, some at a time
		now := start.Add(time.Duration(second) * time.Second)
		g.add(topicReloaded, reloaded(fmt.Sprint(second)), now)
		told += len(g.take(now))
	}
	require.Equal(t, 4, told)
	require.Len(t, g.take(start.Add(25*time.Minute)), 1, "the rest")
	require.Empty(t, g.take(start.Add(time.Hour)))
	require.Empty(t, g.bySubject, "what is over is forgotten")
}

func TestWhatLastsIsReportedAgainAfterFourHours(t *testing.T) {
	for sentence, c := range map[string]struct {
		topic topic
		event events.Event
		want  int
	}{
		"a conflict stands, and its Event is repeated": {topicConflict, conflict("a", "x"), 6},
		"a restart is news each time":                  {topicReloaded, reloaded("x"), 72},
	} {
		t.Run(sentence, func(t *testing.T) {
			g, told := newGroups(), 0
			for now := start; now.Before(start.Add(24 * time.Hour)); now = now.Add(20 * time.Minute) {
				g.add(c.topic, c.event, now)
				told += len(g.take(now.Add(gather)))
			}
			require.Equal(t, c.want, told)
		})
	}
}

func TestTheMemoryOfWhatWasReportedIsBounded(t *testing.T) {
	g := newGroups()
	for i := range 5 * maxSaid {
		g.add(topicConflict, conflict("a", fmt.Sprint(i)), start.Add(time.Duration(i)))
	}
	require.LessOrEqual(t, len(g.said), maxSaid)
	last := conflict("a", fmt.Sprint(5*maxSaid-1))
	require.True(t, g.repeats(last, start.Add(time.Minute)), "what was told last is still known")
}

func TestALongNoteIsShortened(t *testing.T) {
	event := reloaded("x")
	event.Note = strings.Repeat("ü", 1000)
	text := place(event)
	require.Less(t, len(text), maxNote+50)
	require.True(t, strings.HasSuffix(text, "ü…"))
}

// Names of users, and of their clients, are what they chose.
func TestWhatUsersWriteMentionsNobodyAndLinksNowhere(t *testing.T) {
	for sentence, name := range map[string]string{
		"Slack, everybody":            "<!channel>",
		"Slack, a link":               "<https://evil.example|sign in>",
		"Discord, everybody":          "@everyone",
		"Mattermost, everybody":       "x @all",
		"Google Chat, everybody":      "<users/all>",
		"Teams, a link":               "[sign in](https://evil.example)",
		"an address":                  "https://evil.example",
		"a line that looks like ours": "x\nHeadwater: all is well",
	} {
		t.Run(sentence, func(t *testing.T) {
			g := newGroups()
			event := conflict("a", "x")
			event.Note = "denied update by " + name
			g.add(topicDenied, event, start)
			text := texts(g.take(start.Add(gather)))[0]
			require.NotRegexp(t, `[<@]|\]\(|://`, text)
			require.Len(t, strings.Split(text, "\n"), 2)
		})
	}
}

func TestOnlyABreakerIsAWaitWorthReporting(t *testing.T) {
	require.Empty(t, topicOf(events.Event{Reason: "RestartWaits"}))
	require.Equal(t, topicHeld, topicOf(events.Event{Reason: "RestartWaits", Warning: true}))
	require.Empty(t, topicOf(events.Event{Reason: "UnknownReload", Warning: true}), "that is for the workload's owner")
}

func TestEveryTopicIsTaught(t *testing.T) {
	known := map[topic]bool{}
	for _, topic := range topics {
		known[topic] = true
	}
	for _, topic := range Topics() {
		require.True(t, known[topic], "no Event is about %s", topic)
	}
	require.Len(t, known, len(Topics()))
}
