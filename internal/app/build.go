package app

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
)

// Set by the linker.
var (
	Version = "dev"
	Commit  = "unknown"
)

// BuildInfo says what this binary was built from.
type BuildInfo struct {
	Version   string `json:"version"`
	Commit    string `json:"commit"`
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
}

// Build returns what this binary was built from.
func Build() BuildInfo {
	return BuildInfo{
		Version: Version, Commit: Commit, GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
}

// buildInfo is a metric to join others with, and to see a rollout by.
func buildInfo() prometheus.Collector {
	build := Build()
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "headwater_build_info", Help: "1; the labels say what this binary was built from.",
		ConstLabels: prometheus.Labels{"version": build.Version, "commit": build.Commit, "go_version": build.GoVersion},
	}, func() float64 { return 1 })
}
