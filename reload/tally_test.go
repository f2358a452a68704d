package reload

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/object"
)

var shared = Cause{object.Ref{Kind: object.Secret, Namespace: "platform", Name: "shared"}, "blog"}

// notes are what is told at that time after birth while so many wait.
func (t tallies) notes(after time.Duration, wait waitCount) []string {
	var notes []string
	for _, one := range t.take(birth.Add(after), map[Cause]waitCount{shared: wait}) {
		notes = append(notes, one.note)
	}
	return notes
}

func (t tallies) came(came outcome, after time.Duration, names ...string) {
	for _, name := range names {
		t.add([]Cause{shared}, key{KindDeployment, "ns", name}, came, birth.Add(after))
	}
}

func TestAThousandConsumersAreOnePieceOfNews(t *testing.T) {
	all := tallies{}
	for i := range 1000 {
		all.came(outcomeRestarted, time.Duration(i)*time.Millisecond, fmt.Sprint("web-", i))
	}
	require.Empty(t, all.notes(3900*time.Millisecond, waitCount{}), "more may come")
	require.Equal(t, []string{"1000 restarted: Deployment/ns/web-0, Deployment/ns/web-1 and others"}, all.notes(4*time.Second, waitCount{}))
	require.Empty(t, all, "nothing is kept")
}

func TestATallySaysWhatCameOfIt(t *testing.T) {
	all := tallies{}
	all.came(outcomeRestarted, 0, "a", "b")
	all.came(outcomeRefreshed, 0, "c")
	all.came(outcomeFailed, 0, "d")
	all.came(outcomeAnnotated, 0, "e")
	all.came(outcomeWaits, 0, "f")
	require.Equal(t, []string{"2 restarted, 1 annotated, 1 pod refreshed, 1 failed, 1 held: Deployment/ns/a, Deployment/ns/b and others"},
		all.notes(tallyQuiet, waitCount{held: 1}))
	all.came(outcomeRefreshed, time.Minute, "a", "b")
	require.Equal(t, []string{"2 pods refreshed: Deployment/ns/a, Deployment/ns/b"}, all.notes(time.Minute+tallyQuiet, waitCount{}))
	all.came(outcomeNotRestarted, time.Hour, "a", "b")
	require.Equal(t, []string{"2 not restarted (no pod template): Deployment/ns/a, Deployment/ns/b"}, all.notes(time.Hour+tallyQuiet, waitCount{}))
	require.Empty(t, all)

	all.came(outcomeWaits, 0, "f")
	require.Empty(t, all.notes(tallyQuiet, waitCount{}), "by now it waits no more")
	require.Empty(t, all)
}

func TestThoseWhoTakeTurnsAreNotToldOneByOne(t *testing.T) {
	all := tallies{}
	all.came(outcomeRestarted, 0, "a")
	all.came(outcomeWaits, 0, "b", "c", "d")
	require.Equal(t, []string{"1 restarted, 3 waiting: Deployment/ns/a, Deployment/ns/b and others"}, all.notes(tallyQuiet, waitCount{waiting: 3}))
	all.came(outcomeRestarted, time.Minute, "b")
	require.Empty(t, all.notes(2*time.Minute, waitCount{waiting: 2}))
	all.came(outcomeRestarted, 2*time.Minute, "c")
	require.Equal(t, []string{"2 restarted, 1 waiting: Deployment/ns/b, Deployment/ns/c"}, all.notes(time.Minute+tallyPatience, waitCount{waiting: 1}))
	all.came(outcomeRestarted, 10*time.Minute, "d")
	require.Equal(t, []string{"1 restarted: Deployment/ns/d"}, all.notes(10*time.Minute+tallyQuiet, waitCount{}))
	require.Empty(t, all)
}

func TestWhatNeverComesToRestIsToldNowAndThen(t *testing.T) {
	all, told := tallies{}, 0
	for second := range 1000 {
		all.came(outcomeRefreshed, time.Duration(second)*time.Second, "a")
		told += len(all.notes(time.Duration(second)*time.Second, waitCount{}))
	}
	require.Equal(t, 3, told)
}

func TestOnlyWhatSomebodyWantsCausesAnything(t *testing.T) {
	h := testHasher(t, 1)
	s, other := secret(h, "s", EnvFrom, data{"a": "1"}), secret(h, "t", EnvFrom, data{"a": "1"}).ungoverned()
	stored := decideWorkload(h, testUID, "", []Consumed{s, s, other}).Baseline
	changed := secret(h, "s", EnvFrom, data{"a": "2"})
	of := []Cause{{s.Object, "r"}}
	require.Equal(t, of, decideWorkload(h, testUID, stored, []Consumed{changed, changed, other}).Causes)
	held := decideWorkload(h, testUID, stored, []Consumed{changed, other.missing()})
	require.Equal(t, StepHold, held.Step)
	require.Equal(t, of, held.Causes, "the change that is held")
	held = decideWorkload(h, testUID, stored, []Consumed{s.missing(), other})
	require.Equal(t, StepHold, held.Step)
	require.Equal(t, of, held.Causes, "what is missing")
	require.Empty(t, decideWorkload(h, testUID, stored, []Consumed{s, other}).Causes)
}
