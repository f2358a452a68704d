// Command play plays Headwater's main job on a real control plane of its own
// and exits non-zero the moment something is not as promised.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"golang.org/x/term"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/node"
	"github.com/headwater-k8s/headwater/test/scenario"
)

func main() {
	if err := run(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "\nNot as promised:", err)
		os.Exit(1)
	}
}

func run() (err error) {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	binary := flag.String("binary", "bin/headwater", "the headwater to play with")
	config := flag.String("config", "configs/headwater.yaml", "its configuration")
	rbac := flag.String("rbac", "deploy/rbac.yaml", "its permissions")
	withNode := flag.Bool("node", false, "run the pods on a real node, which takes root and containerd")
	keep := flag.Bool("keep", false, "leave everything up until interrupted")
	flag.Parse()

	if *withNode {
		if err := node.Missing(); err != nil {
			return err
		}
	}
	if _, err := cluster.Build(ctx, os.Stderr); err != nil {
		return err
	}
	tell := scenario.NewNarrator(os.Stdout, term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("NO_COLOR") == "")
	var c *cluster.Cluster
	tell.Chapter("A control plane")
	err = tell.Step(ctx, "etcd, API server, controller manager and scheduler are up", func(ctx context.Context) error {
		c, err = cluster.Start(ctx, cluster.Options{})
		return err
	})
	if err != nil {
		return err
	}
	defer func() { err = c.Discard(err) }()
	var n *node.Node
	if *withNode {
		err = tell.Step(ctx, "containerd and a kubelet join it, as a node", func(ctx context.Context) error {
			n, err = node.Start(ctx, c, node.Options{})
			return err
		})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, n.Stop()) }()
	}
	story, err := scenario.New(scenario.Options{Cluster: c, Binary: absolute(*binary), Config: absolute(*config), RBAC: *rbac, Node: n}, tell)
	if err != nil {
		return err
	}
	defer story.Stop()
	if err := story.Play(ctx); err != nil {
		return fmt.Errorf("%w\nheadwater's log: %s", err, story.Log())
	}
	tell.Summary()
	if *keep {
		fmt.Printf("\nCluster and Headwater stay up until you press Ctrl-C:\n  export KUBECONFIG=%s\n  kubectl get secrets -A -l headwater.dev/clone=true\n", c.Kubeconfig())
		<-ctx.Done()
	}
	return nil
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
