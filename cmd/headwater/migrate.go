package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/headwater-k8s/headwater/internal/inspect"
	"github.com/headwater-k8s/headwater/internal/migrate"
	"github.com/headwater-k8s/headwater/internal/migrate/ir"
)

var (
	// errNotCarried makes migrate exit 2: there is something to decide.
	errNotCarried = errors.New("not everything is carried over")

	errNothingFound = errors.New("nothing to migrate: no policy of Kyverno, and no Secret or ConfigMap with annotations of " +
		"Reflector or kubernetes-replicator; name files or directories with --filename, or a cluster with --kubeconfig")
)

func migrateCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "migrate",
		Short: "Write the configuration that does what Kyverno, Reflector or kubernetes-replicator are told to",
		Long: `Write the configuration that does what other tools are told to: Kyverno's
policies (ClusterPolicy, Policy) that clone Secrets and ConfigMaps, deny changes
of them, or restart workloads; its newer ones (GeneratingPolicy, ValidatingPolicy,
and the same with Namespaced) where they clone or deny by plain expressions; and
the annotations of Reflector (emberstack) and kubernetes-replicator (mittwald).

They are read from files with --filename, else from the cluster. The file is
written to the standard output, and says what to do in which order; a summary
goes to the standard error. Clones that those tools made are adopted as they
are. What a rule cannot say makes it reach less, or leaves it as a comment with
the reason. No value of a Secret is read from the cluster, or repeated from a
file. Nothing is written to the cluster.

Needs list of Secrets, ConfigMaps and Kyverno's policies and exceptions.

What of a file cannot be read is told with file, line and cause, and does not
stop the rest.

Exits 0 when everything is carried over, 2 when a rule is left as a comment or
something is left out or could not be read, and 1 when nothing was found in what
could be read.`,
		Args: noArguments,
	}
	in := newConnection(command)
	files := command.Flags().StringSliceP("filename", "f", nil, "files, directories of .yaml, .yml and .json, or - for the standard input, instead of the cluster")
	command.RunE = func(command *cobra.Command, _ []string) error {
		found, err := migratable(in, *files)
		if err != nil {
			return err
		}
		result := migrate.Translate(found)
		if result.Empty() {
			_, _ = fmt.Fprint(command.ErrOrStderr(), result.Unreadable())
			return errNothingFound
		}
		file, err := result.Render()
		if err != nil {
			return err
		}
		if _, err := command.OutOrStdout().Write(file); err != nil {
			return err
		}
		_, err = fmt.Fprint(command.ErrOrStderr(), result.Summary())
		if err == nil && !result.Carried() {
			return errNotCarried
		}
		return err
	}
	return command
}

// manifests are the files that are read of a directory.
var manifests = []string{".yaml", ".yml", ".json"}

func migratable(in *inspection, files []string) (migrate.Input, error) {
	if len(files) == 0 {
		return inspect.Migratable(in.command.Context(), in.options)
	}
	var found migrate.Input
	for _, file := range files {
		if err := readInto(&found, file, in.command.InOrStdin()); err != nil {
			return migrate.Input{}, err
		}
	}
	return found, nil
}

// readInto reads one file, all of a directory, or stdin.
func readInto(found *migrate.Input, name string, stdin io.Reader) error {
	if name == "-" {
		return found.Read("the standard input", stdin)
	}
	return filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && (entry.IsDir() || path != name && !slices.Contains(manifests, filepath.Ext(path))) {
			return nil
		}
		if err == nil {
			err = readFile(found, path)
		}
		if err != nil && path != name {
			found.Unread = append(found.Unread, ir.Left{From: path, Why: err.Error()})
			return nil
		}
		return err
	})
}

func readFile(found *migrate.Input, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	return found.Read(path, file)
}
