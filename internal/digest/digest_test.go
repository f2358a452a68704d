package digest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
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

// Sums are those of HMAC over what no two lists of parts have in common, and
// tell neither parts nor key.
func FuzzOf(f *testing.F) {
	f.Add([]byte("a"), []byte("bc"), []byte("ab"), []byte("c"))
	f.Add([]byte{}, []byte{}, []byte{0}, []byte{})
	f.Fuzz(func(t *testing.T, a, b, c, d []byte) {
		hasher := newHasher(t, 1)
		require.Equal(t, hasher.Of("x", a, b), hasher.Of("x", bytes.Clone(a), bytes.Clone(b)))
		same := bytes.Equal(a, c) && bytes.Equal(b, d)
		require.Equal(t, same, hasher.Of("x", a, b) == hasher.Of("x", c, d))
		require.NotEqual(t, hasher.Of("x", a, b), hasher.Of("x", bytes.Join([][]byte{a, b}, nil)))
		require.NotEqual(t, hasher.Of(string(a), b), hasher.Of(string(a)+"x", b))
		require.NotEqual(t, hasher.Of("x", a), newHasher(t, 2).Of("x", a))
		plain := sha256.Sum256(a)
		require.NotContains(t, hex.EncodeToString(plain[:]), hasher.Of("x", a).String())
	})
}
