package lab

import (
	"context"
	"strings"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// mutation is a policy that applies a JSON patch in CEL to what is written to NAME, as
// somebody else's admission plugin would.
const mutation = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: NAME}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules: [{apiGroups: ["*"], apiVersions: ["*"], resources: [RESOURCE], operations: [OPERATIONS]}]
  matchConditions: [{name: only, expression: 'CONDITION'}]
  mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[PATCH]'}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: NAME}
spec: {policyName: NAME, matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAME}}}}
`

// Mutation is what a policy changes: of RESOURCE in one namespace, for these operations, if
// Condition is true.
type Mutation struct{ Resource, Operations, Condition, Patch string }

// Mutate has the API server change what is written in namespace until stop is called, or
// until the end of the test. It is not in force at once.
func (e *Env) Mutate(namespace string, m Mutation) (stop func()) {
	e.Helper()
	text := strings.NewReplacer("NAME", namespace, "RESOURCE", m.Resource, "OPERATIONS", m.Operations, "CONDITION", m.Condition, "PATCH", m.Patch).Replace(mutation)
	var applied []*unstructured.Unstructured
	for document := range strings.SplitSeq(text, "\n---\n") {
		object := e.Manifest(document)
		_, err := e.Dynamic().Resource(policies(object)).Create(e.Context(), object, metav1.CreateOptions{})
		require.NoError(e, err)
		applied = append(applied, object)
	}
	client := e.Dynamic()
	stop = func() {
		for _, object := range applied {
			err := client.Resource(policies(object)).Delete(context.WithoutCancel(e.Context()), namespace, metav1.DeleteOptions{})
			require.NoError(e, IgnoreGone(err))
		}
	}
	e.Cleanup(stop)
	return stop
}

func policies(of *unstructured.Unstructured) schema.GroupVersionResource {
	resource := "mutatingadmissionpolicies"
	if strings.HasSuffix(of.GetKind(), "Binding") {
		resource = "mutatingadmissionpolicybindings"
	}
	return of.GroupVersionKind().GroupVersion().WithResource(resource)
}
