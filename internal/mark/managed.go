package mark

// The label of objects that Headwater keeps for itself, which
// app.kubernetes.io recommends for tools that manage objects.
const (
	ManagedByLabel = "app.kubernetes.io/managed-by"
	ManagedBy      = "headwater"
)

// ManagedLabels are the labels of such an object.
func ManagedLabels() map[string]string { return map[string]string{ManagedByLabel: ManagedBy} }
