package intern_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/intern"
)

func TestEqualStringsShareTheirMemoryAlsoAfterAGarbageCollection(t *testing.T) {
	text := func() string { return intern.String(strings.Repeat("team-a", 1)) }
	first := text()
	runtime.GC()
	require.Same(t, unsafe.StringData(first), unsafe.StringData(text()))
	for i := range 200_000 {
		require.NotEmpty(t, intern.String(fmt.Sprint("forged-", i)))
	}
	require.Equal(t, first, text())
}
