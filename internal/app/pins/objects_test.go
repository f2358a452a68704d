package pins_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx/fxtest"
	"go.uber.org/zap"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/rest"
	k8stesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/headwater-k8s/headwater/internal/app"
	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/kube/leader"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
	"github.com/headwater-k8s/headwater/protect/prove"
	"github.com/headwater-k8s/headwater/protect/register"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
)

// What a service that leads creates for itself: names, labels, annotations, keys
// and field managers. Of the webhooks and of the policy that guards them the whole
// text, which TestTextOfPoliciesAndWebhooks does not have.
func TestObjectsOfTheService(t *testing.T) {
	const file = "testdata/rich.yaml"
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	content = append(content, "  engine: Webhook\n"...) // without policies, nobody has to be asked before
	loaded, err := config.ParseIn(ownNamespace, config.ConfigMapKey, content)
	require.NoError(t, err)
	typed := fakeCluster(content)
	metadata := metadatafake.NewTestScheme()
	require.NoError(t, metav1.AddMetaToScheme(metadata))
	clients := &kube.Clients{
		Owner: kube.NewOwner(typed),
		Typed: typed, Metadata: metadatafake.NewSimpleMetadataClient(metadata),
		Dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(metadata, map[schema.GroupVersionResource]string{rulestatus.GVR: "RuleStatusList"}), Host: "fake", Config: &rest.Config{Host: "https://127.0.0.1:1"},
	}
	service := fxtest.New(t, app.Options(settings(), &app.Started{Config: loaded}, clients, zap.NewNop()))
	service.RequireStart()
	defer service.RequireStop()
	var found map[string]string
	missing := func() []string {
		return slices.DeleteFunc([]string{
			"leases " + leader.LeaseName, "secrets " + digestkey.SecretName, "secrets " + protectspec.CertificateSecret,
			"secrets " + config.LastValidName, "configmaps " + register.RegisteredConfigMap,
			"validatingwebhookconfigurations " + protectspec.ConfigurationName,
			"validatingadmissionpolicies headwater-self", "validatingadmissionpolicybindings headwater-self",
		}, func(name string) bool { return found[name] != "" })
	}
	_ = wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		found = created(t, typed)
		return len(missing()) == 0 && len(keys(t, typed, register.RegisteredConfigMap)) == 3, nil
	})
	require.Empty(t, missing(), "not created; found %v", slices.Sorted(maps.Keys(found)))
	delete(found, "configmaps "+prove.ProofsConfigMap) // it is created sooner or later
	var out strings.Builder
	_, _ = fmt.Fprintf(&out, "# keys of ConfigMap %s: %s\n", register.RegisteredConfigMap, strings.Join(keys(t, typed, register.RegisteredConfigMap), " "))
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out.WriteString("---\n# " + name + "\n" + found[name])
	}
	requireGolden(t, "objects.yaml", out.String())
}

// fakeCluster holds what an installation does.
func fakeCluster(configuration []byte) *fake.Clientset {
	typed := fake.NewClientset(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ownNamespace}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: kube.OwnerName, UID: "uid"}},
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: ownNamespace, Name: config.ConfigMapName},
			Data:       map[string]string{config.ConfigMapKey: string(configuration)},
		},
	)
	typed.PrependReactor("create", "selfsubjectaccessreviews", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, &authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: true}}, nil
	})
	typed.PrependReactor("create", "selfsubjectreviews", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, &authenticationv1.SelfSubjectReview{Status: authenticationv1.SelfSubjectReviewStatus{
			UserInfo: authenticationv1.UserInfo{Username: ownUser},
		}}, nil
	})
	return typed
}

// created is what was created, by resource and name.
func created(t *testing.T, typed *fake.Clientset) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, action := range typed.Actions() {
		creation, ok := action.(k8stesting.CreateActionImpl)
		if !ok || creation.GetSubresource() != "" {
			continue
		}
		meta, err := apimeta.Accessor(creation.GetObject())
		require.NoError(t, err)
		resource := creation.GetResource()
		if resource.Group == "events.k8s.io" || resource.Group == "authorization.k8s.io" || resource.Group == "authentication.k8s.io" {
			continue
		}
		text, err := yaml.Marshal(map[string]any{
			"resource": cmp.Or(resource.Group, "core") + "/" + resource.Version + " " + resource.Resource, "namespace": meta.GetNamespace(),
			"labels": meta.GetLabels(), "annotations": meta.GetAnnotations(), "owners": meta.GetOwnerReferences(),
			"fieldManager": creation.CreateOptions.FieldManager, "content": contentOf(creation.GetObject()),
		})
		require.NoError(t, err)
		all[resource.Resource+" "+meta.GetName()] = string(text)
	}
	return all
}

// keys are those of a ConfigMap of the service, as it is now.
func keys(t *testing.T, typed *fake.Clientset, name string) []string {
	t.Helper()
	configMap, err := typed.CoreV1().ConfigMaps(ownNamespace).Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(t, err)
	return slices.Sorted(maps.Keys(configMap.Data))
}

// segment is the part of the path that depends on the CA.
var segment = regexp.MustCompile("/[0-9a-f]{32}/")

// contentOf is what of an object's content is the same each time.
func contentOf(created runtime.Object) any {
	switch o := created.DeepCopyObject().(type) {
	case *corev1.Secret:
		return fmt.Sprintf("type %q, keys %v", o.Type, slices.Sorted(maps.Keys(o.Data)))
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range o.Webhooks {
			client := &o.Webhooks[i].ClientConfig
			client.CABundle = nil
			client.Service.Path = new(segment.ReplaceAllString(*client.Service.Path, "/SEGMENT/"))
		}
		return o.Webhooks
	case *admissionregistrationv1.ValidatingAdmissionPolicy:
		return o.Spec
	case *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
		return o.Spec
	default:
		return nil
	}
}
