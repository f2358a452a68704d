package decide

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/refs"
)

func TestBaselineText(t *testing.T) {
	b := newBaseline("0a1b2c3d")
	require.Equal(t, "v2:0a1b2c3d:", b.String())
	b.entries[EntryID{0xff}] = EntrySum{1}
	b.entries[EntryID{0x01}] = EntrySum{2}
	require.Equal(t, "v2:0a1b2c3d:01000000=0200000000000000,ff000000=0100000000000000", b.String())

	parsed, err := parseBaseline(b.String())
	require.NoError(t, err)
	require.True(t, parsed.equal(b))
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
			_, err := parseBaseline(text)
			require.ErrorIs(t, err, errBaselineUnreadable)
		})
	}
}

func TestReferenceIdentity(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	reference := refs.Reference{Kind: object.Secret, Name: "s", Keys: []string{"a", "b"}, Mode: refs.Env}
	id := newRefDigest(h, "uid", reference).id()

	other := reference
	other.Mode, other.Optional = refs.SubPath, true
	require.Equal(t, id, newRefDigest(h, "uid", other).id(), "the mode does not matter")
	require.NotEqual(t, id, newRefDigest(h, "uid-2", reference).id(), "a copy of the workload is another")
	require.NotEqual(t, id, newRefDigest(h, "uid", refs.Reference{Kind: object.ConfigMap, Name: "s", Keys: []string{"a", "b"}}).id())
	require.NotEqual(t, id, newRefDigest(h, "uid", refs.Reference{Kind: object.Secret, Name: "s", Keys: []string{"ab"}}).id())
	require.NotEqual(t, id, newRefDigest(h, "uid", refs.Reference{Kind: object.Secret, Name: "s"}).id())
	require.NotEqual(t, id, newRefDigest(reloadtest.Hasher(t, 2), "uid", reference).id())
}

func TestSumCoversWhatIsConsumedAndNothingElse(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	before := reloadtest.Digests(h, map[string]string{"a": "1", "b": "2"})
	after := reloadtest.Digests(h, map[string]string{"a": "1", "b": "3"})
	without := reloadtest.Digests(h, map[string]string{"a": "1"})
	empty := reloadtest.Digests(h, map[string]string{"a": "1", "b": ""})

	sum := func(data object.Digests, keys ...string) EntrySum {
		return newRefDigest(h, "uid", refs.Reference{Kind: object.Secret, Name: "s", Keys: keys}).sum(h, keys, data)
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
	sums := map[EntrySum]string{}
	for sentence, sum := range map[string]EntrySum{
		"a key of a Secret":                   newRefDigest(h, "uid", one).sum(h, one.Keys, value),
		"the same, of another workload":       newRefDigest(h, "uid-2", one).sum(h, one.Keys, value),
		"a Secret of another name":            newRefDigest(h, "uid", guess).sum(h, guess.Keys, value),
		"all of the Secret, which is no more": newRefDigest(h, "uid", whole).sum(h, whole.Keys, value),
	} {
		require.NotContains(t, sums, sum, sentence)
		sums[sum] = sentence
	}
}

func FuzzParseBaseline(f *testing.F) {
	f.Add("v2:0a1b2c3d:01000000=0200000000000000,ff000000=0100000000000000")
	f.Add("v2:0a1b2c3d:")
	f.Add("v1:x")
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := parseBaseline(text)
		if err != nil {
			require.ErrorIs(t, err, errBaselineUnreadable)
			return
		}
		again, err := parseBaseline(parsed.String())
		require.NoError(t, err)
		require.True(t, again.equal(parsed))
		require.Equal(t, parsed.String(), again.String())
	})
}
