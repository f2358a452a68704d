package object

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/digest"
)

// KeyDigest is the keyed digest of one value of an object.
type KeyDigest struct {
	Key string
	Sum digest.Sum
}

// Digests holds one KeyDigest per key, sorted by key.
type Digests []KeyDigest

// Sum returns the digest of one key's value.
func (d Digests) Sum(key string) (digest.Sum, bool) {
	at, found := slices.BinarySearchFunc(d, key, func(k KeyDigest, key string) int {
		return strings.Compare(k.Key, key)
	})
	if !found {
		return digest.Sum{}, false
	}
	return d[at].Sum, true
}

// Digested is an object whose payload was replaced by digests of its values,
// so that a cache of many clones stays small and holds no secret byte. It implements
// those methods of metav1.Object that its readers and caches call.
type Digested struct {
	*Common

	Namespace, Name   string
	UID               types.UID
	ResourceVersion   string
	CreationTimestamp metav1.Time
	// ChangedAt is when the payload was last written, by the API server's
	// clock, in whole seconds; zero when the API server does not tell.
	ChangedAt time.Time
	// rest is the whole metadata of an object that has more of it than most; else nil.
	rest *metav1.ObjectMeta
}

// Place is what the marks of a clone say about where it is. It is judged where the whole
// object is at hand, so that clones can share their annotations.
type Place uint8

// The places. NoPlace is of objects without that mark, such as clones by earlier builds.
const (
	NoPlace   Place = iota
	Here            // the marks name the object itself
	Elsewhere       // they name another object, of which this one is a copy
)

// Common is the part of a Digested that is usually the same for all clones of a
// source, which then share it. Nobody may modify it.
type Common struct {
	metav1.Object // nil: methods that Digested does not implement panic

	Kind      Kind
	Type      string
	Immutable bool
	Digests   Digests

	// Annotations lack the one that Place is judged by; see kube.Describe.
	Labels, Annotations map[string]string
	// Place is where the marks say that the object is.
	Place Place
	// LabelsByUs and AnnotationsByUs are the keys that Headwater wrote beside
	// its marks; only caches set them.
	LabelsByUs, AnnotationsByUs []string
	// MadeByUs is true for what Headwater made, as far as field managers tell;
	// only caches set it, and of what bears marks that can be read they do not ask.
	MadeByUs bool
}

// Equal reports whether c and other have the same content.
func (c *Common) Equal(other *Common) bool {
	return c.Kind == other.Kind && c.Type == other.Type && c.Immutable == other.Immutable && c.MadeByUs == other.MadeByUs && c.Place == other.Place &&
		slices.Equal(c.Digests, other.Digests) && maps.Equal(c.Labels, other.Labels) && maps.Equal(c.Annotations, other.Annotations) &&
		slices.Equal(c.LabelsByUs, other.LabelsByUs) && slices.Equal(c.AnnotationsByUs, other.AnnotationsByUs)
}

// NewDigested returns an object with that metadata and content. It does not keep
// managed fields.
func NewDigested(meta metav1.ObjectMeta, common Common) *Digested {
	common.Labels, common.Annotations = meta.Labels, meta.Annotations
	d := &Digested{
		Common: &common, Namespace: meta.Namespace, Name: meta.Name, UID: meta.UID, ResourceVersion: meta.ResourceVersion,
		CreationTimestamp: meta.CreationTimestamp,
	}
	if meta.DeletionTimestamp != nil || meta.GenerateName != "" || len(meta.OwnerReferences)+len(meta.Finalizers) > 0 {
		rest := meta
		rest.ManagedFields = nil
		d.rest = &rest
	}
	return d
}

// Ref returns the object's reference.
func (d *Digested) Ref() Ref { return Ref{Kind: d.Kind, Namespace: d.Namespace, Name: d.Name} }

// IsTerminating reports whether the object is being deleted.
func (d *Digested) IsTerminating() bool { return d.rest != nil && d.rest.DeletionTimestamp != nil }

