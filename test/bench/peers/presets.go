package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/headwater-k8s/headwater/test/figures"
)

// The kinds of rows.
const (
	clones    = "clones"
	repairs   = "repairs"
	templates = "templates"
	pods      = "pods"
)

func kinds() []string { return []string{clones, repairs, templates, pods} }

// marks are what a controller wants to see on objects. PREFIX stands for that of
// the run in all that is said of a preset.
type marks map[string]string

// preset is how a controller is configured to do the work.
type preset struct {
	// does are the kinds of rows that it answers for.
	does []string
	// install are the commands of its own documentation that install it.
	install string
	// source goes on the Secret that is to be cloned, namespace on every namespace
	// that is to have a clone, workload on every Deployment and pod that is to
	// follow a Secret.
	source, labels, namespace, workload marks
	// setup is what must be configured beforehand; empty where marks are enough.
	setup string
}

// presets hold facts about controllers, from their documentation.
func presets() map[string]preset {
	return map[string]preset{
		figures.Itself: {does: kinds(), install: headwaterInstall, setup: headwaterSetup},
		"replicator": {
			does: []string{clones, repairs}, install: replicatorInstall,
			source: marks{"replicator.v1.mittwald.de/replicate-to": "PREFIX-t-.*"},
		},
		"reflector": {does: []string{clones, repairs}, install: reflectorInstall, source: marks{
			"reflector.v1.k8s.emberstack.com/reflection-allowed":            "true",
			"reflector.v1.k8s.emberstack.com/reflection-allowed-namespaces": "PREFIX-t-.*",
			"reflector.v1.k8s.emberstack.com/reflection-auto-enabled":       "true",
			"reflector.v1.k8s.emberstack.com/reflection-auto-namespaces":    "PREFIX-t-.*",
		}},
		"kyverno": {does: []string{clones, repairs}, install: kyvernoInstall, setup: kyvernoSetup},
		"reloader": {
			does: []string{templates}, install: reloaderInstall,
			workload: marks{"reloader.stakater.com/auto": "true"},
		},
		"wave": {
			does: []string{templates}, install: waveInstall,
			workload: marks{"wave.pusher.com/update-on-config-change": "true"},
		},
	}
}

func presetNames() []string { return slices.Sorted(maps.Keys(presets())) }

// with is p for a run of that prefix.
func (p preset) with(prefix string) preset {
	fill := func(in marks) marks {
		out := marks{}
		for key, value := range in {
			out[strings.ReplaceAll(key, "PREFIX", prefix)] = strings.ReplaceAll(value, "PREFIX", prefix)
		}
		return out
	}
	p.source, p.labels, p.namespace, p.workload = fill(p.source), fill(p.labels), fill(p.namespace), fill(p.workload)
	p.setup = strings.ReplaceAll(p.setup, "PREFIX", prefix)
	return p
}
