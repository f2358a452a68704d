package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/headwater-k8s/headwater/test/figures"
)

type options struct {
	kubeconfig, context, yes      string
	prefix, name, node, image     string
	out, figures, version         string
	clones, rounds, samples       int
	within                        time.Duration
	print                         bool
	preset                        preset
	only                          string
	source, labels, spaces, works marks
}

// Set implements flag.Value.
func (m *marks) Set(text string) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok || key == "" {
		return fmt.Errorf("%q: it must be KEY=VALUE", text)
	}
	if *m == nil {
		*m = marks{}
	}
	(*m)[key] = value
	return nil
}

// String implements flag.Value.
func (m *marks) String() string { return "" }

func parse() (o options, err error) {
	flag.StringVar(&o.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "the cluster")
	flag.StringVar(&o.context, "context", "", "the context of it, by default the current one")
	flag.StringVar(&o.yes, "yes-this-cluster", "", "the context's name, to load a cluster that is not on this machine")
	flag.StringVar(&o.name, "for", "", "the controller that runs there, as far as its marks are known: "+strings.Join(presetNames(), ", "))
	flag.BoolVar(&o.print, "print", false, "print how to install and configure that controller, and do nothing")
	flag.StringVar(&o.prefix, "prefix", "bench-peers", "begins the names of all namespaces; PREFIX stands for it in marks")
	flag.Var(&o.source, "source-annotation", "KEY=VALUE on the Secret that is to be cloned; may be repeated, as all marks may")
	flag.Var(&o.labels, "source-label", "KEY=VALUE on it")
	flag.Var(&o.spaces, "namespace-label", "KEY=VALUE on every namespace that is to have a clone")
	flag.Var(&o.works, "workload-annotation", "KEY=VALUE on every Deployment and pod that is to follow a Secret")
	flag.StringVar(&o.only, "only", "", "measure nothing else: "+strings.Join(kinds(), ", "))
	flag.IntVar(&o.clones, "n", 100, "number of clones, of Deployments and of pods")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds of what all of them take part in")
	flag.IntVar(&o.samples, "samples", 50, "samples of what happens to one")
	flag.DurationVar(&o.within, "within", time.Minute, "how long to wait for anything")
	flag.StringVar(&o.node, "node", "", "a node that runs pods, to measure their refresh as well")
	flag.StringVar(&o.image, "image", "registry.k8s.io/pause:3.10", "what these pods run")
	flag.StringVar(&o.out, "o", "", "also write the rounds to this file, in Go's benchmark format, which benchstat compares")
	flag.StringVar(&o.version, "version", "", "the version of that controller, for -figures")
	flag.StringVar(&o.figures, "figures", "", "the root of a repository of which to replace the figures of that controller in deploy/figures.json and in the documents")
	flag.Parse()
	if err := o.check(); err != nil {
		return o, err
	}
	return o, o.choose()
}

func (o *options) check() error {
	switch {
	case o.kubeconfig == "" && !o.print:
		return errors.New("-kubeconfig, or KUBECONFIG in the environment, must name the cluster to measure in")
	case o.clones < 1 || o.rounds < 1 || o.samples < 1:
		return errors.New("-n, -rounds and -samples must be at least 1")
	case o.within <= 0:
		return errors.New("-within must be longer than nothing")
	case len(o.prefix) > longestPrefix || len(validation.IsDNS1123Label(o.prefix)) > 0:
		return fmt.Errorf("-prefix %s: it must be a DNS label of at most %d characters", o.prefix, longestPrefix)
	case o.only != "" && !slices.Contains(kinds(), o.only):
		return fmt.Errorf("-only %s: there is %s", o.only, strings.Join(kinds(), ", "))
	}
	return o.checkFigures()
}

// checkFigures returns an error if a row of a table could not say what was measured.
func (o *options) checkFigures() error {
	if o.figures != "" && (o.name == "" || o.version == "" && o.name != figures.Itself) {
		return errors.New("-figures: name the controller with -for, and its -version unless it is Headwater of this commit")
	}
	return nil
}

// longestPrefix leaves room for what is put after it.
const longestPrefix = 40

// choose takes the preset, and adds the marks that were given.
func (o *options) choose() error {
	chosen, known := presets()[o.name]
	if !known && o.name != "" {
		return fmt.Errorf("-for %s: there is %s; for another one, leave it out and give its marks", o.name, strings.Join(presetNames(), ", "))
	}
	if !known {
		chosen.does = kinds()
	}
	add := func(to *marks, more marks) {
		all := marks{}
		maps.Copy(all, *to)
		maps.Copy(all, more)
		*to = all
	}
	add(&chosen.source, o.source)
	add(&chosen.labels, o.labels)
	add(&chosen.namespace, o.spaces)
	add(&chosen.workload, o.works)
	o.preset = chosen.with(o.prefix)
	if o.only != "" {
		o.preset.does = []string{o.only}
	}
	return nil
}

// wants reports whether rows of that kind are to be measured.
func (o options) wants(kind string) bool {
	return slices.Contains(o.preset.does, kind) && (kind != pods || o.node != "")
}
