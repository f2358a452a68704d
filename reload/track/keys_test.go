package track

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/decide"
)

func TestWhenKeysWereLastWritten(t *testing.T) {
	h := testHasher(t, 1)
	ref := object.Ref{Kind: object.Secret, Namespace: "ns", Name: "s"}
	first, second, third := birth, birth.Add(10*time.Second), birth.Add(20*time.Second)
	at := func(when time.Time, content data) Version { return Version{digests(h, content), when} }
	tests := map[string]struct {
		versions []Version
		keys     []string
		want     time.Time
	}{
		"of an object that was not seen to change, as the object": {
			versions: []Version{at(first, data{"a": "1"})}, keys: []string{"a"}, want: first,
		},
		"a key that changed, then": {
			versions: []Version{at(first, data{"a": "1", "b": "1"}), at(second, data{"a": "2", "b": "1"})}, keys: []string{"a"}, want: second,
		},
		"a key that did not, when the version before was written": {
			versions: []Version{at(first, data{"a": "1", "b": "1"}), at(second, data{"a": "2", "b": "1"})}, keys: []string{"b"}, want: first,
		},
		"any of several keys": {
			versions: []Version{at(first, data{"a": "1", "b": "1"}), at(second, data{"a": "2", "b": "1"})}, keys: []string{"a", "b"}, want: second,
		},
		"all keys": {
			versions: []Version{at(first, data{"a": "1", "b": "1"}), at(second, data{"a": "2", "b": "1"}), at(third, data{"a": "2", "b": "2"})},
			want:     third,
		},
		"a key that changed before another did": {
			versions: []Version{at(first, data{"a": "1", "b": "1"}), at(second, data{"a": "2", "b": "1"}), at(third, data{"a": "2", "b": "2"})},
			keys:     []string{"a"}, want: second,
		},
		"a key that was removed": {
			versions: []Version{at(first, data{"a": "1", "b": "1"}), at(second, data{"a": "1"})}, keys: []string{"b"}, want: second,
		},
		"a key that was added": {
			versions: []Version{at(first, data{"a": "1"}), at(second, data{"a": "1", "b": "1"})}, keys: []string{"b"}, want: second,
		},
		"where no key changed, before the write": {
			versions: []Version{at(first, data{"a": "1"}), at(second, data{"a": "1"})}, want: first,
		},
		"where a change has no time, as the object": {
			versions: []Version{at(first, data{"a": "1", "b": "1"}), at(time.Time{}, data{"b": "1"}), at(third, data{"b": "2"})},
			keys:     []string{"a"}, want: third,
		},
		"where the version before the first change has no time, as the object": {
			versions: []Version{at(time.Time{}, data{"a": "1", "b": "1"}), at(second, data{"a": "2", "b": "1"})}, keys: []string{"b"}, want: second,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			changes := testMemory()
			for i := 1; i < len(test.versions); i++ {
				changes.RecordKeys(ref, &test.versions[i-1], &test.versions[i], birth)
			}
			latest := test.versions[len(test.versions)-1].changedAt
			require.Equal(t, test.want, changes.KeysChangedAt(ref, test.keys, latest))
			changes.RecordKeys(ref, nil, nil, birth)
			require.Equal(t, latest, changes.KeysChangedAt(ref, test.keys, latest), "what is forgotten is as the object")
		})
	}
	require.Equal(t, first, (*Memory)(nil).KeysChangedAt(ref, nil, first), "an observer sees no changes")
}

func TestChangesThatEveryKubeletHasSeenAreForgotten(t *testing.T) {
	h := testHasher(t, 1)
	ref := func(name string) object.Ref { return object.Ref{Kind: object.Secret, Namespace: "ns", Name: name} }
	changes := testMemory()
	change := func(name string, at time.Time) {
		changes.RecordKeys(ref(name), &Version{digests(h, data{"a": "1"}), at.Add(-time.Second)}, &Version{digests(h, data{"a": "2"}), at}, at)
	}
	change("old", birth)
	change("young", birth.Add(decide.KubeletSync))
	require.Len(t, changes.objects, 2)
	change("new", birth.Add(2*decide.KubeletSync))
	require.Len(t, changes.objects, 2)
	require.Equal(t, birth.Add(decide.KubeletSync), changes.KeysChangedAt(ref("young"), []string{"a"}, birth))
}

func TestAnObjectThatIsRecreatedIsComparedWithTheOneBefore(t *testing.T) {
	h := testHasher(t, 1)
	ref := object.Ref{Kind: object.Secret, Namespace: "ns", Name: "s"}
	now := digests(h, data{"a": "2", "b": "1"})
	changes := testMemory()
	require.Empty(t, changes.RecordKeys(ref, nil, &Version{Digests: now}, birth), "it is new")
	changes.RecordKeys(ref, &Version{Digests: digests(h, data{"a": "1", "b": "1", "c": "1"})}, nil, birth)
	require.Equal(t, []string{"a", "c"}, changes.RecordKeys(ref, nil, &Version{Digests: now}, birth))
	require.Equal(t, birth, changes.KeysChangedAt(ref, []string{"b"}, birth), "when keys were written is not known")
	require.Empty(t, changes.RecordKeys(ref, nil, &Version{Digests: now}, birth), "once")
	changes.RecordKeys(ref, &Version{Digests: now}, nil, birth)
	changes.RecordKeys(object.Ref{Name: "other"}, &Version{Digests: now}, nil, birth.Add(2*decide.KubeletSync))
	require.Empty(t, changes.RecordKeys(ref, nil, &Version{}, birth), "that was long ago")
}
