package main

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/inspect"
)

func TestOnlyYesIsAnAnswerToTheQuestion(t *testing.T) {
	left := inspect.Leftovers{Rule: "old", Clones: []string{"Secret/a/shared"}}
	for answer, meant := range map[string]bool{"yes\n": true, "\tyes\n": true, "y\n": false, "no\n": false, "\n": false, "": false} {
		err := askWhether(strings.NewReader(answer), io.Discard, left)
		require.Equal(t, meant, err == nil, "%q: %v", answer, err)
	}
}
