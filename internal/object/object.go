// Package object is the one view Headwater has of Secrets and ConfigMaps.
//
// Both kinds become a Full (with payload, for sources) or a Digested (payload
// replaced by keyed digests, for everything else that is cached). The package
// is pure and talks to no cluster.
package object

import (
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Kind is the kind of a shared object.
type Kind string

// The kinds that Headwater shares.
const (
	Secret    Kind = "Secret"
	ConfigMap Kind = "ConfigMap"
)

// Kinds lists every supported kind.
var Kinds = []Kind{Secret, ConfigMap}

// Resource is the kind's lower-case plural, as RBAC and admission name it.
func (k Kind) Resource() string { return strings.ToLower(string(k)) + "s" }

// Ref names one object.
type Ref struct {
	Kind      Kind
	Namespace string
	Name      string
}

// String formats the reference as Kind/namespace/name, the form of the
// headwater.dev/source annotation.
func (r Ref) String() string {
	return string(r.Kind) + "/" + r.Namespace + "/" + r.Name
}

// The API server's limits: DNS1123LabelMaxLength and DNS1123SubdomainMaxLength of
// apimachinery's validation.
const (
	maxNamespaceLength = 63
	maxNameLength      = 253
)

// ParseRef is the inverse of Ref.String. What is longer than the names of
// objects is none.
func ParseRef(s string) (Ref, error) {
	first, rest, _ := strings.Cut(s, "/")
	namespace, name, _ := strings.Cut(rest, "/")
	if namespace == "" || name == "" || strings.Contains(name, "/") || len(namespace) > maxNamespaceLength || len(name) > maxNameLength {
		return Ref{}, fmt.Errorf("object reference %q is not Kind/namespace/name", s)
	}
	kind := Kind(first)
	if kind != Secret && kind != ConfigMap {
		return Ref{}, fmt.Errorf("object reference %q: kind is neither Secret nor ConfigMap", s)
	}
	return Ref{Kind: kind, Namespace: namespace, Name: name}, nil
}

// Content is the payload of a Secret or ConfigMap.
type Content struct {
	// Type is the Secret's type; empty for a ConfigMap.
	Type string
	// Data holds Secret.data or ConfigMap.data.
	Data map[string][]byte
	// BinaryData holds ConfigMap.binaryData; empty for a Secret.
	BinaryData map[string][]byte
	// Immutable mirrors the field of the same name; nil counts as false.
	Immutable bool
}

// Empty reports whether the content holds no value: no key at all, or only keys without one.
func (c Content) Empty() bool {
	hasValue := func(data map[string][]byte) bool {
		for _, value := range data {
			if len(value) > 0 {
				return true
			}
		}
		return false
	}
	return !hasValue(c.Data) && !hasValue(c.BinaryData)
}

// Merged returns a new map with the entries of both; those of ours win.
func Merged(theirs, ours map[string]string) map[string]string {
	merged := make(map[string]string, len(theirs)+len(ours))
	maps.Copy(merged, theirs)
	maps.Copy(merged, ours)
	return merged
}

// Full is an object with its payload. Values are shared with the cache they
// came from and must not be modified.
type Full struct {
	metav1.ObjectMeta

	Kind    Kind
	Content Content
	// Digests holds a sum for every key of Content, when the object came from
	// a cache; see Digest.
	Digests Digests
}

// Ref returns the object's reference.
func (f *Full) Ref() Ref { return Ref{Kind: f.Kind, Namespace: f.Namespace, Name: f.Name} }

// NewerThan reports whether version a is newer than b. Both are
// resourceVersions of one resource, which may be compared (KEP-5504). It is
// false when either is no number.
func NewerThan(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

// FromAPI reads a *corev1.Secret or *corev1.ConfigMap. The result shares the
// argument's maps and values.
func FromAPI(obj any) (*Full, error) {
	switch o := obj.(type) {
	case *corev1.Secret:
		return &Full{ObjectMeta: o.ObjectMeta, Kind: Secret, Content: Content{
			Type: string(o.Type), Data: o.Data, Immutable: o.Immutable != nil && *o.Immutable,
		}}, nil
	case *corev1.ConfigMap:
		data := make(map[string][]byte, len(o.Data))
		for key, value := range o.Data {
			data[key] = []byte(value)
		}
		return &Full{ObjectMeta: o.ObjectMeta, Kind: ConfigMap, Content: Content{
			Data: data, BinaryData: o.BinaryData, Immutable: o.Immutable != nil && *o.Immutable,
		}}, nil
	default:
		return nil, fmt.Errorf("object of type %T is neither a Secret nor a ConfigMap", obj)
	}
}

// ToAPI returns f as an API object.
func (f *Full) ToAPI() runtime.Object {
	if f.Kind == Secret {
		return f.ToSecret()
	}
	return f.ToConfigMap()
}

// ToSecret returns f as an API object; f must be a Secret.
func (f *Full) ToSecret() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: f.ObjectMeta,
		Type:       corev1.SecretType(f.Content.Type),
		Data:       f.Content.Data,
		Immutable:  immutable(f.Content),
	}
}

// ToConfigMap returns f as an API object; f must be a ConfigMap.
func (f *Full) ToConfigMap() *corev1.ConfigMap {
	data := make(map[string]string, len(f.Content.Data))
	for key, value := range f.Content.Data {
		data[key] = string(value)
	}
	return &corev1.ConfigMap{
		ObjectMeta: f.ObjectMeta,
		Data:       data,
		BinaryData: f.Content.BinaryData,
		Immutable:  immutable(f.Content),
	}
}

// NewMeta returns the metadata of a new object called ref.
func NewMeta(ref Ref) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name}
}

func immutable(c Content) *bool {
	if !c.Immutable {
		return nil
	}
	return &c.Immutable
}
