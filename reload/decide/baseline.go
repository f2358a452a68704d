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

// baseline is the data that a workload is known to run, or that a pod's
// volumes were last refreshed for: one short sum per reference. As text it is
//
//	v2:<key id>:<reference>=<sum>,<reference>=<sum>,…
//
// in lower-case hexadecimal, sorted. References and sums are keyed, and made for
// one reference of one object alone, so that the text tells nothing about names
// or values: not even whether two objects read the same value.
type baseline struct {
	// KeyID names the key that the sums were made with.
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

// errBaselineUnreadable is returned by ParseBaseline for every text that this
// version of Headwater did not write.
var errBaselineUnreadable = errors.New("baseline is unreadable")

func newBaseline(keyID string) baseline {
	return baseline{keyID: keyID, entries: map[EntryID]EntrySum{}}
}

// parseBaseline is the inverse of Baseline.String. It fails with
// ErrBaselineUnreadable.
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
	// Neither can fail: both are hexadecimal and of the right length.
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

// refDigest is what a reference of one object is made different by from every other
// reference. The UID of the object makes an annotation that was copied to another
// one a first sight there, not a change.
type refDigest digest.Sum

func newRefDigest(hasher *digest.Hasher, owner types.UID, r refs.Reference) refDigest {
	parts := [][]byte{[]byte(owner), []byte(r.Kind), []byte(r.Name)}
	for _, key := range r.Keys {
		parts = append(parts, []byte(key))
	}
	return refDigest(hasher.Of("reload reference", parts...))
}

// id names the reference in a baseline.
func (p refDigest) id() EntryID { return EntryID(p[:]) }

// frozenID names it while kubelets hold its object for immutable.
func (p refDigest) frozenID() EntryID { return EntryID(p[len(EntryID{}):]) }

// sum sums up the keys that are consumed, nil meaning all. A key that is
// missing counts, as missing. Owners may list objects of their own making, so a
// sum that depended on the data alone would tell them whether they guessed what
// others keep secret.
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
