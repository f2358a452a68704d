package decide_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
)

func TestBaselineText(t *testing.T) {
	for text, want := range map[string]string{
		"v2:0a1b2c3d:": "v2:0a1b2c3d:",
		"v2:0a1b2c3d:ff000000=0100000000000000,01000000=0200000000000000": "v2:0a1b2c3d:01000000=0200000000000000,ff000000=0100000000000000",
	} {
		parsed, err := decide.ParseBaseline(text)
		require.NoError(t, err)
		require.Equal(t, want, parsed.String(), "sorted")
	}
}

func TestBaselineOfOthersIsUnreadable(t *testing.T) {
	for name, text := range map[string]string{
		"empty":                "",
		"garbage":              "\x00\xff,,==::",
		"another version":      "v1:0a1b2c3d:",
		"no key id":            "v2",
		"a short key id":       "v2:0a1b:",
		"no list":              "v2:0a1b2c3d",
		"upper case":           "v2:0A1B2C3D:",
		"an entry cut short":   "v2:0a1b2c3d:01000000=02",
		"an entry without sum": "v2:0a1b2c3d:01000000",
		"an empty entry":       "v2:0a1b2c3d:,",
		"an entry twice":       "v2:0a1b2c3d:01000000=0200000000000000,01000000=0200000000000000",
		"blanks":               "v2:0a1b2c3d: 01000000=0200000000000000",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decide.ParseBaseline(text)
			require.ErrorIs(t, err, decide.ErrBaselineUnreadable)
		})
	}
}

// entryOf returns what the baseline of a workload of that UID has for reference, while
// its object has that data.
func entryOf(t *testing.T, h *digest.Hasher, uid types.UID, reference refs.Reference, data object.Digests) (id, sum string) {
	t.Helper()
	stored := judged(h, uid, "", []decide.Input{{
		Reference: reference, Object: object.Ref{Kind: reference.Kind, Namespace: "ns", Name: reference.Name},
		Rule: "r", Action: spec.Restart, Exists: true, Digests: data,
	}}).Baseline
	id, sum, found := strings.Cut(strings.TrimPrefix(stored, "v2:"+h.ID()+":"), "=")
	require.True(t, found, stored)
	return id, sum
}

func TestReferenceIdentity(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	idOf := func(h *digest.Hasher, uid types.UID, reference refs.Reference) string {
		id, _ := entryOf(t, h, uid, reference, nil)
		return id
	}
	reference := refs.Reference{Kind: object.Secret, Name: "s", Keys: []string{"a", "b"}, Mode: refs.Env}
	id := idOf(h, "uid", reference)

	other := reference
	other.Mode, other.Optional = refs.SubPath, true
	require.Equal(t, id, idOf(h, "uid", other), "the mode does not matter")
	require.NotEqual(t, id, idOf(h, "uid-2", reference), "a copy of the workload is another")
	require.NotEqual(t, id, idOf(h, "uid", refs.Reference{Kind: object.ConfigMap, Name: "s", Keys: []string{"a", "b"}, Mode: refs.Env}))
	require.NotEqual(t, id, idOf(h, "uid", refs.Reference{Kind: object.Secret, Name: "s", Keys: []string{"ab"}, Mode: refs.Env}))
	require.NotEqual(t, id, idOf(h, "uid", refs.Reference{Kind: object.Secret, Name: "s", Mode: refs.EnvFrom}))
	require.NotEqual(t, id, idOf(reloadtest.Hasher(t, 2), "uid", reference))
}

func TestSumCoversWhatIsConsumedAndNothingElse(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	before := reloadtest.Digests(h, map[string]string{"a": "1", "b": "2"})
	after := reloadtest.Digests(h, map[string]string{"a": "1", "b": "3"})
	without := reloadtest.Digests(h, map[string]string{"a": "1"})
	empty := reloadtest.Digests(h, map[string]string{"a": "1", "b": ""})

	sum := func(data object.Digests, keys ...string) string {
		_, sum := entryOf(t, h, "uid", refs.Reference{Kind: object.Secret, Name: "s", Keys: keys, Mode: refs.Env}, data)
		return sum
	}
	require.Equal(t, sum(before, "a"), sum(after, "a"))
	require.NotEqual(t, sum(before, "b"), sum(after, "b"))
	require.NotEqual(t, sum(before), sum(after))
	require.NotEqual(t, sum(before, "a", "b"), sum(without, "a", "b"), "a missing key counts")
	require.NotEqual(t, sum(empty, "b"), sum(without, "b"), "empty is not missing")
}

func TestWhoSeesTwoBaselinesCannotTellEqualValues(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	value := reloadtest.Digests(h, map[string]string{"password": "hunter2"})
	one := refs.Reference{Kind: object.Secret, Name: "db", Keys: []string{"password"}, Mode: refs.Env}
	whole, guess := one, one
	whole.Keys, guess.Name = nil, "guess"
	sums := map[string]string{}
	for sentence, of := range map[string]struct {
		uid       types.UID
		reference refs.Reference
	}{
		"a key of a Secret":                   {"uid", one},
		"the same, of another workload":       {"uid-2", one},
		"a Secret of another name":            {"uid", guess},
		"all of the Secret, which is no more": {"uid", whole},
	} {
		_, sum := entryOf(t, h, of.uid, of.reference, value)
		require.NotContains(t, sums, sum, sentence)
		sums[sum] = sentence
	}
}

func FuzzParseBaseline(f *testing.F) {
	f.Add("v2:0a1b2c3d:01000000=0200000000000000,ff000000=0100000000000000")
	f.Add("v2:0a1b2c3d:")
	f.Add("v1:x")
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := decide.ParseBaseline(text)
		if err != nil {
			require.ErrorIs(t, err, decide.ErrBaselineUnreadable)
			return
		}
		again, err := decide.ParseBaseline(parsed.String())
		require.NoError(t, err)
		require.Equal(t, parsed, again)
		require.Equal(t, parsed.String(), again.String())
	})
}
