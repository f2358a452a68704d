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
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync/delivery"
	"github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

func TestThePageIsToldHowFarADeliveryCame(t *testing.T) {
	const value = "c4n4ry"
	since, later := time.Unix(1000, 0).UTC(), time.Unix(2000, 0).UTC()
	config := spec.Config{Delivery: &spec.Delivery{
		Stages: []spec.Stage{{Name: "canary", Percent: 10, Soak: metav1.Duration{Duration: time.Minute}, Approval: true}},
		Gate:   spec.Gate{MaxUnhealthy: intstr.FromInt32(2)},
	}}
	config.Default()
	source := object.Ref{Kind: object.Secret, Namespace: "platform", Name: "s"}
	rule, err := spec.Compile(rules.Base{Name: "blog", Source: rules.Source{Kind: source.Kind, Namespace: source.Namespace, Name: source.Name}}, config, "own")
	require.NoError(t, err)
	revision := func(number int, verdict delivery.Verdict, change func(*delivery.Revision)) *delivery.Revision {
		r := &delivery.Revision{
			Number: number, Verdict: verdict, EditedBy: "kubectl", Recorded: since,
			Content: object.Content{Data: map[string][]byte{"password": []byte(value)}},
		}
		if change != nil {
			change(r)
		}
		return r
	}
	candidate := revision(2, delivery.Delivering, func(r *delivery.Revision) { r.Stage, r.StageSince = "canary", since })
	soaking := revision(2, delivery.Delivering, func(r *delivery.Revision) { r.Stage, r.StageSince, r.HealthySince = "canary", since, since })
	paused := revision(2, delivery.Delivering, func(r *delivery.Revision) { r.Stage, r.Paused = "canary", "by jane" })
	stable := revision(1, delivery.Delivered, nil)
	rejected := revision(2, delivery.Rejected, func(r *delivery.Revision) { r.Reason = "stage canary: too bad" })
	pinned := revision(1, delivery.Delivered, func(r *delivery.Revision) { r.Pinned = "by jane" })
	for sentence, test := range map[string]struct {
		latest, wanted, stable *delivery.Revision
		step                   delivery.Step
		want                   page.Delivery
	}{
		"waits for its gate": {
			candidate, candidate, stable,
			delivery.Step{Outcome: delivery.Wait, Until: later, Reason: "1 namespace not ready: a"},
			page.Delivery{Revision: 2, Verdict: "Delivering", Stage: "canary", StageSince: since, Wanted: 2, Stable: 1, FailsAt: later, Waits: "1 namespace not ready: a"},
		},
		"its gate holds from now on": {
			candidate, candidate, stable,
			delivery.Step{Outcome: delivery.GateHolds, Until: later},
			page.Delivery{Revision: 2, Verdict: "Delivering", Stage: "canary", StageSince: since, Wanted: 2, Stable: 1, SoaksUntil: later},
		},
		"soaks": {
			soaking, soaking, stable,
			delivery.Step{Outcome: delivery.Wait, Until: later, Reason: "soaking until then"},
			page.Delivery{Revision: 2, Verdict: "Delivering", Stage: "canary", StageSince: since, Wanted: 2, Stable: 1, SoaksUntil: later},
		},
		"waits for a person": {
			soaking, soaking, stable,
			delivery.Step{Outcome: delivery.Wait, Reason: "waits for `headwater promote blog`"},
			page.Delivery{Revision: 2, Verdict: "Delivering", Stage: "canary", StageSince: since, Wanted: 2, Stable: 1, Waits: "waits for `headwater promote blog`"},
		},
		"is paused": {
			paused, paused, stable,
			delivery.Step{Outcome: delivery.Wait, Reason: "paused by jane"},
			page.Delivery{Revision: 2, Verdict: "Delivering", Stage: "canary", Wanted: 2, Stable: 1, Paused: "by jane", Waits: "paused by jane"},
		},
		"was rejected": {
			rejected, stable, stable,
			delivery.Step{},
			page.Delivery{Revision: 2, Verdict: "Rejected", Reason: "stage canary: too bad", Wanted: 1, Stable: 1},
		},
		"somebody rolled back": {
			revision(2, delivery.Delivered, nil), pinned, revision(2, delivery.Delivered, nil),
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
				Stages: []survey.StageState{{Name: "canary", Namespaces: 3, HaveWanted: 2, Healthy: 1, Unhealthy: 2}, {Name: "rest", Namespaces: 9}},
			})
			test.want.Rule, test.want.Source, test.want.EditedBy, test.want.Recorded = "blog", "Secret/platform/s", "kubectl", since
			test.want.Gate = "consumers are healthy, but for 2 namespaces at most, within 30m"
			test.want.Stages = []page.Stage{{Name: "canary", Namespaces: 3, Have: 2, Healthy: 1, Unhealthy: 2, Soak: 60, Approval: true}, {Name: "rest", Namespaces: 9}}
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
			gate := spec.Gate{Consumers: spec.GateHealthy, Timeout: metav1.Duration{Duration: 30 * time.Minute}, MaxUnhealthy: test.tolerated}
			require.Equal(t, test.want, gateInWords(gate))
		})
	}
}
