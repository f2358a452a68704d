package kinds

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/lab"
)

// kind is a kind that a test installs. Nothing reconciles its objects.
type kind struct {
	*env
	schema.GroupVersionResource

	name string
}

func (e *env) kind(group, version, name string) kind {
	resource := schema.GroupVersionResource{Group: group, Version: version, Resource: strings.ToLower(name) + "s"}
	return kind{e, resource, name}
}

// install has the API server serve the kind, with objects of any content, until
// it is removed or the test ends.
func (k kind) install() {
	k.Helper()
	k.installWith("{type: object, x-kubernetes-preserve-unknown-fields: true}")
}

func (k kind) installWith(schema string) {
	k.Helper()
	definition := k.Manifest(fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s}
spec:
  group: %s
  scope: Namespaced
  names: {kind: %s, plural: %s}
  versions:
  - name: %s
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: %s}
`, k.GroupResource(), k.Group, k.name, k.Resource, k.Version, schema))
	k.Eventually(func(ctx context.Context) error {
		_, err := k.Dynamic().Resource(lab.Definitions()).Create(ctx, definition, metav1.CreateOptions{})
		return err
	})
	k.Cleanup(func() {
		_ = k.Dynamic().Resource(lab.Definitions()).Delete(context.WithoutCancel(k.Context()), definition.GetName(), metav1.DeleteOptions{})
	})
	k.Eventually(func(ctx context.Context) error {
		_, err := k.Dynamic().Resource(k.GroupVersionResource).List(ctx, metav1.ListOptions{})
		return err
	})
}

// remove removes the kind, and with it every object.
func (k kind) remove() {
	k.Helper()
	require.NoError(k, k.Dynamic().Resource(lab.Definitions()).Delete(k.Context(), k.GroupResource().String(), metav1.DeleteOptions{}))
	k.Eventually(func(ctx context.Context) error {
		_, err := k.Dynamic().Resource(lab.Definitions()).Get(ctx, k.GroupResource().String(), metav1.GetOptions{})
		return lab.Gone(err)
	})
}

// grant lets Headwater work with the kind; the returned function takes it back.
func (k kind) grant() (revoke func()) {
	k.Helper()
	return k.grantTo(lab.ServiceAccount)
}

func (k kind) grantTo(user string) (revoke func()) {
	k.Helper()
	name := user + "-" + k.Resource
	k.ClusterRole(name, rbacv1.PolicyRule{APIGroups: []string{k.Group}, Resources: []string{k.Resource}, Verbs: []string{"get", "list", "watch", "patch"}})
	k.Grant("", name, user)
	revoke = func() {
		ctx := context.WithoutCancel(k.Context())
		_ = k.Admin.RbacV1().ClusterRoleBindings().Delete(ctx, strings.ReplaceAll(user+"-"+name, ":", "-"), metav1.DeleteOptions{})
		_ = k.Admin.RbacV1().ClusterRoles().Delete(ctx, name, metav1.DeleteOptions{})
	}
	k.Cleanup(revoke)
	return revoke
}

// create makes an object of this content, beside its name and kind.
func (k kind) create(namespace, name, content string) *unstructured.Unstructured {
	k.Helper()
	object := k.Manifest(content)
	object.SetAPIVersion(k.GroupVersion().String())
	object.SetKind(k.name)
	object.SetName(name)
	created, err := k.Dynamic().Resource(k.GroupVersionResource).Namespace(namespace).Create(k.Context(), object, metav1.CreateOptions{})
	require.NoError(k, err)
	return created
}

func (k kind) object(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error) {
	return k.Dynamic().Resource(k.GroupVersionResource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
}

// merge patches an object, or its status, as the administrator.
func (k kind) merge(namespace, name, content string, subresource ...string) *unstructured.Unstructured {
	k.Helper()
	body, err := yaml.YAMLToJSON([]byte(content))
	require.NoError(k, err)
	merged, err := k.Dynamic().Resource(k.GroupVersionResource).Namespace(namespace).
		Patch(k.Context(), name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: "test"}, subresource...)
	require.NoError(k, err)
	return merged
}

// adopted waits until the object has a baseline, which is returned.
func (k kind) adopted(namespace, name string) (baseline string) {
	k.Helper()
	k.Eventually(func(ctx context.Context) error {
		object, err := k.object(ctx, namespace, name)
		if err != nil {
			return err
		}
		if baseline = object.GetAnnotations()[mark.Baseline]; baseline == "" {
			return fmt.Errorf("%s has no baseline", name)
		}
		return nil
	})
	return baseline
}

// stamped waits until the annotation of the object's pod template at path, or of
// the object itself without one, is the object's baseline, and that another than
// before.
func (k kind) stamped(namespace, name, before string, path ...string) {
	k.Helper()
	k.Eventually(func(ctx context.Context) error {
		object, err := k.object(ctx, namespace, name)
		if err != nil {
			return err
		}
		at := slices.Concat(path, []string{"metadata", "annotations", mark.RestartedFor})
		stamp, _, err := unstructured.NestedString(object.Object, at...)
		if err == nil && (stamp == "" || stamp == before || stamp != object.GetAnnotations()[mark.Baseline]) {
			err = fmt.Errorf("%s is not stamped for the change", name)
		}
		return err
	})
}

// standing waits until Headwater says so of the kind.
func (k kind) standing(h *lab.Headwater, standing string) {
	k.Helper()
	group := schema.GroupKind{Group: k.Group, Kind: k.name}
	k.HasMetric(h, 1, "headwater_reload_kinds", map[string]string{"kind": group.String(), "standing": standing})
}
