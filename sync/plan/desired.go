package plan

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/propagation"
	"github.com/headwater-k8s/headwater/sync/spec"
)

// Wanted is what a rule wants of all clones of one source: everything but the namespace
// and the values. Callers must not modify it.
type Wanted struct {
	object.Common

	Lacks Lack
	// tooLarge is the refusal of a clone that exceeds a size limit; nil if it does not.
	tooLarge *Decision
}

// NewWanted returns what rule wants of the clones of source. They name that revision of
// it; none if it is 0.
func NewWanted(rule *spec.Rule, source *object.Full, revision int) *Wanted {
	meta := metav1.ObjectMeta{
		Labels:      chosen(source.Labels, rule.Target.CopyLabels, rule.Target.Labels),
		Annotations: chosen(source.Annotations, rule.Target.CopyAnnotations, rule.Target.Annotations),
	}
	marks := mark.Clone{Rule: rule.Name, Source: source.Ref(), SourceUID: source.UID, SourceVersion: source.ResourceVersion}
	if rule.OnRuleRemoved == spec.Delete {
		marks.OnRuleRemoved = string(spec.Delete)
	}
	mark.Stamp(&meta, marks)
	if rule.ReloadAction != "" {
		meta.Annotations[mark.ReloadAction] = rule.ReloadAction
	}
	if revision > 0 {
		meta.Annotations[mark.Revision] = strconv.Itoa(revision)
	}
	content := selected(rule.Target.Keys, source.Content)
	return &Wanted{
		Common: object.Common{
			Kind: source.Kind, Type: content.Type, Immutable: content.Immutable, Digests: selectedDigests(rule.Target.Keys, source.Digests),
			Labels: meta.Labels, Annotations: meta.Annotations,
		},
		Lacks:    lackOf(rule, source, content),
		tooLarge: oversize(meta, rule.TargetRef(source.Ref(), "").Name, content),
	}
}

func (c Candidate) wanted() *Wanted {
	if c.Wanted != nil {
		return c.Wanted
	}
	return NewWanted(c.Rule, c.Source, c.Revision)
}

// Desired returns the clone that c wants in namespace, without the fields that the API
// server fills in. It shares its labels and values.
func (c Candidate) Desired(namespace string) *object.Full {
	wanted := c.wanted()
	desired := &object.Full{
		ObjectMeta: object.NewMeta(c.Rule.TargetRef(c.Source.Ref(), namespace)),
		Kind:       wanted.Kind,
		Content:    selected(c.Rule.Target.Keys, c.Source.Content),
		Digests:    wanted.Digests,
	}
	desired.Labels, desired.Annotations = wanted.Labels, mark.WithPlace(wanted.Annotations, desired)
	return desired
}

// DifferInContentAlone reports whether two versions of a source differ, as far as its
// clones by rule are concerned, in nothing but their content.
func DifferInContentAlone(rule spec.Rule, before, after *object.Full) bool {
	copied := func(source *object.Full) map[string]string {
		return chosen(source.Annotations, rule.Target.CopyAnnotations, nil)
	}
	return before.UID == after.UID && (before.DeletionTimestamp == nil) == (after.DeletionTimestamp == nil) &&
		maps.Equal(before.Labels, after.Labels) && maps.Equal(copied(before), copied(after))
}

// chosen returns the entries of from that a glob allows, overwritten by more. It may
// return more itself.
func chosen(from map[string]string, globs []string, more map[string]string) map[string]string {
	out, shared := more, true
	for key, value := range from {
		if _, overwritten := more[key]; overwritten || !propagation.Copies(globs, key) {
			continue
		}
		if shared {
			out, shared = object.Merged(nil, more), false
		}
		out[key] = value
	}
	return out
}

// selected returns content with these keys alone; all of it if there are none. If a key
// is missing that the Secret's type requires, the type becomes Opaque.
func selected(keys []spec.KeyMapping, content object.Content) object.Content {
	if len(keys) == 0 {
		return content
	}
	part := object.Content{Type: content.Type, Immutable: content.Immutable, Data: map[string][]byte{}, BinaryData: map[string][]byte{}}
	for _, key := range keys {
		if value, found := content.Data[key.From]; found {
			part.Data[key.Target()] = value
		} else if value, found := content.BinaryData[key.From]; found {
			part.BinaryData[key.Target()] = value
		}
	}
	if lacksKeys(part) {
		part.Type = string(corev1.SecretTypeOpaque)
	}
	return part
}

// selectedDigests returns the digests of what selected returns.
func selectedDigests(keys []spec.KeyMapping, digests object.Digests) object.Digests {
	if len(keys) == 0 {
		return digests
	}
	var part object.Digests
	for _, key := range keys {
		if sum, found := digests.Sum(key.From); found {
			part = append(part, object.KeyDigest{Key: key.Target(), Sum: sum})
		}
	}
	slices.SortFunc(part, func(a, b object.KeyDigest) int { return strings.Compare(a.Key, b.Key) })
	return part
}

// requiredKeys lists the keys that the API server requires of a Secret of a
// built-in type: https://kubernetes.io/docs/concepts/configuration/secret/#secret-types.
// One key of each inner list is enough.
var requiredKeys = map[corev1.SecretType][][]string{
	corev1.SecretTypeDockercfg:        {{corev1.DockerConfigKey}},
	corev1.SecretTypeDockerConfigJson: {{corev1.DockerConfigJsonKey}},
	corev1.SecretTypeBasicAuth:        {{corev1.BasicAuthUsernameKey, corev1.BasicAuthPasswordKey}},
	corev1.SecretTypeSSHAuth:          {{corev1.SSHAuthPrivateKey}},
	corev1.SecretTypeTLS:              {{corev1.TLSCertKey}, {corev1.TLSPrivateKeyKey}},
}

