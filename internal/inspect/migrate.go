package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/migrate"
	"github.com/headwater-k8s/headwater/internal/migrate/ir"
	"github.com/headwater-k8s/headwater/internal/migrate/kyverno"
	"github.com/headwater-k8s/headwater/internal/object"
)

// pageSize is how many objects one list request returns.
const pageSize = 500

// Migratable reads what other tools are told to do: the metadata of Secrets and
// ConfigMaps, and Kyverno's policies where there are any.
func Migratable(ctx context.Context, options Options) (migrate.Input, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var found migrate.Input
	clients, err := kube.Connect(options.Kubeconfig, options.UserAgent)
	if err != nil {
		return found, err
	}
	for _, kind := range object.Kinds {
		resource := corev1.SchemeGroupVersion.WithResource(kind.Resource())
		err := pages(ctx, func(page metav1.ListOptions) (string, error) {
			list, err := clients.Metadata.Resource(resource).List(ctx, page)
			if err != nil {
				return "", fmt.Errorf("list %s: %w", resource.Resource, err)
			}
			for _, item := range list.Items {
				found.Objects = append(found.Objects, ir.NewObject(kind, item.ObjectMeta))
			}
			return list.Continue, nil
		})
		if err != nil {
			return found, err
		}
	}
	served, err := kyvernoServes(clients)
	if err != nil {
		return found, err
	}
	for _, resource := range served {
		if err := addPolicies(ctx, clients, resource, &found); err != nil {
			return found, err
		}
	}
	return found, nil
}

// kyvernoServes returns the policy kinds that the cluster serves, each once, so that
// a user without permission to list them gets an error only if they exist.
func kyvernoServes(clients *kube.Clients) ([]schema.GroupVersionResource, error) {
	groups, err := clients.Typed.Discovery().ServerGroups()
	if err != nil {
		return nil, fmt.Errorf("ask which groups are served: %w", err)
	}
	var served []schema.GroupVersionResource
	for _, group := range groups.Groups {
		if group.Name != kyverno.KyvernoGroup && group.Name != kyverno.KyvernoCELGroup {
			continue
		}
		for _, version := range group.Versions {
			more, err := policiesOf(clients, schema.GroupVersion{Group: group.Name, Version: version.Version})
			if err != nil {
				return nil, err
			}
			for _, resource := range more {
				if !slices.ContainsFunc(served, func(have schema.GroupVersionResource) bool {
					return have.GroupResource() == resource.GroupResource()
				}) {
					served = append(served, resource)
				}
			}
		}
	}
	return served, nil
}

func policiesOf(clients *kube.Clients, version schema.GroupVersion) ([]schema.GroupVersionResource, error) {
	list, err := clients.Typed.Discovery().ServerResourcesForGroupVersion(version.String())
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ask for the kinds of %s: %w", version, err)
	}
	var served []schema.GroupVersionResource
	for _, resource := range list.APIResources {
		if migrate.IsPolicy(version.Group, resource.Kind) && !strings.Contains(resource.Name, "/") {
			served = append(served, version.WithResource(resource.Name))
		}
	}
	return served, nil
}

func addPolicies(ctx context.Context, clients *kube.Clients, resource schema.GroupVersionResource, found *migrate.Input) error {
	return pages(ctx, func(page metav1.ListOptions) (string, error) {
		list, err := clients.Dynamic.Resource(resource).List(ctx, page)
		if err != nil {
			return "", fmt.Errorf("list %s: %w", resource.GroupResource(), err)
		}
		for _, item := range list.Items {
			raw, err := item.MarshalJSON()
			if err == nil {
				err = found.AddPolicy(resource.Group, item.GetKind(), raw)
			}
			if err != nil {
				return "", fmt.Errorf("read %s %s: %w", item.GetKind(), item.GetName(), err)
			}
		}
		return list.GetContinue(), nil
	})
}

// pages calls list until it returns no continue token.
func pages(ctx context.Context, list func(metav1.ListOptions) (string, error)) error {
	page := metav1.ListOptions{Limit: pageSize}
	for {
		next, err := list(page)
		if err != nil || next == "" {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		page.Continue = next
	}
}
