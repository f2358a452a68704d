package reload

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/test/lab"
)

func TestHowLongARestartTookCountsFromTheChangeOfTheSource(t *testing.T) {
	e, namespace := newStage(t, "since")
	e.Deployment(namespace, "web", lab.ByEnv("shared", "used"), nil)
	rule := lab.ReloadRule("since")
	h := e.Start(rule)
	e.Cloned("since", "used", "1")
	stamps := e.Adopted(h, namespace, "web")
	require.Zero(t, e.took(h), "what is put on record was not changed")
	h.Stop()

	e.Change("since", "used", "2")
	changed := time.Now()
	e.SecondLater()
	missed := time.Since(changed)
	h = e.Start(rule)
	e.Restarted(namespace, stamps, "Deployment/web")
	require.GreaterOrEqual(t, e.took(h), missed.Seconds(), "nobody saw the change, but the API server dates it")

	before := e.took(h)
	stamps = e.Stamps(namespace)
	started := time.Now()
	e.Change("since", "used", "3")
	e.Restarted(namespace, stamps, "Deployment/web")
	took := e.took(h) - before
	require.Greater(t, took, 0.0)
	require.LessOrEqual(t, took, time.Since(started).Seconds())
}

var latencySum = regexp.MustCompile(`(?m)^headwater_reload_latency_seconds_sum\{.*\} (\S+)$`)

// took are the seconds that all that was measured took.
func (e *env) took(h *lab.Headwater) float64 {
	e.Helper()
	body, err := h.Metrics(e.Context())
	require.NoError(e, err)
	total := 0.0
	for _, sum := range latencySum.FindAllStringSubmatch(body, -1) {
		seconds, err := strconv.ParseFloat(sum[1], 64)
		require.NoError(e, err)
		total += seconds
	}
	return total
}