// lacksKeys reports whether content lacks a key that its type requires.
func lacksKeys(content object.Content) bool {
	return slices.ContainsFunc(requiredKeys[corev1.SecretType(content.Type)], func(anyOf []string) bool {
		return !slices.ContainsFunc(anyOf, func(key string) bool { _, found := content.Data[key]; return found })
	})
}

// matches reports whether clone needs no write. It ignores labels and annotations
// that others added. It also ignores the source's version: that changes with parts
// of the source that the rule does not copy, and the action of reloads.
func (w *Wanted) matches(clone *object.Digested) bool { return w.difference(clone) == "" }

// difference returns the first field for which clone needs a write; empty if there is
// none.
func (w *Wanted) difference(clone *object.Digested) string {
	switch {
	case clone.Type != w.Type:
		return "type"
	case !slices.Equal(clone.Digests, w.Digests):
		return "data." + differingKey(clone.Digests, w.Digests)
	case clone.Immutable != w.Immutable:
		return "immutable"
	}
	if keys := differing(clone.Labels, w.Labels, clone.LabelsByUs); len(keys) > 0 {
		return "metadata.labels." + slices.Min(keys)
	}
	keys := differing(clone.Annotations, w.Annotations, clone.AnnotationsByUs)
	// An earlier version reported on consumers; that is removed with the next write.
	outdated := func(key string) bool { return key == mark.Consumers || key == mark.ReloadAction }
	if keys = slices.DeleteFunc(keys, outdated); len(keys) > 0 {
		return "metadata.annotations." + slices.Min(keys)
	}
	return ""
}

// Undone returns the first field that the API server stored otherwise than s wants, because
// admission changed it; empty if it stored what s wants.
func (s State) Undone(stored *object.Digested) string { return s.Wanted().difference(stored) }

// Wanted is what the first candidate wants, which must have a source.
func (s State) Wanted() *Wanted { return s.Candidates[0].wanted() }

// Brings reports whether the object would, which a recreate would lead to, has anything
// that live lacks.
func Brings(would, live *object.Digested) bool {
	return !SamePayload(would, live) || len(differing(live.Labels, would.Labels, nil))+len(differing(live.Annotations, would.Annotations, nil)) > 0
}

// differingKey returns the first key of which two different digests differ.
func differingKey(a, b object.Digests) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return min(a[i].Key, b[i].Key)
		}
	}
	if len(a) < len(b) {
		a, b = b, a
	}
	return a[len(b)].Key
}

// HasPayloadOf reports whether live has the content that is wanted.
func (w *Wanted) HasPayloadOf(live *object.Digested) bool {
	return live.Type == w.Type && live.Immutable == w.Immutable && slices.Equal(live.Digests, w.Digests)
}

// SamePayload reports whether two clones have the same content.
func SamePayload(a, b *object.Digested) bool {
	return a.Type == b.Type && a.Immutable == b.Immutable && slices.Equal(a.Digests, b.Digests)
}

// AsSource returns source with the content of clone, under the names of the source's keys:
// a clone of it by rule has that content.
func AsSource(rule *spec.Rule, source, clone *object.Full) *object.Full {
	had := *source
	had.Content = clone.Content
	if len(rule.Target.Keys) == 0 {
		return &had
	}
	had.Content.Data, had.Content.BinaryData = map[string][]byte{}, map[string][]byte{}
	for _, key := range rule.Target.Keys {
		if value, found := clone.Content.Data[key.Target()]; found {
			had.Content.Data[key.From] = value
		} else if value, found := clone.Content.BinaryData[key.Target()]; found {
			had.Content.BinaryData[key.From] = value
		}
	}
	return &had
}

// differing returns the keys of wanted that live lacks or has another value of, and the
// stale ones.
func differing(live, wanted map[string]string, byUs []string) []string {
	keys := stale(live, wanted, byUs)
	for key, value := range wanted {
		if got, found := live[key]; (!found || got != value) && key != mark.SourceVersion {
			keys = append(keys, key)
		}
	}
	return keys
}

// isWithin reports whether some has every key of live.
func isWithin(live, some map[string]string) bool {
	for key := range live {
		if _, found := some[key]; !found {
			return false
		}
	}
	return true
}

// stale returns the keys of live that Headwater set and that desired lacks: those
// in byUs, and those in Headwater's own domain.
func stale(live, desired map[string]string, byUs []string) []string {
	var keys []string
	for key := range live {
		_, wanted := desired[key]
		if !wanted && (strings.HasPrefix(key, mark.Domain) || slices.Contains(byUs, key)) {
			keys = append(keys, key)
		}
	}
	return keys
}

// Overwritten returns live with the entries of desired and without stale keys. It may
// return desired itself, because most clones have nothing else.
func Overwritten(live, desired map[string]string, byUs []string) map[string]string {
	if isWithin(live, desired) {
		return desired
	}
	merged := object.Merged(live, desired)
	for _, key := range stale(live, desired, byUs) {
		delete(merged, key)
	}
	return merged
}
