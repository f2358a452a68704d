//go:build unix

// Command cluster keeps one control plane running in the background, for trying
// things out: cluster up, status, down. With build it only builds the binaries, by
// default the control plane's: cluster build kubelet kwok.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/headwater-k8s/headwater/test/cluster"
)

const usage = "use: cluster [-in FOLDER] up | status | down | build [COMPONENT...]"

func main() {
	if err := interruptible(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func interruptible() error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	return run(ctx, os.Args[1:])
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("cluster", flag.ContinueOnError)
	flags.Usage = func() { _, _ = fmt.Fprintln(flags.Output(), usage) }
	in := flags.String("in", "", "the folder that .cluster is in; by default the checkout's")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if flags.Arg(0) == "build" {
		return build(ctx, flags.Args()[1:])
	}
	if flags.NArg() != 1 {
		return errors.New(usage)
	}
	local, err := newLocal(*in)
	if err != nil {
		return err
	}
	commands := map[string]func(context.Context) error{
		"up":         local.up,
		"down":       local.down,
		"status":     local.status,
		serveCommand: local.serve,
	}
	command, known := commands[flags.Arg(0)]
	if !known {
		return fmt.Errorf("there is no command %q: %s", flags.Arg(0), usage)
	}
	return command(ctx)
}

// build builds the components of these names, or those of the control plane.
func build(ctx context.Context, components []string) error {
	bin, err := cluster.Build(ctx, os.Stderr, components...)
	if err != nil {
		return err
	}
	what := "the control plane's binaries"
	if len(components) > 0 {
		what = "the binaries of " + strings.Join(components, ", ")
	}
	fmt.Println(what, "are in", bin)
	return nil
}

// local is the cluster of one checkout.
type local struct{ root, folder, state string }

func newLocal(folder string) (*local, error) {
	root, err := cluster.Root()
	if err != nil {
		return nil, err
	}
	if folder == "" {
		folder = root
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return nil, fmt.Errorf("find the cluster's folder: %w", err)
	}
	l := &local{root: root, folder: folder, state: filepath.Join(folder, ".cluster")}
	if err := os.MkdirAll(l.state, 0o755); err != nil {
		return nil, fmt.Errorf("make the cluster's folder: %w", err)
	}
	return l, nil
}

func (l *local) kubeconfig() string { return filepath.Join(l.state, "kubeconfig") }

// pidFile is locked by the process in it, for as long as that lives.
func (l *local) pidFile() string { return filepath.Join(l.state, "pid") }

// commandLock lets one up or down at a time pass.
func (l *local) commandLock() string { return filepath.Join(l.state, "lock") }

func (l *local) logFile() string { return filepath.Join(l.state, "log") }

func (l *local) runDir() string { return filepath.Join(l.state, "run") }
