package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/stretchr/testify/require"
)

// `make man` sets MAN to the folder to write them to.
func TestEveryCommandHasAManPage(t *testing.T) {
	folder := os.Getenv("MAN")
	if folder == "" {
		folder = t.TempDir()
	}
	root := rootCommand("headwater")
	root.DisableAutoGenTag = true
	require.NoError(t, doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "Headwater", Manual: "Headwater"}, folder))
	for _, command := range append([]*cobra.Command{root}, root.Commands()...) {
		if command.IsAdditionalHelpTopicCommand() || command.Name() == "help" {
			continue
		}
		name := "headwater.1"
		if command != root {
			name = "headwater-" + command.Name() + ".1"
		}
		page, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		require.Contains(t, string(page), ".SH SYNOPSIS", name)
		if command.Example != "" {
			require.Contains(t, string(page), ".SH EXAMPLE", name)
		}
	}
}
