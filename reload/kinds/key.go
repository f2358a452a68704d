package kinds

import (
	"cmp"
)

// Key identifies one consumer, which is reconciled by itself.
type Key struct {
	Kind            Kind
	Namespace, Name string
}

// String formats the key as Kind/namespace/name.
func (k Key) String() string { return string(k.Kind) + "/" + k.Namespace + "/" + k.Name }

// Compare orders keys by kind, namespace and name. It returns -1, 0 or 1.
func (k Key) Compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Kind, other.Kind), cmp.Compare(k.Namespace, other.Namespace), cmp.Compare(k.Name, other.Name))
}
