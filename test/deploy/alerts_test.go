package deploy

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/stretchr/testify/require"
)

// healthy is what Prometheus has of two replicas, scraped for two hours, that
// have nothing to complain of.
var healthy = []string{
	`up{job="headwater", instance="a"} 1x120`,
	`up{job="headwater", instance="b"} 1x120`,
	`headwater_leader{job="headwater", instance="a"} 1x120`,
	`headwater_leader{job="headwater", instance="b"} 0x120`,
	`headwater_config_valid{job="headwater", instance="a"} 1x120`,
	`headwater_build_info{job="headwater", instance="a", version="1", commit="c"} 1x120`,
	`headwater_build_info{job="headwater", instance="b", version="1", commit="c"} 1x120`,
	`headwater_sync_clones{job="headwater", instance="a", rule="r", state="current", reason="InSync"} 10x120`,
	`headwater_sync_clones{job="headwater", instance="b", rule="r", state="current", reason="InSync"} 10x120`,
	`headwater_sync_sources_missing{job="headwater", instance="a", rule="r"} 0x120`,
	`headwater_sync_sources_missing{job="headwater", instance="b", rule="r"} 0x120`,
	`headwater_sync_oldest_unsynced_seconds{job="headwater", instance="a", rule="r", state="behind"} 0x120`,
	`headwater_sync_oldest_unsynced_seconds{job="headwater", instance="b", rule="r", state="behind"} 0x120`,
	`headwater_sync_heals_total{job="headwater", instance="a", rule="r", cause="edited"} 0+1x120`,
	`headwater_sync_propagation_seconds_bucket{job="headwater", instance="a", rule="r", le="0.5"} 0+10x120`,
	`headwater_sync_propagation_seconds_bucket{job="headwater", instance="a", rule="r", le="+Inf"} 0+10x120`,
	`headwater_queue_longest_running_seconds{job="headwater", instance="a", queue="sync"} 0x120`,
	`headwater_protection_proven{job="headwater", instance="a", rule="r"} 1x120`,
	`headwater_protection_tampered_total{job="headwater", instance="a", kind="ValidatingWebhookConfiguration"} 0x120`,
	`headwater_protection_certificate_expiry_timestamp_seconds{job="headwater", instance="a", certificate="serving"} 31536000x120`,
	`headwater_protection_certificate_valid{job="headwater", instance="a"} 1x120`,
	`headwater_protection_certificate_valid{job="headwater", instance="b"} 1x120`,
	`headwater_protect_request_seconds_bucket{job="headwater", instance="a", le="0.00025"} 0+1x120`,
	`headwater_protect_request_seconds_bucket{job="headwater", instance="a", le="+Inf"} 0+1x120`,
	`headwater_protect_requests_total{job="headwater", instance="a", rule="r", operation="UPDATE", verdict="denied", reason="NotExempt"} 0x120`,
	`headwater_reload_rollouts_stuck{job="headwater", instance="a", rule="r", reason="CrashLoopBackOff"} 0x120`,
	`headwater_reload_waiting{job="headwater", instance="a", reason="breaker"} 0x120`,
	`headwater_reload_waiting{job="headwater", instance="a", reason="missing"} 0x120`,
	`headwater_reload_waiting{job="headwater", instance="a", reason="rollouts"} 0x120`,
	`headwater_reload_waiting{job="headwater", instance="a", reason="window"} 7x120`, // they are to wait
	`headwater_reload_waiting{job="headwater", instance="b", reason="breaker"} 0x120`,
}

// but returns the healthy series with others in the place of some: those of the
// same name and labels.
func but(others ...string) []string {
	var all []string
	replaced := map[string]bool{}
	for _, other := range others {
		replaced[name(other)] = true
	}
	for _, series := range healthy {
		if !replaced[name(series)] {
			all = append(all, series)
		}
	}
	return append(all, others...)
}

func name(series string) string { return series[:strings.Index(series, "}")+1] }

