package protect

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/internal/decidetest"
	"github.com/headwater-k8s/headwater/protect/internal/protecttest"
	"github.com/headwater-k8s/headwater/protect/spec"
)

func newTestRecorder(set *rules.Set[spec.Rule]) (recorder, *protecttest.Events, *observer.ObservedLogs) {
	core, logged := observer.New(zapcore.DebugLevel)
	events := &protecttest.Events{}
	return recorder{
		prober:  "prober",
		isKnown: func(request decide.Request) bool { return request.Old != nil },
		rules:   rules.NewLive(set),
		source:  func(object.Ref) (*object.Full, bool) { return protecttest.NewSecret(), true },
		events:  events,
		metrics: newMetrics(prometheus.NewRegistry()),
		log:     zap.New(core),
	}, events, logged
}

func TestRecord(t *testing.T) {
	edit := decidetest.Update(alice, protecttest.NewSecret(), protecttest.NewSecret(protecttest.SetData("other")))
	mode := func(mode spec.Mode) spec.Rule { return protecttest.BlogRule(func(r *spec.Rule) { r.Mode = mode }) }
	for name, tc := range map[string]struct {
		request       decide.Request
		rule          spec.Rule
		lines, events int
		outcome       string
	}{
		"a denial":               {edit, mode(spec.Enforce), 1, 1, "denied"},
		"a denial of a dry run":  {decidetest.With(edit, func(r *decide.Request) { r.DryRun = true }), mode(spec.Enforce), 1, 0, "denied"},
		"a warning":              {edit, mode(spec.Warn), 1, 0, "warned"},
		"an audited violation":   {edit, mode(spec.Audit), 1, 1, "audited"},
		"an audited dry run":     {decidetest.With(edit, func(r *decide.Request) { r.DryRun = true }), mode(spec.Audit), 1, 0, "audited"},
		"a request that may":     {decidetest.With(edit, func(r *decide.Request) { r.User.Groups = []string{"system:masters"} }), mode(spec.Enforce), 0, 0, "allowed"},
		"an unreadable request":  {decidetest.With(edit, func(r *decide.Request) { r.Old = nil }), mode(spec.Enforce), 0, 0, "unconfirmed"},
		"a guarded namespace":    {decidetest.RemoveNamespace(alice, "platform"), mode(spec.Enforce), 1, 1, "denied"},
		"an unprotected request": {decidetest.With(edit, func(r *decide.Request) { r.Kind = "" }), mode(spec.Enforce), 0, 0, "allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			set := rules.NewSet(tc.rule)
			recorder, events, logged := newTestRecorder(set)
			verdict := decide.Decide(tc.request, set, decidetest.NewWorld())
			recorder.record(tc.request, verdict, time.Millisecond)

			require.Equal(t, tc.lines, logged.Len())
			require.Len(t, *events, tc.events)
			require.InDelta(t, 1, testutil.ToFloat64(recorder.metrics.requests.WithLabelValues(
				verdict.Rule, string(tc.request.Operation), tc.outcome, string(verdict.Reason))), 0)
			for _, event := range *events {
				require.Equal(t, "blogsecret", event.About.Name)
				require.EqualValues(t, "uid-1", event.About.UID)
				require.True(t, event.Warning)
				require.NotContains(t, event.Note, protecttest.Canary)
			}
			for _, entry := range logged.All() {
				line, err := json.Marshal(entry.ContextMap())
				require.NoError(t, err)
				require.NotContains(t, string(line), protecttest.Canary)
			}
		})
	}
}

// Who may impersonate somebody, or knows the path of the webhook, chooses names.
func TestNamesOfUsersAreReportedShortAndOnOneLine(t *testing.T) {
	set := rules.NewSet(protecttest.BlogRule())
	recorder, events, logged := newTestRecorder(set)
	name := "alice\nforged\x1b[31m" + strings.Repeat("x", 1<<20)
	for _, about := range []decide.About{"", decide.AboutConfiguration} {
		request := decidetest.Remove(name)
		request.User.Groups = slices.Repeat([]string{name}, 1000)
		verdict := decide.Decide(request, set, decidetest.NewWorld())
		request.Scope.About = about
		recorder.record(request, verdict, 0)
	}
	require.Equal(t, 2, logged.Len())
	for _, entry := range logged.All() {
		line, err := json.Marshal(entry.ContextMap())
		require.NoError(t, err)
		require.Less(t, len(line), 8<<10)
	}
	require.Contains(t, (*events)[0].Note, "by alice forged")
	require.NotContains(t, (*events)[0].Note, "\x1b")
	require.Less(t, len((*events)[0].Note), 1000)
}

func TestRecordOfADenialWithoutARule(t *testing.T) {
	recorder, events, logged := newTestRecorder(rules.NewSet(protecttest.BlogRule()))
	recorder.record(decide.Request{}, decide.Verdict{Reason: decide.ReasonInternalError, Message: "headwater: internal error"}, 0)
	require.Empty(t, *events)
	require.Zero(t, logged.Len(), "others could fill the log")
}

func TestDenialEventSaysWhoAndWhat(t *testing.T) {
	set := rules.NewSet(protecttest.BlogRule())
	recorder, events, _ := newTestRecorder(set)
	recorder.record(decidetest.Remove(alice), decide.Decide(decidetest.Remove(alice), set, decidetest.NewWorld()), 0)
	require.Equal(t, `denied Delete of Secret platform/blogsecret by alice: headwater: Secret platform/blogsecret is protected by rule "blogsecret": `+
		`ClusterRole cluster-admin (through a ClusterRoleBinding) may change it`, (*events)[0].Note)
	require.Equal(t, "Denied", (*events)[0].Reason)
	require.Equal(t, "Delete", (*events)[0].Action)
}
