package plural

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOneIsNoPlural(t *testing.T) {
	for n, want := range map[int]string{0: "0 clones", 1: "1 clone", 2: "2 clones"} {
		require.Equal(t, want, Of(n, "clone"))
	}
}
