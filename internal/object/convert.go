package object

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

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
