package plan

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/propagation"
	"github.com/headwater-k8s/headwater/sync/spec"
)

// Desired returns the clone of source that rule wants in namespace, without the
// fields that the API server fills in. It shares its values with source.
func Desired(rule spec.Rule, source *object.Full, namespace string) *object.Full {
	desired := &object.Full{
		ObjectMeta: object.NewMeta(rule.TargetRef(source.Ref(), namespace)),
		Kind:       source.Kind,
		Content:    source.Content,
		Digests:    source.Digests,
	}
	desired.Labels = chosen(source.Labels, rule.Target.CopyLabels, rule.Target.Labels)
	desired.Annotations = chosen(source.Annotations, rule.Target.CopyAnnotations, rule.Target.Annotations)
	marks := mark.Clone{Rule: rule.Name, Source: source.Ref(), SourceUID: source.UID, SourceVersion: source.ResourceVersion}
	if rule.OnRuleRemoved == spec.Delete {
		marks.OnRuleRemoved = string(spec.Delete)
	}
	mark.Stamp(&desired.ObjectMeta, marks)
	if len(rule.Target.Keys) > 0 {
		selectKeys(desired, rule.Target.Keys)
	}
	return desired
}

// desired is Desired for the candidate. The clone of a rule with a delivery names
// its revision.
func (c Candidate) desired(namespace string) *object.Full {
	desired := Desired(*c.Rule, c.Source, namespace)
	if c.Revision > 0 {
		desired.Annotations[mark.Revision] = strconv.Itoa(c.Revision)
	}
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

// selectKeys reduces o to these keys. If a key is missing that the source's Secret
// type requires, the type becomes Opaque.
func selectKeys(o *object.Full, keys []spec.KeyMapping) {
	content := object.Content{Type: o.Content.Type, Immutable: o.Content.Immutable, Data: map[string][]byte{}, BinaryData: map[string][]byte{}}
	var digests object.Digests
	for _, key := range keys {
		if value, found := o.Content.Data[key.From]; found {
			content.Data[key.Target()] = value
		} else if value, found := o.Content.BinaryData[key.From]; found {
			content.BinaryData[key.Target()] = value
		}
		if sum, found := o.Digests.Sum(key.From); found {
			digests = append(digests, object.KeyDigest{Key: key.Target(), Sum: sum})
		}
	}
	slices.SortFunc(digests, func(a, b object.KeyDigest) int { return strings.Compare(a.Key, b.Key) })
	if lacksKeys(content) {
		content.Type = string(corev1.SecretTypeOpaque)
	}
	o.Content, o.Digests = content, digests
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
// of the source that the rule does not copy.
func matches(desired *object.Full, clone *object.Digested) bool {
	return samePayload(desired, clone) &&
		includes(clone.Labels, desired.Labels) && len(stale(clone.Labels, desired.Labels, clone.LabelsByUs)) == 0 &&
		includes(clone.Annotations, desired.Annotations) && len(stale(clone.Annotations, desired.Annotations, clone.AnnotationsByUs)) == 0
}

func samePayload(desired *object.Full, live *object.Digested) bool {
	return live.Type == desired.Content.Type &&
		live.Immutable == desired.Content.Immutable &&
		slices.Equal(live.Digests, desired.Digests)
}

func includes(all, some map[string]string) bool {
	for key, value := range some {
		if got, found := all[key]; (!found || got != value) && key != mark.SourceVersion {
			return false
		}
	}
	return true
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
// in byUs, and those in Headwater's own domain. The report on the consumers of a
// delivered revision is not stale: reload writes it.
func stale(live, desired map[string]string, byUs []string) []string {
	var keys []string
	for key := range live {
		_, wanted := desired[key]
		if key == mark.Consumers {
			_, wanted = desired[mark.Revision]
		}
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
