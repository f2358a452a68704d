package report

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/track"
)

var shared = decide.Cause{Object: object.Ref{Kind: object.Secret, Namespace: "platform", Name: "shared"}, Rule: "blog"}

// notes are what is told at that time after birth while so many wait.
func (t summaries) notes(after time.Duration, wait track.WaitCount) []string {
	var notes []string
	for _, one := range t.take(reloadtest.Birth.Add(after), map[decide.Cause]track.WaitCount{shared: wait}) {
		notes = append(notes, one.note)
	}
	return notes
}

func (t summaries) came(came outcomeKind, after time.Duration, names ...string) {
	for _, name := range names {
		t.add([]decide.Cause{shared}, kinds.Key{Kind: kinds.KindDeployment, Namespace: "ns", Name: name}, came, reloadtest.Birth.Add(after))
	}
}

func TestAThousandConsumersAreOnePieceOfNews(t *testing.T) {
	all := summaries{}
	for i := range 1000 {
		all.came(outcomeRestarted, time.Duration(i)*time.Millisecond, fmt.Sprint("web-", i))
	}
	require.Empty(t, all.notes(3900*time.Millisecond, track.WaitCount{}), "more may come")
	require.Equal(t, []string{"1000 restarted: Deployment/ns/web-0, Deployment/ns/web-1 and others"}, all.notes(4*time.Second, track.WaitCount{}))
	require.Empty(t, all, "nothing is kept")
}

func TestATallySaysWhatCameOfIt(t *testing.T) {
	all := summaries{}
	all.came(outcomeRestarted, 0, "a", "b")
	all.came(outcomeRefreshed, 0, "c")
	all.came(outcomeFailed, 0, "d")
	all.came(outcomeAnnotated, 0, "e")
	all.came(outcomeWaits, 0, "f")
	require.Equal(t, []string{"2 restarted, 1 annotated, 1 pod refreshed, 1 failed, 1 held: Deployment/ns/a, Deployment/ns/b and others"},
		all.notes(summaryQuiet, track.WaitCount{Held: 1}))
	all.came(outcomeRefreshed, time.Minute, "a", "b")
	require.Equal(t, []string{"2 pods refreshed: Deployment/ns/a, Deployment/ns/b"}, all.notes(time.Minute+summaryQuiet, track.WaitCount{}))
	all.came(OutcomeNotRestarted, time.Hour, "a", "b")
	require.Equal(t, []string{"2 not restarted (no pod template): Deployment/ns/a, Deployment/ns/b"}, all.notes(time.Hour+summaryQuiet, track.WaitCount{}))
	require.Empty(t, all)

	all.came(outcomeWaits, 0, "f")
	require.Empty(t, all.notes(summaryQuiet, track.WaitCount{}), "by now it waits no more")
	require.Empty(t, all)
}

func TestThoseWhoTakeTurnsAreNotToldOneByOne(t *testing.T) {
	all := summaries{}
	all.came(outcomeRestarted, 0, "a")
	all.came(outcomeWaits, 0, "b", "c", "d")
	require.Equal(t, []string{"1 restarted, 3 waiting: Deployment/ns/a, Deployment/ns/b and others"}, all.notes(summaryQuiet, track.WaitCount{Waiting: 3}))
	all.came(outcomeRestarted, time.Minute, "b")
	require.Empty(t, all.notes(2*time.Minute, track.WaitCount{Waiting: 2}))
	all.came(outcomeRestarted, 2*time.Minute, "c")
	require.Equal(t, []string{"2 restarted, 1 waiting: Deployment/ns/b, Deployment/ns/c"}, all.notes(time.Minute+summaryMaxDelay, track.WaitCount{Waiting: 1}))
	all.came(outcomeRestarted, 10*time.Minute, "d")
	require.Equal(t, []string{"1 restarted: Deployment/ns/d"}, all.notes(10*time.Minute+summaryQuiet, track.WaitCount{}))
	require.Empty(t, all)
}

func TestWhatNeverComesToRestIsToldNowAndThen(t *testing.T) {
	all, told := summaries{}, 0
	for second := range 1000 {
		all.came(outcomeRefreshed, time.Duration(second)*time.Second, "a")
		told += len(all.notes(time.Duration(second)*time.Second, track.WaitCount{}))
	}
	require.Equal(t, 3, told)
}
