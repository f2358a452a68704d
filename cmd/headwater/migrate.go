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
	// errNotCarried makes migrate exit 2: the user has to review the result.
	errNotCarried = errors.New("not everything is carried over")

	errNothingFound = errors.New("nothing to migrate: found no policy of Kyverno that clones Secrets or ConfigMaps, denies changes of " +
		"them, or restarts for them, and no annotations of Reflector or kubernetes-replicator; pass files or directories with " +
		"--filename, or a cluster with --kubeconfig")
)

func migrateCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "migrate",
		Example: `  headwater migrate > headwater.yaml
  headwater migrate --filename policies/ > headwater.yaml`,
		Short: "Generate a configuration from Kyverno, Reflector or kubernetes-replicator",
		Long: `Generate an equivalent configuration for other tools:
- Kyverno's ClusterPolicy and Policy that clone Secrets and ConfigMaps, deny
  changes of them, or restart workloads;
- Kyverno's GeneratingPolicy and ValidatingPolicy, and their namespaced forms, if
  they clone or deny by simple expressions or templates;
- the annotations of Reflector (emberstack) and kubernetes-replicator (mittwald),
  also where a Certificate, ExternalSecret or SealedSecret gives them to its Secret.

The command reads files with --filename, otherwise the cluster. It writes the
configuration to stdout, with the migration steps in order, and a summary to
stderr: how much is carried over, how much partly or not, and why. Headwater adopts the clones of these tools unchanged. If a rule cannot
express a policy fully, it applies to fewer objects, or it is written as a comment
with the reason.

The command never reads values of Secrets from the cluster, never repeats values
from a file, and writes nothing to the cluster. It requires permission to list
Secrets, ConfigMaps and Kyverno's policies and exceptions.

A document of a file that names one of the tools and is unreadable, or a template,
is reported with file, line and cause; the rest is still processed.

Exits 0 if everything is carried over; 2 if a rule is written as a comment, or if
something is left out or unreadable; and 1 if there was nothing to migrate. Policies
that do other jobs do not count: they stay with Kyverno.`,
		Args: noArguments,
	}
	in := newConnection(command)
	files := command.Flags().StringSliceP("filename", "f", nil, "files, directories of .yaml, .yml and .json files, or - for stdin, instead of the cluster")
	command.RunE = func(command *cobra.Command, _ []string) error {
		found, err := migratable(in, *files)
		if err != nil {
			return err
		}
		result := migrate.Translate(found)
		if result.Empty() {
			_, _ = fmt.Fprint(command.ErrOrStderr(), result.Summary())
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

// manifests are the extensions of the files to read in a directory.
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

// readInto reads a file, all manifests in a directory, or stdin.
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
			found.Unread = append(found.Unread, ir.Unread{At: path, Why: err.Error()})
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
