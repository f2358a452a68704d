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

// situation is what is measured, and the alert that fires for it. What changes,
// does after an hour.
type situation struct {
	series []string
	seen   time.Duration
	want   string
}

func fires(alert string, series []string) situation {
	return situation{series, 90 * time.Minute, alert}
}

func silent(series []string) situation { return fires("", series) }

func (s situation) at(seen time.Duration) situation { s.seen = seen; return s }

func TestAlertsFireForWhatTheyAreAboutAndNothingElse(t *testing.T) {
	clones := func(state, instance string) string {
		return `headwater_sync_clones{job="headwater", instance="` + instance + `", rule="r", state="` + state + `", reason="x"} 0x60 3x60`
	}
	unsynced := func(state, instance string) string {
		return `headwater_sync_oldest_unsynced_seconds{job="headwater", instance="` + instance + `", rule="r", state="` + state + `"} 0x60 0+60x60`
	}
	fired := map[string]bool{}
	for sentence, test := range map[string]situation{
		"nothing is wrong":                              silent(healthy),
		"no replica answers":                            fires(`HeadwaterDown{}`, but(`up{job="headwater", instance="a"} 1x60 0x60`, `up{job="headwater", instance="b"} 1x60 0x60`)),
		"no replica answers for less than five minutes": silent(but(`up{job="headwater", instance="a"} 1x60 0x60`, `up{job="headwater", instance="b"} 1x60 0x60`)).at(64 * time.Minute),
		"one replica of two is down":                    silent(but(`up{job="headwater", instance="a"} 1x60 0x60`)),
		"it was never scraped":                          fires(`HeadwaterDown{}`, []string{`up{job="other"} 1x120`}),
		"nobody leads":                                  fires(`HeadwaterNoLeader{}`, but(`headwater_leader{job="headwater", instance="a"} 1x60 0x60`)),
		"the leader changes again and again":            fires(`HeadwaterLeaderFlapping{}`, but(`headwater_leader{job="headwater", instance="a"} 1x95 0x2 1x2 0x2 1x2 0x2 1x2 0x2 1x2 0x2`)).at(115 * time.Minute),
		"another leads":                                 silent(but(`headwater_leader{job="headwater", instance="a"} 1x60 0x60`, `headwater_leader{job="headwater", instance="b"} 0x61 1x59`)),
		"the file is not valid":                         fires(`HeadwaterConfigInvalid{}`, but(`headwater_config_valid{job="headwater", instance="a"} 1x60 0x60`)),
		"the file is held":                              fires(`HeadwaterRulesHeld{}`, but(`headwater_config_valid{job="headwater", instance="a"} 1x60 0x60`, `headwater_config_held{job="headwater", instance="a"} 0x60 1x60`)),
		"a watch is lost":                               fires(`HeadwaterNotWatching{}`, but(`headwater_unwatched{job="headwater", instance="b"} 0x60 1x60`)),
		"RuleStatuses cannot be written":                fires(`HeadwaterRuleStatusesOld{}`, but(`headwater_rulestatus_doubtful{job="headwater", instance="a"} 0x60 1x60`)),
		"a rollout does not end":                        fires(`HeadwaterVersionsDiffer{}`, but(`headwater_build_info{job="headwater", instance="b", version="1", commit="c"} 1x20`, `headwater_build_info{job="headwater", instance="b", version="2", commit="d"} _x20 1x100`)),
		// Only who writes knows that it failed.
		"clones fail":                                       fires(`HeadwaterClonesFailing{rule="r"}`, but(clones("failed", "a"), clones("behind", "b"))),
		"a clone is behind, and stays it":                   fires(`HeadwaterClonesBehind{rule="r"}`, but(unsynced("behind", "a"))),
		"a clone drifts, and nobody heals it":               fires(`HeadwaterClonesBehind{rule="r"}`, but(unsynced("drifting", "a"))),
		"a clone fails for long, which another alert tells": silent(but(unsynced("failed", "a"))),
		"admission changes a clone":                         fires(`HeadwaterAdmissionChanges{rule="r"}`, but(`headwater_sync_clones{job="headwater", instance="a", rule="r", state="fighting", reason="AdmissionChanges"} 0x60 1x60`)),
		"a clone is fought over":                            fires(`HeadwaterClonesFighting{rule="r"}`, but(clones("fighting", "a"))),
		"a fight lasts long, which another alert tells":     silent(but(unsynced("fighting", "a"))),
		"a replica that does not lead saw nothing happen":   silent(but(unsynced("behind", "b"))),
		"clones are changed again and again":                fires(`HeadwaterManyHeals{rule="r"}`, but(`headwater_sync_heals_total{job="headwater", instance="a", rule="r", cause="edited"} 0+4x120`)),
		"at each look others are behind":                    silent(but(`headwater_sync_oldest_unsynced_seconds{job="headwater", instance="a", rule="r", state="behind"} 0x60 5x60`, clones("behind", "a"))),
		"a rule has no source":                              fires(`HeadwaterSourceMissing{rule="r"}`, but(`headwater_sync_sources_missing{job="headwater", instance="a", rule="r"} 0x60 1x60`)),
		"a source is recreated":                             silent(but(`headwater_sync_sources_missing{job="headwater", instance="a", rule="r"} 0x60 1x5 0x55`)),
		"who does not lead sees no source yet":              silent(but(`headwater_sync_sources_missing{job="headwater", instance="b", rule="r"} 0x60 1x60`)),
		"a revision was rejected":                           fires(`HeadwaterDeliveryFailed{rule="r", verdict="Rejected"}`, but(`headwater_delivery_sources{job="headwater", instance="a", rule="r", verdict="Rejected"} 0x60 1x60`)),
		"a delivery waits for an approval":                  fires(`HeadwaterDeliveryWaits{for="Approval", rule="r"}`, but(`headwater_delivery_waits{job="headwater", instance="a", rule="r", for="Approval"} 0x60 1x60`)).at(95 * time.Minute),
		"a revision is on its way":                          silent(but(`headwater_delivery_sources{job="headwater", instance="a", rule="r", verdict="Delivering"} 1x120`)),
		"removals are held":                                 fires(`HeadwaterClonesHeld{rule="r"}`, but(clones("held", "a"))),
		"a place is taken":                                  fires(`HeadwaterConflicts{rule="r"}`, but(clones("conflict", "a"))).at(100 * time.Minute),
		"a source must not be cloned":                       fires(`HeadwaterClonesRefused{rule="r"}`, but(clones("refused", "a"))).at(100 * time.Minute),
		"a clone is retained":                               silent(but(clones("retained", "a"))),
		"changes arrive late": fires(`HeadwaterPropagationSlow{rule="r"}`, but(`headwater_sync_propagation_seconds_bucket{job="headwater", instance="a", rule="r", le="0.5"} 0x120`,
			`headwater_sync_propagation_seconds_bucket{job="headwater", instance="a", rule="r", le="81.92"} 0x120`,
			`headwater_sync_propagation_seconds_bucket{job="headwater", instance="a", rule="r", le="163.84"} 0+10x120`)),
		"a worker hangs":                             fires(`HeadwaterWorkStuck{queue="sync"}`, but(`headwater_queue_longest_running_seconds{job="headwater", instance="a", queue="sync"} 0x60 0+60x60`)),
		"a rule that is not seen to protect":         fires(`HeadwaterProtectionNotProven{rule="r"}`, but(`headwater_protection_proven{job="headwater", instance="a", rule="r"} 1x80 0x40`)),
		"somebody changed the webhook configuration": fires(`HeadwaterProtectionRepaired{kind="ValidatingWebhookConfiguration"}`, but(`headwater_protection_tampered_total{job="headwater", instance="a", kind="ValidatingWebhookConfiguration"} 0x80 1x40`)),
		"a certificate was not renewed":              fires(`HeadwaterCertificateExpires{certificate="serving"}`, but(`headwater_protection_certificate_expiry_timestamp_seconds{job="headwater", instance="a", certificate="serving"} 864000x120`)),
		"the Secret with a certificate was broken":   fires(`HeadwaterCertificateInvalid{}`, but(`headwater_protection_certificate_valid{job="headwater", instance="b"} 1x60 0x60`)),
		"it was, for a moment":                       silent(but(`headwater_protection_certificate_valid{job="headwater", instance="b"} 1x60 0x9 1x50`)),
		"reviews are slow": fires(`HeadwaterReviewsSlow{}`, but(`headwater_protect_request_seconds_bucket{job="headwater", instance="a", le="0.00025"} 0x120`,
			`headwater_protect_request_seconds_bucket{job="headwater", instance="a", le="0.38"} 0+1x120`)),
		"somebody is refused again and again":      fires(`HeadwaterManyRefusals{rule="r"}`, but(`headwater_protect_requests_total{job="headwater", instance="a", rule="r", operation="UPDATE", verdict="denied", reason="NotExempt"} 0+4x120`)),
		"what a workload needs is missing":         fires(`HeadwaterRestartsLackData{}`, but(`headwater_reload_waiting{job="headwater", instance="a", reason="missing"} 0x60 2x60`)),
		"workloads were restarted too often":       fires(`HeadwaterRestartsHeld{}`, but(`headwater_reload_waiting{job="headwater", instance="a", reason="breaker"} 0x80 2x40`)),
		"a restart broke a workload":               fires(`HeadwaterRolloutsStuck{reason="CrashLoopBackOff", rule="r"}`, but(`headwater_reload_rollouts_stuck{job="headwater", instance="a", rule="r", reason="CrashLoopBackOff"} 0x60 3x60`)),
		"restarts wait for others to roll out":     fires(`HeadwaterRestartsWait{reason="rollouts"}`, but(`headwater_reload_waiting{job="headwater", instance="a", reason="rollouts"} 0x50 9x70`)),
		"restarts wait for their turn, and get it": silent(but(`headwater_reload_waiting{job="headwater", instance="a", reason="rollouts"} 0x50 9x20 0x50`)),
	} {
		t.Run(sentence, func(t *testing.T) {
			firing := ""
			for _, alert := range alerts(t) {
				for _, labels := range newDatabase(t, test.series...).firing(t, alert, test.seen) {
					firing += alert.Alert + labels.String()
				}
			}
			require.Equal(t, test.want, firing)
		})
		alert, _, _ := strings.Cut(test.want, "{")
		fired[alert] = true
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
