package reload

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/again"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

const maxNote = 1024 // what the API server accepts

func TestOwnersAreToldOnceAndAgainWhileItLasts(t *testing.T) {
	now := birth
	told := told{now: func() time.Time { return now }}
	k := key{KindDeployment, "ns", "w"}
	says := func(about, text string) bool { say, _ := told.say(k, about, text); return say }
	require.False(t, says(waiting, ""), "nothing to say")
	require.True(t, says(waiting, "one"))
	require.False(t, says(waiting, "one"), "said already")
	require.True(t, says(mark.Reload, "one"), "about something else")
	require.True(t, says(waiting, "two"))
	told.over(k, waiting)
	require.True(t, says(waiting, "two"), "it began anew")
	told.forget(k)
	require.True(t, says(waiting, "two"))
	require.True(t, says(mark.Reload, "one"))
	now = now.Add(again.After)
	say, news := told.say(k, waiting, "two")
	require.True(t, say && !news, "it lasts")
}

func TestNotesSayWhatChangedAndFit(t *testing.T) {
	w := &Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "w", UID: "u"}, Kind: KindStatefulSet}
	long := object.Ref{Kind: object.ConfigMap, Namespace: strings.Repeat("n", 63), Name: strings.Repeat("o", 253)}.String()

	event := restarted(w, Decision{Changed: []string{"Secret/ns/a", "Secret/ns/b", "Secret/ns/c"}})
	require.Equal(t, "Restarted, because what it read at its start has changed: Secret/ns/a, Secret/ns/b and 1 more", event.Note)
	require.Equal(t, "StatefulSet", event.About.Kind)
	require.Equal(t, "apps/v1", event.About.APIVersion)
	require.Equal(t, w.UID, event.About.UID)
	cron := restarted(&Workload{ObjectMeta: metav1.ObjectMeta{Name: "nightly"}, Kind: KindCronJob}, Decision{Changed: []string{long, long}})
	require.Equal(t, "batch/v1", cron.About.APIVersion)
	require.Contains(t, cron.Note, "No Job is created for the change")
	require.Contains(t, cron.Note, "--from=cronjob/nightly NAME")
	require.Less(t, len(cron.Note), maxNote)
	require.Less(t, len(restarted(w, Decision{Changed: []string{long, long, long}}).Note), maxNote)

	old := mayReadOld(w, "rule", []string{long, long})
	require.True(t, old.Warning)
	require.Contains(t, old.Note, "made anew under its name: "+long+" and 1 more. ")
	require.Less(t, len(old.Note), maxNote)

	require.Contains(t, baselineAdopted(w, Decision{Reason: ReasonOtherKey}).Note, "key")
	require.Contains(t, baselineAdopted(w, Decision{Reason: ReasonUnreadable}).Note, "damaged")

	held := restartHeld(w, Decision{Missing: []string{"Secret/ns/a", "key k of Secret/ns/b"}})
	require.Contains(t, held.Note, "missing: Secret/ns/a and 1 more; ")
	key := "key " + strings.Repeat("k", 253) + " of " + long
	require.Less(t, len(restartHeld(w, Decision{Missing: []string{key, key, key}}).Note), maxNote)

	_, faults := wishesOf(&metav1.ObjectMeta{Annotations: map[string]string{mark.Reload: strings.Repeat("x", 5000)}}, nil, Settings{})
	unknown := unknownReload(w, faults[0])
	require.True(t, unknown.Warning)
	require.Less(t, len(unknown.Note), maxNote)
	require.Contains(t, unknown.Note, "is ignored: ")
	require.Contains(t, unknownReload(w, fault{inPart: true}).Note, "is ignored in part: ")
}
