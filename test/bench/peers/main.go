// Command peers times a controller from outside, in any cluster: how soon it clones
// and restores Secrets, and how soon it restarts the workloads that use them. Any
// controller that runs there will do; see README.md.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/headwater-k8s/headwater/test/bench/measure"
	"github.com/headwater-k8s/headwater/test/figures"
)

// pkg names what is measured, for benchstat.
const pkg = "github.com/headwater-k8s/headwater/test/bench/peers"

func main() {
	if err := run(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "bench-peers:", err)
		os.Exit(1)
	}
}

func run() error {
	o, err := parse()
	if err != nil {
		return err
	}
	if o.print {
		_, _ = fmt.Fprint(os.Stdout, o.explain())
		return nil
	}
	config, name, err := connect(o)
	if err != nil {
		return err
	}
	if err := mayLoad(config.Host, name, o.yes); err != nil {
		return err
	}
	// The second Ctrl-C ends the program at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer context.AfterFunc(ctx, stop)()
	defer stop()
	results := &measure.Table{Of: "Peer", Title: o.title(name)}
	if o.figures == "" {
		return results.Report(perform(ctx, config, o, results), os.Stdout, o.out, pkg)
	}
	like, err := figures.Now("make bench-peers", "PEERS", os.Args[1:])
	if err != nil {
		return err
	}
	if err := results.Report(perform(ctx, config, o, results), os.Stdout, o.out, pkg); err != nil {
		return err
	}
	like.Version = o.version
	return figures.Update(o.figures, figures.ByPeer(o.name, like, results.Figures()))
}

func (o options) title(context string) string {
	who := "whatever controller runs"
	if o.name != "" {
		who = o.name
	}
	return fmt.Sprintf("%s, in %s: Secrets of 1 KiB, medians of %d rounds, p99 of %d samples; never means not within %s",
		who, context, o.rounds, o.samples, o.within)
}

// connect is to the cluster of the kubeconfig, by the name of its context.
func connect(o options) (config *rest.Config, context string, err error) {
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: o.kubeconfig}, &clientcmd.ConfigOverrides{CurrentContext: o.context})
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, "", fmt.Errorf("read %s: %w", o.kubeconfig, err)
	}
	if context = o.context; context == "" {
		context = raw.CurrentContext
	}
	if config, err = loader.ClientConfig(); err != nil {
		return nil, "", fmt.Errorf("read %s: %w", o.kubeconfig, err)
	}
	config.QPS, config.ContentType = -1, runtime.ContentTypeProtobuf
	config.UserAgent = "headwater-bench-peers"
	return config, context, nil
}

// perform measures, and removes what it has made however that goes.
func perform(ctx context.Context, config *rest.Config, o options, results *measure.Table) (err error) {
	made := newNamespaces(strings.ToLower(rand.Text()))
	config.Wrap(fence{made: made}.wrap)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	s := &stage{options: o, client: client, made: made, results: results}
	defer func() { err = errors.Join(err, made.remove(ctx, client)) }()
	for _, kind := range []struct {
		names   []string
		measure func(context.Context) error
	}{{[]string{clones, repairs}, s.clones}, {[]string{templates}, s.templates}, {[]string{pods}, s.pods}} {
		if !slices.ContainsFunc(kind.names, o.wants) {
			continue
		}
		if err := kind.measure(ctx); err != nil {
			return err
		}
	}
	return nil
}
