package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// explain prints how to install and configure the controller, what a run sets by
// itself, and the command of the run.
func (o options) explain() string {
	var text strings.Builder
	if o.preset.install != "" {
		_, _ = fmt.Fprintf(&text, "# To install it:\n")
		for line := range strings.Lines(o.preset.install) {
			_, _ = fmt.Fprintf(&text, "#   %s", line)
		}
	}
	if o.preset.setup != "" {
		_, _ = fmt.Fprintf(&text, "%s\n", o.preset.setup)
	}
	for _, one := range []struct {
		where string
		marks marks
	}{
		{fmt.Sprintf("annotations of Secret %s/%s", o.sourceNamespace(), o.shared()), o.preset.source},
		{"labels of that Secret", o.preset.labels},
		{fmt.Sprintf("labels of namespaces %s*", o.targets()), o.preset.namespace},
		{fmt.Sprintf("annotations of Deployments and pods in namespace %s", o.crowdNamespace()), o.preset.workload},
	} {
		for _, key := range slices.Sorted(maps.Keys(one.marks)) {
			_, _ = fmt.Fprintf(&text, "# set by itself, in the %s:\n#   %s: %q\n", one.where, key, one.marks[key])
		}
	}
	if text.Len() == 0 {
		return "# nothing is known of this controller, and no mark was given: -help lists them\n"
	}
	if o.name != "" {
		_, _ = fmt.Fprintf(&text, "# Then measure:\n#   make bench-peers KUBECONFIG=FILE PEERS=\"-for %s\"\n", o.name)
	}
	return text.String()
}

func (o options) sourceNamespace() string { return o.prefix + "-src" }

func (o options) crowdNamespace() string { return o.prefix + "-crowd" }

// targets begins the names of namespaces that get clones.
func (o options) targets() string { return o.prefix + "-t-" }

func (o options) target(i int) string { return fmt.Sprintf("%s%05d", o.targets(), i) }

// shared is the Secret that the controller works on, bare that of the floors.
// Their names are the run's own, so that no other Secret is read.
func (o options) shared() string { return o.prefix + "-shared" }

func (o options) bare() string { return o.prefix + "-bare" }
