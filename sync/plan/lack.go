package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/spec"
)

// Lack is what makes a source an emptied one: What its clones would not have, although they
// need it; empty if they have everything. ID identifies the type, the cloned keys and which of
// them have no value, and tells nothing of a value. An approval is for an ID.
type Lack struct{ What, ID string }

// lackOf returns what the clones of source by rule would lack, with that content: any value at
// all, or one in the keys that their type requires. A source without a key that is cloned lacks
// nothing in this sense: no approval delivers it.
func lackOf(rule *spec.Rule, source *object.Full, content object.Content) Lack {
	missing := func(key spec.KeyMapping) bool { _, found := source.Digests.Sum(key.From); return !found }
	what := lackingValue(content)
	if what == "" || slices.ContainsFunc(rule.Target.Keys, missing) {
		return Lack{}
	}
	hash := sha256.New()
	_, _ = fmt.Fprintf(hash, "%q", content.Type)
	for _, values := range []map[string][]byte{content.Data, content.BinaryData} {
		for _, key := range slices.Sorted(maps.Keys(values)) {
			_, _ = fmt.Fprintf(hash, "%q%t", key, len(values[key]) == 0)
		}
	}
	return Lack{what, hex.EncodeToString(hash.Sum(nil)[:16])}
}

func lackingValue(content object.Content) string {
	if content.Empty() {
		return "no value in any key that is cloned"
	}
	for _, anyOf := range requiredKeys[corev1.SecretType(content.Type)] {
		if !slices.ContainsFunc(anyOf, func(key string) bool { return len(content.Data[key]) > 0 }) {
			return fmt.Sprintf("no value in its key %s, which its type %s needs", strings.Join(anyOf, " or "), content.Type)
		}
	}
	return ""
}
