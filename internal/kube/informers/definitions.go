package informers

import (
	"fmt"
	"strings"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"github.com/headwater-k8s/headwater/internal/kube"
)

// Definition is the cached part of a CustomResourceDefinition: its name and version.
type Definition struct{ minimalMeta }

// group returns the API group of the defined kind. The name of a definition is the
// resource, a dot and the group.
func (d *Definition) group() string {
	_, group, _ := strings.Cut(d.Name, ".")
	return group
}

// NewDefinitions returns a cache of all CustomResourceDefinitions. Its changes
// trigger discovery.
func NewDefinitions(clients *kube.Clients, log *zap.Logger) (*View[*Definition], error) {
	gvr := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	informer := metadatainformer.NewFilteredMetadataInformer(clients.Metadata, gvr, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	return NewView("custom resource definitions", informer, log, keepDefinition)
}

func keepDefinition(obj any) (*Definition, error) {
	meta, ok := obj.(metav1.Object)
	if !ok {
		return nil, fmt.Errorf("object of type %T has no metadata", obj)
	}
	return &Definition{minimalMetaOf(meta)}, nil
}
