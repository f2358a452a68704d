package app

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/page"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/internal/stages"
	"github.com/headwater-k8s/headwater/sync/delivery"
	"github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

func TestThePageIsToldHowFarADeliveryCame(t *testing.T) {
	const value = "c4n4ry"
	since, later := time.Unix(1000, 0).UTC(), time.Unix(2000, 0).UTC()
	config := spec.Config{Delivery: &stages.Delivery{
		Stages: []stages.Stage{{Name: "canary", Percent: 10, Soak: &metav1.Duration{Duration: time.Minute}, Approval: true}},
		Rest:   stages.Rest{Soak: &metav1.Duration{}},
		Gate:   stages.Gate{MaxUnhealthy: new(intstr.FromInt32(2))},
	}}
	config.Default()
	source := object.Ref{Kind: object.Secret, Namespace: "platform", Name: "s"}
	rule, err := spec.Compile(rules.Base{Name: "blog", Source: rules.Source{Kind: source.Kind, Namespace: source.Namespace, Name: source.Name}}, config, "own")
	require.NoError(t, err)
	revision := func(number int, verdict revisions.Verdict, change func(*revisions.Revision)) *revisions.Revision {
		r := &revisions.Revision{
			Number: number, Verdict: verdict, EditedBy: "kubectl", Recorded: since,
			Content: object.Content{Data: map[string][]byte{"password": []byte(value)}},
		}
		if change != nil {
			change(r)
		}
		return r
	}
	candidate := revision(2, revisions.Delivering, func(r *revisions.Revision) { r.Stage, r.StageSince = "canary", since })
	left := later.Sub(since)
	step := func(state delivery.State, left time.Duration, reason string) delivery.Step {
		return delivery.Step{Outcome: delivery.Wait, Observation: delivery.Observation{Judged: delivery.Judged{State: state, Reason: reason}}, Left: left}
	}
	paused := revision(2, revisions.Delivering, func(r *revisions.Revision) { r.Stage, r.Paused = "canary", "by jane" })
	stable := revision(1, revisions.Delivered, nil)
	rejected := revision(2, revisions.Rejected, func(r *revisions.Revision) { r.Reason = "stage canary: too bad" })
	pinned := revision(1, revisions.Delivered, func(r *revisions.Revision) { r.Pinned = "by jane" })
	for sentence, test := range map[string]struct {
		latest, wanted, stable *revisions.Revision
		step                   delivery.Step
		want                   page.Delivery
	}{
		"waits for consumers": {
			candidate, candidate, stable, step(delivery.Waiting, left, "waits for 1 consumer"),
			page.Delivery{Revision: 2, Verdict: "Delivering", Stage: "canary", StageSince: since, Wanted: 2, Stable: 1, FailsAt: later, Waits: "waits for 1 consumer"},
		},
		"waits for evidence": {
			candidate, candidate, stable, step(delivery.Lacking, left, "no evidence"),
			page.Delivery{Revision: 2, Verdict: "Delivering", Stage: "canary", StageSince: since, Wanted: 2, Stable: 1, Waits: "no evidence"},
		},
		"soaks": {
			candidate, candidate, stable, step(delivery.Holding, left, "healthy for 1m of 2m"),
			page.Delivery{Revision: 2, Verdict: "Delivering", Stage: "canary", StageSince: since, Wanted: 2, Stable: 1, SoaksUntil: later},
		},
		"waits for a person": {
			candidate, candidate, stable, step(delivery.Holding, 0, "waits for `headwater promote blog`"),
			page.Delivery{Revision: 2, Verdict: "Delivering", Stage: "canary", StageSince: since, Wanted: 2, Stable: 1, Waits: "waits for `headwater promote blog`"},
		},
		"is paused": {
			paused, paused, stable, step(delivery.Holding, 0, "paused by jane"),
			page.Delivery{Revision: 2, Verdict: "Delivering", Stage: "canary", Wanted: 2, Stable: 1, Paused: "by jane", Waits: "paused by jane"},
		},
		"was rejected": {
			rejected, stable, stable,
			delivery.Step{},
			page.Delivery{Revision: 2, Verdict: "Rejected", Reason: "stage canary: too bad", Wanted: 1, Stable: 1},
		},
		"somebody rolled back": {
			revision(2, revisions.Delivered, nil), pinned, revision(2, revisions.Delivered, nil),
			delivery.Step{},
			page.Delivery{Revision: 2, Verdict: "Delivered", Wanted: 1, Stable: 2, RolledBack: "by jane"},
		},
		"nothing was ever delivered": {
			rejected, nil, nil,
			delivery.Step{},
			page.Delivery{Revision: 2, Verdict: "Rejected", Reason: "stage canary: too bad"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := deliveryOf(&rule, survey.DeliveryState{
				Source: source, Latest: test.latest, Wanted: test.wanted, Stable: test.stable, Step: test.step,
				Stages: []survey.StageState{
					{Name: "canary", Namespaces: 3, HaveWanted: 2, Evidence: revisions.StageEvidence{Ran: 1, Refreshed: 2, Waiting: 1, Failed: 2}}, {Name: "rest", Namespaces: 9},
				},
			}, since)
			test.want.Rule, test.want.Source, test.want.EditedBy, test.want.Recorded = "blog", "Secret/platform/s", "kubectl", since
			test.want.Gate = "consumers are healthy, but for 2 namespaces at most, within 30m"
			test.want.Stages = []page.Stage{{Name: "canary", Namespaces: 3, Have: 2, Healthy: 3, Pending: 1, Unhealthy: 2, Soak: 60, Approval: true}, {Name: "rest", Namespaces: 9}}
			require.Equal(t, test.want, got)
			sent, err := json.Marshal(got)
			require.NoError(t, err)
			require.NotContains(t, string(sent), value)
		})
	}
}

func TestThePageSaysHowManyNamespacesMayBeUnhealthy(t *testing.T) {
	for sentence, test := range map[string]struct {
		tolerated intstr.IntOrString
		want      string
	}{
		"none":         {intstr.FromInt32(0), "consumers are healthy, within 30m"},
		"one":          {intstr.FromInt32(1), "consumers are healthy, but for 1 namespace at most, within 30m"},
		"some percent": {intstr.FromString("5%"), "consumers are healthy, but for 5% of the namespaces at most, within 30m"},
	} {
		t.Run(sentence, func(t *testing.T) {
			gate := stages.Gate{Consumers: stages.GateHealthy, Timeout: metav1.Duration{Duration: 30 * time.Minute}, MaxUnhealthy: &test.tolerated}
			require.Equal(t, test.want, gateInWords(gate))
		})
	}
}
