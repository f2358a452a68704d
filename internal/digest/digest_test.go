package digest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func newHasher(t *testing.T, fill byte) *Hasher {
	t.Helper()
	key := make([]byte, KeySize)
	for i := range key {
		key[i] = fill
	}
	hasher, err := New(key)
	require.NoError(t, err)
	return hasher
}

func TestSumsDependOnEveryBoundaryDomainAndKey(t *testing.T) {
	hasher := newHasher(t, 1)
	base := hasher.Of("data", []byte("ab"), []byte("c"))
	require.Equal(t, base, hasher.Of("data", []byte("ab"), []byte("c")), "the same input gives the same sum")
	for sentence, other := range map[string]Sum{
		"another split of the same bytes": hasher.Of("data", []byte("a"), []byte("bc")),
		"another domain":                  hasher.Of("datb", []byte("ab"), []byte("c")),
		"an empty part more":              hasher.Of("data", []byte("ab"), []byte("c"), nil),
		"another key":                     newHasher(t, 2).Of("data", []byte("ab"), []byte("c")),
	} {
		require.NotEqual(t, base, other, sentence)
	}
}

func TestKeyOfWrongLengthIsRefused(t *testing.T) {
	_, err := New([]byte("short"))
	require.EqualError(t, err, "digest key has 5 bytes, want 32")
}

func TestIDTellsKeysApart(t *testing.T) {
	require.Len(t, newHasher(t, 1).ID(), 8)
	require.NotEqual(t, newHasher(t, 1).ID(), newHasher(t, 2).ID())
}
