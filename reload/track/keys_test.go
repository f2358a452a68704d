package track

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
)

func TestWhenKeysWereLastWritten(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	ref := object.Ref{Kind: object.Secret, Namespace: "ns", Name: "s"}
	first, second, third := reloadtest.Birth, reloadtest.Birth.Add(10*time.Second), reloadtest.Birth.Add(20*time.Second)
	seen := reloadtest.Birth.Add(30 * time.Second)
	at := func(when time.Time, content reloadtest.Data) Version {
		return Version{reloadtest.Digests(h, content), when}
	}
	made, madeLater, madeUndated := at(first, reloadtest.Data{"a": "1", "b": "1"}), at(second, reloadtest.Data{"a": "1", "b": "1"}), at(time.Time{}, reloadtest.Data{"a": "1", "b": "1"})
	aChanged, bRemoved, bChanged := at(second, reloadtest.Data{"a": "2", "b": "1"}), at(second, reloadtest.Data{"a": "1"}), at(third, reloadtest.Data{"a": "2", "b": "2"})
	tests := map[string]struct {
		versions []Version
		keys     []string
		want     time.Time
	}{
		"of an object that was not seen to change, as the object": {versions: []Version{at(first, reloadtest.Data{"a": "1"})}, keys: []string{"a"}, want: first},
		"a key that changed, then":                                {versions: []Version{made, aChanged}, keys: []string{"a"}, want: second},
		"a key that did not, when the version before was written": {versions: []Version{made, aChanged}, keys: []string{"b"}, want: first},
		"any of several keys":                                     {versions: []Version{made, aChanged}, keys: []string{"a", "b"}, want: second},
		"all keys":                                                {versions: []Version{made, aChanged, bChanged}, want: third},
		"a key that changed before another did":                   {versions: []Version{made, aChanged, bChanged}, keys: []string{"a"}, want: second},
		"a key that was removed":                                  {versions: []Version{made, bRemoved}, keys: []string{"b"}, want: second},
		"a key that was removed in a write that the API server did not date, when that was seen": {versions: []Version{madeLater, bRemoved}, keys: []string{"b"}, want: seen},
		"all keys, of which one was removed in such a write":                                     {versions: []Version{madeLater, bRemoved}, want: seen},
		"a key that stayed in such a write, when the version before was written":                 {versions: []Version{madeLater, bRemoved}, keys: []string{"a"}, want: second},
		"a key that was added":                   {versions: []Version{at(first, reloadtest.Data{"a": "1"}), madeLater}, keys: []string{"b"}, want: second},
		"where no key changed, before the write": {versions: []Version{at(first, reloadtest.Data{"a": "1"}), bRemoved}, want: first},
		"where a change has no time, when it was seen": {
			versions: []Version{made, at(time.Time{}, reloadtest.Data{"b": "1"}), at(third, reloadtest.Data{"b": "2"})},
			keys:     []string{"a"}, want: seen,
		},
		"where two changes in a row have no time, when the second was seen":    {versions: []Version{madeUndated, at(time.Time{}, reloadtest.Data{"b": "1"})}, want: seen},
		"where the version before the first change has no time, as the object": {versions: []Version{madeUndated, aChanged}, keys: []string{"b"}, want: second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			changes := testMemory()
			for i := 1; i < len(test.versions); i++ {
				changes.RecordKeys(ref, &test.versions[i-1], &test.versions[i], seen)
			}
			latest := test.versions[len(test.versions)-1].changedAt
			require.Equal(t, test.want, changes.KeysChangedAt(ref, test.keys, latest))
			changes.RecordKeys(ref, nil, nil, reloadtest.Birth)
			require.Equal(t, latest, changes.KeysChangedAt(ref, test.keys, latest), "what is forgotten is as the object")
		})
	}
	require.Equal(t, first, (*Memory)(nil).KeysChangedAt(ref, nil, first), "an observer sees no changes")
}

func TestChangesThatEveryKubeletHasSeenAreForgotten(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	ref := func(name string) object.Ref { return object.Ref{Kind: object.Secret, Namespace: "ns", Name: name} }
	changes := testMemory()
	change := func(name string, at time.Time) {
		changes.RecordKeys(ref(name), &Version{reloadtest.Digests(h, reloadtest.Data{"a": "1"}), at.Add(-time.Second)}, &Version{reloadtest.Digests(h, reloadtest.Data{"a": "2"}), at}, at)
	}
	change("old", reloadtest.Birth)
	change("young", reloadtest.Birth.Add(decide.KubeletSync))
	require.Len(t, changes.objects, 2)
	change("new", reloadtest.Birth.Add(2*decide.KubeletSync))
	require.Len(t, changes.objects, 2)
	require.Equal(t, reloadtest.Birth.Add(decide.KubeletSync), changes.KeysChangedAt(ref("young"), []string{"a"}, reloadtest.Birth))
}

func TestAnObjectThatIsRecreatedIsComparedWithTheOneBefore(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	ref := object.Ref{Kind: object.Secret, Namespace: "ns", Name: "s"}
	now := reloadtest.Digests(h, reloadtest.Data{"a": "2", "b": "1"})
	changes := testMemory()
	require.Empty(t, changes.RecordKeys(ref, nil, &Version{digests: now}, reloadtest.Birth), "it is new")
	changes.RecordKeys(ref, &Version{digests: reloadtest.Digests(h, reloadtest.Data{"a": "1", "b": "1", "c": "1"})}, nil, reloadtest.Birth)
	require.Equal(t, []string{"a", "c"}, changes.RecordKeys(ref, nil, &Version{digests: now}, reloadtest.Birth))
	require.Equal(t, reloadtest.Birth, changes.KeysChangedAt(ref, []string{"b"}, reloadtest.Birth), "when keys were written is not known")
	require.Empty(t, changes.RecordKeys(ref, nil, &Version{digests: now}, reloadtest.Birth), "once")
	changes.RecordKeys(ref, &Version{digests: now}, nil, reloadtest.Birth)
	changes.RecordKeys(object.Ref{Name: "other"}, &Version{digests: now}, nil, reloadtest.Birth.Add(2*decide.KubeletSync))
	require.Empty(t, changes.RecordKeys(ref, nil, &Version{}, reloadtest.Birth), "that was long ago")
}
