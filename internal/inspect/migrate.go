package inspect

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/migrate"
	"github.com/headwater-k8s/headwater/internal/object"
)

var kyvernoVersion = schema.GroupVersion{Group: migrate.KyvernoGroup, Version: "v1"}

// pageSize is how many objects are read at once.
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
				found.Objects = append(found.Objects, migrate.NewObject(kind, item.ObjectMeta))
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
		policies, err := policiesOf(ctx, clients, resource)
		if err != nil {
			return found, err
		}
		found.Policies = append(found.Policies, policies...)
	}
	return found, nil
}

// kyvernoServes are the kinds of policy that the cluster has: whoever may not
// list them is told so only where there are any.
func kyvernoServes(clients *kube.Clients) ([]string, error) {
	list, err := clients.Typed.Discovery().ServerResourcesForGroupVersion(kyvernoVersion.String())
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ask for the kinds of %s: %w", kyvernoVersion, err)
	}
	var served []string
	for _, resource := range list.APIResources {
		if resource.Name == "clusterpolicies" || resource.Name == "policies" {
			served = append(served, resource.Name)
		}
	}
	return served, nil
}

func policiesOf(ctx context.Context, clients *kube.Clients, resource string) ([]migrate.Policy, error) {
	gvr := kyvernoVersion.WithResource(resource)
	var policies []migrate.Policy
	err := pages(ctx, func(page metav1.ListOptions) (string, error) {
		list, err := clients.Dynamic.Resource(gvr).List(ctx, page)
		if err != nil {
			return "", fmt.Errorf("list %s: %w", gvr.GroupResource(), err)
		}
		for _, item := range list.Items {
			policy, err := policyOf(item)
			if err != nil {
				return "", fmt.Errorf("read %s %s: %w", item.GetKind(), item.GetName(), err)
			}
			policies = append(policies, policy)
		}
		return list.GetContinue(), nil
	})
	return policies, err
}

func policyOf(item unstructured.Unstructured) (migrate.Policy, error) {
	var policy migrate.Policy
	raw, err := item.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(raw, &policy)
	}
	return policy, err
}

// pages calls list until it returns no token of a further page.
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