// Meta returns the object's metadata without managed fields. The maps are shared.
func (d *Digested) Meta() metav1.ObjectMeta {
	var meta metav1.ObjectMeta
	if d.rest != nil {
		meta = *d.rest
	}
	meta.Namespace, meta.Name, meta.UID, meta.ResourceVersion = d.Namespace, d.Name, d.UID, d.ResourceVersion
	meta.CreationTimestamp, meta.Labels, meta.Annotations = d.CreationTimestamp, d.Labels, d.Annotations
	return meta
}

// GetNamespace implements metav1.Object.
func (d *Digested) GetNamespace() string { return d.Namespace }

// GetName implements metav1.Object.
func (d *Digested) GetName() string { return d.Name }

// GetUID implements metav1.Object.
func (d *Digested) GetUID() types.UID { return d.UID }

// GetResourceVersion implements metav1.Object.
func (d *Digested) GetResourceVersion() string { return d.ResourceVersion }

// GetLabels implements metav1.Object.
func (d *Digested) GetLabels() map[string]string { return d.Labels }

// GetAnnotations implements metav1.Object.
func (d *Digested) GetAnnotations() map[string]string { return d.Annotations }

// Digest computes the digest of every key of c. A value under data and the
// same value under binaryData have different sums.
func Digest(h *digest.Hasher, c Content) Digests {
	digests := make(Digests, 0, len(c.Data)+len(c.BinaryData))
	for key, value := range c.Data {
		digests = append(digests, KeyDigest{key, digestData(h, value)})
	}
	for key, value := range c.BinaryData {
		digests = append(digests, KeyDigest{key, h.Of("binaryData", value)})
	}
	slices.SortFunc(digests, func(a, b KeyDigest) int { return strings.Compare(a.Key, b.Key) })
	return digests
}

func digestData(h *digest.Hasher, value []byte) digest.Sum { return h.Of("data", value) }

// EmptyOf reports whether no key among keys, or no key at all if that is nil, has a value, as
// far as d shows; h made d.
func (d Digests) EmptyOf(h *digest.Hasher, keys []string) bool {
	none := []digest.Sum{digestData(h, nil), h.Of("binaryData", nil)}
	return !slices.ContainsFunc(d, func(one KeyDigest) bool {
		return (keys == nil || slices.Contains(keys, one.Key)) && !slices.Contains(none, one.Sum)
	})
}

// DigestText is the digest of text as Digest computes it for a value under
// data.
func DigestText(h *digest.Hasher, text string) digest.Sum { return digestData(h, []byte(text)) }

// Digested drops the payload of f. It reuses f.Digests when they are there.
func (f *Full) Digested(h *digest.Hasher) *Digested {
	digests := f.Digests
	if digests == nil {
		digests = Digest(h, f.Content)
	}
	digested := NewDigested(f.ObjectMeta, Common{Kind: f.Kind, Type: f.Content.Type, Immutable: f.Content.Immutable, Digests: digests})
	digested.ChangedAt = f.ChangedAt()
	return digested
}

// ChangedAt is when the payload was last written; see Digested.ChangedAt.
func (f *Full) ChangedAt() time.Time { return payloadChangedAt(f.ManagedFields) }

// payloadChangedAt is the latest time at which a field manager that owns part
// of the payload wrote the object. Field ownership is described in
// https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management.
func payloadChangedAt(entries []metav1.ManagedFieldsEntry) time.Time {
	at, _ := lastPayloadWrite(entries)
	return at
}

// LastEditor returns the field manager that last wrote the payload; empty if the
// API server does not tell.
func (f *Full) LastEditor() string {
	_, manager := lastPayloadWrite(f.ManagedFields)
	return manager
}

func lastPayloadWrite(entries []metav1.ManagedFieldsEntry) (latest time.Time, manager string) {
	for _, entry := range entries {
		if entry.Time == nil || entry.FieldsV1 == nil {
			continue
		}
		raw := entry.FieldsV1.GetRawBytes()
		ownsPayload := bytes.Contains(raw, []byte(`"f:data"`)) || bytes.Contains(raw, []byte(`"f:binaryData"`))
		if ownsPayload && entry.Time.After(latest) {
			latest, manager = entry.Time.Time, entry.Manager
		}
	}
	return latest, manager
}
