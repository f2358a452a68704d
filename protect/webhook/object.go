package webhook

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/object"
)

// reviewed is an object of a review. Its fields are those that decisions need.
type reviewed interface {
	// full returns the object under the kind that it says it has; nil if it is not
	// complete.
	full() *object.Full
}

type secret struct {
	metav1.TypeMeta

	Metadata   metadata  `json:"metadata"`
	Type       string    `json:"type"`
	Data       base64Map `json:"data"`
	StringData stringMap `json:"stringData"`
	Immutable  *bool     `json:"immutable"`
}

func (s *secret) full() *object.Full {
	if len(s.StringData) > 0 { // the API server moves it to data before it sends a review
		return nil
	}
	return fullOf(s.TypeMeta, &s.Metadata, object.Content{Type: s.Type, Data: s.Data, Immutable: isTrue(s.Immutable)})
}

type configMap struct {
	metav1.TypeMeta

	Metadata   metadata  `json:"metadata"`
	Data       textMap   `json:"data"`
	BinaryData base64Map `json:"binaryData"`
	Immutable  *bool     `json:"immutable"`
}

func (c *configMap) full() *object.Full {
	return fullOf(c.TypeMeta, &c.Metadata, object.Content{Data: c.Data, BinaryData: c.BinaryData, Immutable: isTrue(c.Immutable)})
}

type namespace struct {
	metav1.TypeMeta

	Metadata metadata `json:"metadata"`
	Spec     unread   `json:"spec"`
	Status   unread   `json:"status"`
}

func (n *namespace) full() *object.Full { return fullOf(n.TypeMeta, &n.Metadata, object.Content{}) }

// metadata is an ObjectMeta. Managed fields are the larger part of many objects.
type metadata struct {
	metav1.ObjectMeta

	Labels            stringMap `json:"labels"`
	Annotations       stringMap `json:"annotations"`
	CreationTimestamp unread    `json:"creationTimestamp"`
	ManagedFields     unread    `json:"managedFields"`
}

func fullOf(meta metav1.TypeMeta, in *metadata, content object.Content) *object.Full {
	if meta.APIVersion != "v1" {
		return nil
	}
	full := &object.Full{ObjectMeta: in.ObjectMeta, Kind: object.Kind(meta.Kind), Content: content}
	full.Labels, full.Annotations = in.Labels, in.Annotations
	return full
}

func isTrue(value *bool) bool { return value != nil && *value }
