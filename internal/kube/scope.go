package kube

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
)

// Scope is the part of a cluster that caches read. The zero Scope is all of it.
type Scope struct {
	// Namespace is the only namespace to read; empty for all.
	Namespace string
	// Lacking are the permissions that the user does not have there. Caches of such
	// resources send no request and stay empty.
	Lacking []Permission
}

// Reads reports whether caches hold the objects of resource, such as secrets.
func (s Scope) Reads(resource string) bool {
	for _, lacking := range s.Lacking {
		if lacking.Resource == resource {
			return false
		}
	}
	return true
}

// Needed returns needed, or a function that returns false if s does not read resource.
func (s Scope) Needed(resource string, needed func() bool) func() bool {
	if s.Reads(resource) {
		return needed
	}
	return func() bool { return false }
}

// String describes what s does not read; empty if it reads everything.
func (s Scope) String() string {
	if len(s.Lacking) == 0 {
		return ""
	}
	var resources []string
	for _, lacking := range s.Lacking {
		resources = append(resources, lacking.Resource)
	}
	return fmt.Sprintf("could not read %s in namespace %s (forbidden)", strings.Join(resources, ", "), s.Namespace)
}

// NamespaceInformer returns an informer of the one namespace of a Scope, which it reads
// once. Permissions in a namespace allow to get it, but not to list or watch namespaces.
func NamespaceInformer(client metadata.Interface, name string) cache.SharedIndexInformer {
	get := func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
		found, err := client.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return &metav1.PartialObjectMetadataList{}, nil
		}
		if err != nil {
			return nil, err
		}
		list := &metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{*found}}
		list.ResourceVersion = found.ResourceVersion
		return list, nil
	}
	return informerOf(get)
}

// EmptyInformer returns an informer of a resource that a Scope does not read: it sends no
// request, and is synced at once.
func EmptyInformer() cache.SharedIndexInformer {
	return informerOf(func(context.Context, metav1.ListOptions) (runtime.Object, error) {
		return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "0"}}, nil
	})
}

// informerOf returns an informer that reads once what list returns.
func informerOf(list cache.ListWithContextFunc) cache.SharedIndexInformer {
	never := func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil }
	source := readOnce{&cache.ListWatch{ListWithContextFunc: list, WatchFuncWithContext: never}}
	return cache.NewSharedIndexInformer(source, &metav1.PartialObjectMetadata{}, 0, cache.Indexers{})
}

// readOnce makes client-go list before it watches.
type readOnce struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported is what client-go asks for.
func (readOnce) IsWatchListSemanticsUnSupported() bool { return true }
