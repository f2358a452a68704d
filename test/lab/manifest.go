package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// Apply creates or overwrites every object of a YAML file, as kubectl apply
// --server-side would.
func Apply(ctx context.Context, config *rest.Config, file string) error {
	return apply(ctx, config, file, metav1.ApplyOptions{})
}

// Accepted is Apply without an effect: it fails where the API server refuses an
// object. Their namespace must be there.
func Accepted(ctx context.Context, config *rest.Config, file string) error {
	return apply(ctx, config, file, metav1.ApplyOptions{DryRun: []string{metav1.DryRunAll}})
}

func apply(ctx context.Context, config *rest.Config, file string, options metav1.ApplyOptions) error {
	options.FieldManager, options.Force = "lab", true
	objects, err := read(config, file)
	for _, object := range objects {
		if err == nil {
			_, err = object.client.Apply(ctx, object.GetName(), object.Unstructured, options)
			err = object.named("apply", err)
		}
	}
	return err
}

// Remove deletes every object of a YAML file that is there, the last one first.
func Remove(ctx context.Context, config *rest.Config, file string) error {
	objects, err := read(config, file)
	for _, object := range slices.Backward(objects) {
		if err == nil {
			err = object.named("delete", IgnoreGone(object.client.Delete(ctx, object.GetName(), metav1.DeleteOptions{})))
		}
	}
	return err
}

// manifest is one object of a file, and the client of its kind and namespace.
type manifest struct {
	*unstructured.Unstructured

	client dynamic.ResourceInterface
}

func (m manifest) named(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s %s: %w", doing, m.GetKind(), m.GetName(), err)
}

// read returns the objects of a YAML file.
func read(config *rest.Config, file string) (objects []manifest, err error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	known, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	groups, err := restmapper.GetAPIGroupResources(known)
	if err != nil {
		return nil, fmt.Errorf("read what the API server serves: %w", err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), len(content))
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		kind := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		objects = append(objects, manifest{object, client.Resource(mapping.Resource).Namespace(object.GetNamespace())})
	}
}
