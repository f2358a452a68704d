// Command figures measures everything that the documents state figures of, and
// writes it there. With -small it tries that at small sizes, on a copy of the
// documents.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/headwater-k8s/headwater/test/figures"
)

// step is one run of the go command; small are its arguments where that is only
// tried, and empty where it takes too much for a try.
type step struct{ args, small []string }

func steps() []step {
	bench := func(args ...string) []string {
		return append([]string{"run", "./test/bench", "-strict=false"}, args...)
	}
	large := []string{"-rules", "10", "-unrelated", "0", "-only", "fan-out,start,heal,new-namespace-meanwhile,memory,views,failover"}
	spread := []string{"-unrelated", "0", "-rounds", "9", "-only", "fan-out"}
	few := []string{"-n", "10", "-unrelated", "0", "-rounds", "1"}
	return []step{
		{bench(append(spread, "-n", "10000")...), bench(append(spread, few...)...)},
		{bench(append(spread, "-n", "10000", "-protected=false")...), bench(append(append(spread, few...), "-protected=false")...)},
		{bench("-only", "crowd", "-rounds", "9"), bench(append(few, "-only", "crowd")...)},
		{bench("-only", "failover"), nil},
		{bench("-n", "10000", "-unrelated", "50000", "-only", "memory"), bench("-n", "10", "-unrelated", "20", "-only", "memory")},
		{bench(append(large, "-n", "10000", "-rounds", "5")...), bench(append(large, "-n", "10", "-rounds", "1")...)},
		{bench("-only", "refresh", "-n", "10", "-unrelated", "0", "-rounds", "5", "-unasked", "3"), nil},
		{[]string{"run", "./test/cost"}, []string{
			"run", "./test/cost", "-sizes", "10,20,30", "-namespaces", "10", "-secrets", "0,20,40", "-steps", "0,10,20", "-rules", "0,2,4",
			"-payloads", "1024,4096,8192", "-judged", "5,10,15",
		}},
		{[]string{"test", "-tags", "rollouts", "-count=1", "-timeout", "30m", "./test/rollouts", "-args", "-deployments", "1000"}, nil},
	}
}

func main() {
	if err := run(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	root := flag.String("root", ".", "the repository of which to write the documents")
	small := flag.Bool("small", false, "try it at small sizes, on a copy of the documents")
	only := flag.Bool("write", false, "measure nothing; write the documents from the file")
	flag.Parse()
	if *only {
		file, err := figures.Read(*root)
		if err != nil {
			return err
		}
		return figures.Write(*root, file)
	}
	if *small {
		folder, err := copied(*root)
		if err != nil {
			return err
		}
		*root = folder
		_, _ = fmt.Fprintln(os.Stderr, "the documents are written in", folder)
	}
	absolute, err := filepath.Abs(*root) // a test runs in the folder of its package
	if err != nil {
		return err
	}
	for _, one := range steps() {
		args := one.args
		if *small {
			args = one.small
		}
		if len(args) == 0 {
			continue
		}
		if err := measure(ctx, append(args, "-figures", absolute)); err != nil {
			return err
		}
	}
	return nil
}

func measure(ctx context.Context, args []string) error {
	command := exec.CommandContext(ctx, "go", args...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("%v: %w", args, err)
	}
	return nil
}

// copied returns a folder that has the documents of a repository.
func copied(root string) (folder string, err error) {
	if folder, err = os.MkdirTemp("", "headwater-figures-"); err != nil {
		return "", err
	}
	for _, name := range append([]string{figures.Name}, figures.Documents...) {
		if err := copyFile(filepath.Join(root, name), filepath.Join(folder, name)); err != nil {
			return "", err
		}
	}
	return folder, nil
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	target, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	if closing := target.Close(); err == nil {
		err = closing
	}
	return err
}
