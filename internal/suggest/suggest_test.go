package suggest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClosest(t *testing.T) {
	known := []string{"annotations", "copyLabels", "keys", "labels", "name", "to"}
	tests := map[string]struct{ word, want string }{
		"a missing letter":           {"lables", "labels"},
		"swapped letters":            {"naem", "name"},
		"another case":               {"COPYLABELS", "copyLabels"},
		"two errors in a long word":  {"anotation", "annotations"},
		"a short word, one off":      {"t", "to"},
		"a short word, all letters":  {"ab", ""},
		"nothing alike":              {"selector", ""},
		"letters that are not ASCII": {"näme", "name"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, Closest(test.word, known))
		})
	}
}
