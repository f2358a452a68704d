package report

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/dedupe"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/optin"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

const maxNote = 1024 // what the API server accepts

func TestOwnersAreToldOnceAndAgainWhileItLasts(t *testing.T) {
	now := reloadtest.Birth
	told := Repeats{Now: func() time.Time { return now }}
	k := kinds.Key{Kind: kinds.KindDeployment, Namespace: "ns", Name: "w"}
	says := func(about, text string) bool { return told.Due(k, about, text) != dedupe.NotDue }
	require.False(t, says(topicWaiting, ""), "nothing to say")
	require.True(t, says(topicWaiting, "one"))
	require.False(t, says(topicWaiting, "one"), "said already")
	require.True(t, says(mark.Reload, "one"), "about something else")
	require.True(t, says(topicWaiting, "two"))
	told.Clear(k, topicWaiting)
	require.False(t, says(topicWaiting, "two"), "it ended for a moment")
	told.Clear(k, topicWaiting)
	now = now.Add(dedupe.Forgotten)
	require.True(t, says(topicWaiting, "two"), "it ended in between")
	told.Forget(k)
	require.True(t, says(topicWaiting, "two"))
	require.True(t, says(mark.Reload, "one"))
	now = now.Add(dedupe.Interval)
	require.Equal(t, dedupe.Repeat, told.Due(k, topicWaiting, "two"), "it lasts")
}

func TestNotesSayWhatChangedAndFit(t *testing.T) {
	w := &workload.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "w", UID: "u"}, Kind: kinds.KindStatefulSet}
	long := object.Ref{Kind: object.ConfigMap, Namespace: strings.Repeat("n", 63), Name: strings.Repeat("o", 253)}.String()

	event := restarted(w, decide.Decision{Changed: []string{"Secret/ns/a", "Secret/ns/b", "Secret/ns/c"}})
	require.Equal(t, "Restarted, because data that it reads at its start changed: Secret/ns/a, Secret/ns/b and 1 more", event.Note)
	require.Equal(t, "StatefulSet", event.About.Kind)
	require.Equal(t, "apps/v1", event.About.APIVersion)
	require.Equal(t, w.UID, event.About.UID)
	cron := restarted(&workload.Workload{ObjectMeta: metav1.ObjectMeta{Name: "nightly"}, Kind: kinds.KindCronJob}, decide.Decision{Changed: []string{long, long}})
	require.Equal(t, "batch/v1", cron.About.APIVersion)
	require.Contains(t, cron.Note, "No Job is created for the change")
	require.Contains(t, cron.Note, "--from=cronjob/nightly NAME")
	require.Less(t, len(cron.Note), maxNote)
	require.Less(t, len(restarted(w, decide.Decision{Changed: []string{long, long, long}}).Note), maxNote)

	old := mayReadOld(w, "rule", []string{long, long})
	require.True(t, old.Warning)
	require.Contains(t, old.Note, "recreated under its name: "+long+" and 1 more. ")
	require.Less(t, len(old.Note), maxNote)

	require.Contains(t, baselineAdopted(w, decide.Decision{Reason: spec.ReasonOtherKey}).Note, "key")
	require.Contains(t, baselineAdopted(w, decide.Decision{Reason: spec.ReasonUnreadable}).Note, "damaged")

	held := restartHeld(w, decide.Decision{Missing: []string{"Secret/ns/a", "key k of Secret/ns/b"}})
	require.Contains(t, held.Note, "missing objects or keys: Secret/ns/a and 1 more; ")
	key := "key " + strings.Repeat("k", 253) + " of " + long
	require.Less(t, len(restartHeld(w, decide.Decision{Missing: []string{key, key, key}}).Note), maxNote)

	_, faults := optin.ReadPreferences(&metav1.ObjectMeta{Annotations: map[string]string{mark.Reload: strings.Repeat("x", 5000)}}, nil, spec.Settings{})
	unknown := unknownReload(w, faults[0])
	require.True(t, unknown.Warning)
	require.Less(t, len(unknown.Note), maxNote)
	require.Contains(t, unknown.Note, "is ignored: ")
	require.Contains(t, unknownReload(w, optin.Fault{InPart: true}).Note, "is ignored in part: ")
}

func TestNotesSayWhyARestartWaits(t *testing.T) {
	long := object.Ref{Kind: object.ConfigMap, Namespace: strings.Repeat("n", 63), Name: strings.Repeat("o", 253)}.String()
	for reason, want := range map[decide.WaitReason]string{
		decide.WaitOwner:    "until 2026-01-02T03:04:05Z at most, because a rollout in progress may deliver the change to every pod",
		decide.WaitWindow:   "until 2026-01-02T03:04:05Z, when its windows are open next",
		decide.WaitBreaker:  "until 2026-01-02T03:04:05Z, because it was restarted 7 times within an hour",
		decide.WaitInterval: "until 2026-01-02T03:04:05Z, the least time after its last restart",
		decide.WaitRollouts: "until other restarted workloads are rolled out",
	} {
		note := waitNote(decide.Decision{Changed: []string{"Secret/ns/a", "Secret/ns/b"}, Pace: spec.Pace{PerHour: 7}, Wait: decide.Wait{Reason: reason, Until: reloadtest.Birth}})
		require.Contains(t, note, "Restart postponed: Secret/ns/a and 1 more changed; waiting "+want)
		require.Less(t, len(waitNote(decide.Decision{Changed: []string{long, long}, Wait: decide.Wait{Reason: reason, Until: reloadtest.Birth}})), maxNote)
	}
}
