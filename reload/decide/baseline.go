package decide

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/refs"
)

// baseline is the data that a workload is known to run, or that the volumes of a pod
// were last refreshed for. It holds one checksum per reference. Its text form is
//
//	v2:<key id>:<reference>=<sum>,<reference>=<sum>,…
//
// in lower-case hexadecimal, sorted. References and checksums are keyed and specific to
// one reference of one object. The text therefore reveals no name and no value, not
// even whether two objects hold the same value.
type baseline struct {
	// keyID identifies the key that the checksums were computed with.
	keyID   string
	entries map[EntryID]EntrySum
}

type (
	// EntryID names one reference of one object in a baseline.
	EntryID [4]byte
	// EntrySum is the keyed checksum of the data that a reference consumes.
	EntrySum [8]byte
)

const (
	baselineVersion = "v2"
	keyIDSize       = 4
)

// errBaselineUnreadable is returned by parseBaseline for every text that this version
// of Headwater did not write.
var errBaselineUnreadable = errors.New("baseline is unreadable")

func newBaseline(keyID string) baseline {
	return baseline{keyID: keyID, entries: map[EntryID]EntrySum{}}
}

// parseBaseline is the inverse of baseline.String. It fails with errBaselineUnreadable.
func parseBaseline(text string) (baseline, error) {
	version, rest, _ := strings.Cut(text, ":")
	if version != baselineVersion {
		return baseline{}, fmt.Errorf("%w: its version is not %s", errBaselineUnreadable, baselineVersion)
	}
	keyID, list, found := strings.Cut(rest, ":")
	if !found || !isHex(keyID, keyIDSize) {
		return baseline{}, fmt.Errorf("%w: no key id", errBaselineUnreadable)
	}
	b := newBaseline(keyID)
	if list == "" {
		return b, nil
	}
	for entry := range strings.SplitSeq(list, ",") {
		if err := b.parseEntry(entry); err != nil {
			return baseline{}, err
		}
	}
	return b, nil
}

func (b baseline) parseEntry(entry string) error {
	left, right, _ := strings.Cut(entry, "=")
	var id EntryID
	var sum EntrySum
	if !isHex(left, len(id)) || !isHex(right, len(sum)) {
		return fmt.Errorf("%w: an entry is not reference=sum", errBaselineUnreadable)
	}
	// Neither fails: isHex checked the digits and the length.
	_, _ = hex.Decode(id[:], []byte(left))
	_, _ = hex.Decode(sum[:], []byte(right))
	if _, twice := b.entries[id]; twice {
		return fmt.Errorf("%w: an entry is there twice", errBaselineUnreadable)
	}
	b.entries[id] = sum
	return nil
}

func isHex(text string, size int) bool {
	return len(text) == 2*size && strings.Trim(text, "0123456789abcdef") == ""
}

// String formats the baseline as the value of an annotation.
func (b baseline) String() string {
	var text strings.Builder
	text.WriteString(baselineVersion + ":" + b.keyID + ":")
	ids := slices.SortedFunc(maps.Keys(b.entries), func(a, b EntryID) int { return slices.Compare(a[:], b[:]) })
	for i, id := range ids {
		if i > 0 {
			text.WriteByte(',')
		}
		sum := b.entries[id]
		text.WriteString(hex.EncodeToString(id[:]) + "=" + hex.EncodeToString(sum[:]))
	}
	return text.String()
}

func (b baseline) equal(other baseline) bool {
	return b.keyID == other.keyID && maps.Equal(b.entries, other.entries)
}

// refDigest makes a reference of one object different from every other reference. It
// includes the UID of the consumer: if somebody copies the annotation to another
// object, Headwater sees it there for the first time, and not as a change.
type refDigest digest.Sum

func newRefDigest(hasher *digest.Hasher, consumer types.UID, r refs.Reference) refDigest {
	parts := [][]byte{[]byte(consumer), []byte(r.Kind), []byte(r.Name)}
	for _, key := range r.Keys {
		parts = append(parts, []byte(key))
	}
	return refDigest(hasher.Of("reload reference", parts...))
}

// id identifies the reference in a baseline.
func (p refDigest) id() EntryID { return EntryID(p[:]) }

// pinnedID identifies the reference while kubelets cache its object as immutable.
func (p refDigest) pinnedID() EntryID { return EntryID(p[len(EntryID{}):]) }

// sum computes the checksum of the consumed keys; nil means all keys. A missing key has
// a checksum of its own. The checksum includes the reference, because workload owners
// may list objects that they created: a checksum of the data alone would let them test
// guesses of other people's secrets.
func (p refDigest) sum(hasher *digest.Hasher, keys []string, digests object.Digests) EntrySum {
	parts := [][]byte{p[:]}
	if keys == nil {
		for _, digest := range digests {
			parts = append(parts, []byte(digest.Key), digest.Sum[:])
		}
	}
	for _, key := range keys {
		var content []byte
		if sum, found := digests.Sum(key); found {
			content = sum[:]
		}
		parts = append(parts, []byte(key), content)
	}
	sum := hasher.Of("reload content", parts...)
	return EntrySum(sum[:])
}