func alerts(t *testing.T) []rulefmt.Rule {
	t.Helper()
	groups, problems := rulefmt.ParseFile(deployDir+"/alerts/headwater.yaml", false, model.UTF8Validation)
	require.Empty(t, problems)
	var all []rulefmt.Rule
	for _, group := range groups.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

func TestAlertsFireForWhatTheyAreAboutAndNothingElse(t *testing.T) {
	clones := func(state, instance string) string {
		return `headwater_sync_clones{job="headwater", instance="` + instance + `", rule="r", state="` + state + `", reason="x"} 0x60 3x60`
	}
	unsynced := func(state, instance string) string {
		return `headwater_sync_oldest_unsynced_seconds{job="headwater", instance="` + instance + `", rule="r", state="` + state + `"} 0x60 0+60x60`
	}
	fired := map[string]bool{}
	for sentence, test := range map[string]struct {
		series []string
		at     time.Duration // by default an hour and a half; what changes, does after an hour
		want   map[string]string
	}{
		"nothing is wrong": {series: healthy},
		"no replica answers": {
			series: but(`up{job="headwater", instance="a"} 1x60 0x60`, `up{job="headwater", instance="b"} 1x60 0x60`),
			want:   map[string]string{"HeadwaterDown": `{}`},
		},
		"no replica answers for less than five minutes": {
			series: but(`up{job="headwater", instance="a"} 1x60 0x60`, `up{job="headwater", instance="b"} 1x60 0x60`),
			at:     64 * time.Minute,
		},
		"one replica of two is down": {series: but(`up{job="headwater", instance="a"} 1x60 0x60`)},
		"it was never scraped":       {series: []string{`up{job="other"} 1x120`}, want: map[string]string{"HeadwaterDown": `{}`}},
		"nobody leads": {
			series: but(`headwater_leader{job="headwater", instance="a"} 1x60 0x60`),
			want:   map[string]string{"HeadwaterNoLeader": `{}`},
		},
		"another leads": {series: but(`headwater_leader{job="headwater", instance="a"} 1x60 0x60`, `headwater_leader{job="headwater", instance="b"} 0x61 1x59`)},
		"the file is not valid": {
			series: but(`headwater_config_valid{job="headwater", instance="a"} 1x60 0x60`),
			want:   map[string]string{"HeadwaterConfigInvalid": `{}`},
		},
		"a rollout does not end": {
			series: but(`headwater_build_info{job="headwater", instance="b", version="1", commit="c"} 1x20`, `headwater_build_info{job="headwater", instance="b", version="2", commit="d"} _x20 1x100`),
			want:   map[string]string{"HeadwaterVersionsDiffer": `{}`},
		},
		"clones fail": {
			series: but(clones("failed", "a"), clones("behind", "b")), // only who writes knows that it failed
			want:   map[string]string{"HeadwaterClonesFailing": `{rule="r"}`},
		},
		"a clone is behind, and stays it": {
			series: but(unsynced("behind", "a")),
			want:   map[string]string{"HeadwaterClonesBehind": `{rule="r"}`},
		},
		"a clone drifts, and nobody heals it": {
			series: but(unsynced("drifting", "a")),
			want:   map[string]string{"HeadwaterClonesBehind": `{rule="r"}`},
		},
		"a clone fails for long, which another alert tells": {series: but(unsynced("failed", "a"))},
		"a clone is fought over":                            {series: but(clones("fighting", "a")), want: map[string]string{"HeadwaterClonesFighting": `{rule="r"}`}},
		"a fight lasts long, which another alert tells":     {series: but(unsynced("fighting", "a"))},
		"a replica that does not lead saw nothing happen":   {series: but(unsynced("behind", "b"))},
		"clones are changed again and again": {
			series: but(`headwater_sync_heals_total{job="headwater", instance="a", rule="r", cause="edited"} 0+4x120`),
			want:   map[string]string{"HeadwaterManyHeals": `{rule="r"}`},
		},
		"at each look others are behind": {
			series: but(`headwater_sync_oldest_unsynced_seconds{job="headwater", instance="a", rule="r", state="behind"} 0x60 5x60`, clones("behind", "a")),
		},
		"a rule has no source": {
			series: but(`headwater_sync_sources_missing{job="headwater", instance="a", rule="r"} 0x60 1x60`),
			want:   map[string]string{"HeadwaterSourceMissing": `{rule="r"}`},
		},
		"a source is recreated": {
			series: but(`headwater_sync_sources_missing{job="headwater", instance="a", rule="r"} 0x60 1x5 0x55`),
		},
		"who does not lead sees no source yet": {
			series: but(`headwater_sync_sources_missing{job="headwater", instance="b", rule="r"} 0x60 1x60`),
		},
		"a revision was rejected": {
			series: but(`headwater_delivery_sources{job="headwater", instance="a", rule="r", verdict="Rejected"} 0x60 1x60`),
			want:   map[string]string{"HeadwaterDeliveryFailed": `{rule="r", verdict="Rejected"}`},
		},
		"a revision is on its way": {series: but(`headwater_delivery_sources{job="headwater", instance="a", rule="r", verdict="Delivering"} 1x120`)},
		"removals are held":        {series: but(clones("held", "a")), want: map[string]string{"HeadwaterClonesHeld": `{rule="r"}`}},
		"a place is taken":         {series: but(clones("conflict", "a")), at: 100 * time.Minute, want: map[string]string{"HeadwaterConflicts": `{rule="r"}`}},
		"a clone is retained":      {series: but(clones("retained", "a"))},
		"changes arrive late": {
			series: but(`headwater_sync_propagation_seconds_bucket{job="headwater", instance="a", rule="r", le="0.5"} 0x120`,
				`headwater_sync_propagation_seconds_bucket{job="headwater", instance="a", rule="r", le="81.92"} 0x120`,
				`headwater_sync_propagation_seconds_bucket{job="headwater", instance="a", rule="r", le="163.84"} 0+10x120`),
			want: map[string]string{"HeadwaterPropagationSlow": `{rule="r"}`},
		},
		"a worker hangs": {
			series: but(`headwater_queue_longest_running_seconds{job="headwater", instance="a", queue="sync"} 0x60 0+60x60`),
			want:   map[string]string{"HeadwaterWorkStuck": `{queue="sync"}`},
		},
		"a rule that is not seen to protect": {
			series: but(`headwater_protection_proven{job="headwater", instance="a", rule="r"} 1x80 0x40`),
			want:   map[string]string{"HeadwaterProtectionNotProven": `{rule="r"}`},
		},
		"somebody changed the webhook configuration": {
			series: but(`headwater_protection_tampered_total{job="headwater", instance="a", kind="ValidatingWebhookConfiguration"} 0x80 1x40`),
			want:   map[string]string{"HeadwaterProtectionRepaired": `{kind="ValidatingWebhookConfiguration"}`},
		},
		"a certificate was not renewed": {
			series: but(`headwater_protection_certificate_expiry_timestamp_seconds{job="headwater", instance="a", certificate="serving"} 864000x120`),
			want:   map[string]string{"HeadwaterCertificateExpires": `{certificate="serving"}`},
		},
		"the Secret with a certificate was broken": {
			series: but(`headwater_protection_certificate_valid{job="headwater", instance="b"} 1x60 0x60`),
			want:   map[string]string{"HeadwaterCertificateInvalid": `{}`},
		},
		"it was, for a moment": {
			series: but(`headwater_protection_certificate_valid{job="headwater", instance="b"} 1x60 0x9 1x50`),
		},
		"reviews are slow": {
			series: but(`headwater_protect_request_seconds_bucket{job="headwater", instance="a", le="0.00025"} 0x120`,
				`headwater_protect_request_seconds_bucket{job="headwater", instance="a", le="0.38"} 0+1x120`),
			want: map[string]string{"HeadwaterReviewsSlow": `{}`},
		},
		"somebody is refused again and again": {
			series: but(`headwater_protect_requests_total{job="headwater", instance="a", rule="r", operation="UPDATE", verdict="denied", reason="NotExempt"} 0+4x120`),
			want:   map[string]string{"HeadwaterManyRefusals": `{rule="r"}`},
		},
		"what a workload needs is missing": {
			series: but(`headwater_reload_waiting{job="headwater", instance="a", reason="missing"} 0x60 2x60`),
			want:   map[string]string{"HeadwaterRestartsLackData": `{}`},
		},
		"workloads were restarted too often": {
			series: but(`headwater_reload_waiting{job="headwater", instance="a", reason="breaker"} 0x80 2x40`),
			want:   map[string]string{"HeadwaterRestartsHeld": `{}`},
		},
		"a restart broke a workload": {
			series: but(`headwater_reload_rollouts_stuck{job="headwater", instance="a", rule="r", reason="CrashLoopBackOff"} 0x60 3x60`),
			want:   map[string]string{"HeadwaterRolloutsStuck": `{reason="CrashLoopBackOff", rule="r"}`},
		},
		"restarts wait for others to roll out": {
			series: but(`headwater_reload_waiting{job="headwater", instance="a", reason="rollouts"} 0x50 9x70`),
			want:   map[string]string{"HeadwaterRestartsWait": `{reason="rollouts"}`},
		},
		"restarts wait for their turn, and get it": {
			series: but(`headwater_reload_waiting{job="headwater", instance="a", reason="rollouts"} 0x50 9x20 0x50`),
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			at := test.at
			if at == 0 {
				at = 90 * time.Minute
			}
			firing := map[string]string{}
			for _, alert := range alerts(t) {
				for _, labels := range newDatabase(t, test.series...).firing(t, alert, at) {
					firing[alert.Alert] += labels.String()
				}
			}
			if test.want == nil {
				test.want = map[string]string{}
			}
			require.Equal(t, test.want, firing)
		})
		for alert := range test.want {
			fired[alert] = true
		}
	}
	for _, alert := range alerts(t) {
		require.True(t, fired[alert.Alert], "nothing shows that %s fires", alert.Alert)
	}
}

// An alert that wakes somebody tells them what to do.
func TestEveryAlertHasARunbook(t *testing.T) {
	runbooks, err := os.ReadFile(deployDir + "/RUNBOOKS.md")
	require.NoError(t, err)
	headings := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(string(runbooks), -1) {
		headings[heading[1]] = true
	}
	for _, alert := range alerts(t) {
		require.Contains(t, headings, alert.Alert, "no heading in RUNBOOKS.md")
		delete(headings, alert.Alert)
		require.Contains(t, []string{"critical", "warning", "info"}, alert.Labels["severity"], alert.Alert)
		require.NotEmpty(t, alert.Annotations["summary"], alert.Alert)
		require.NotEmpty(t, alert.Annotations["description"], alert.Alert)
		require.Equal(t, "https://github.com/headwater-k8s/headwater/blob/main/deploy/RUNBOOKS.md#"+strings.ToLower(alert.Alert),
			alert.Annotations["runbook_url"])
	}
	require.Empty(t, headings, "headings without an alert")
}
