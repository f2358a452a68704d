package webhook

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/internal/decidetest"
	"github.com/headwater-k8s/headwater/protect/internal/protecttest"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// FuzzReview reads each review a second time, with code of its own, and checks
// that no protected change by a user without exemption is allowed. Every body
// gets a response: a review or a client error. No response quotes the body.
func FuzzReview(f *testing.F) {
	for _, operation := range []string{"CREATE", "UPDATE", "DELETE"} {
		for _, before := range []string{protecttest.OldSecretJSON, oldConfig, oldPlatform, "null", `{}`} {
			for _, after := range []string{protecttest.OldSecretJSON, protecttest.NewSecretJSON, oldConfig, "null"} {
				f.Add(protecttest.ReviewOf(operation, before, after))
				f.Add(protecttest.ReviewOf(operation, before, after, `"name":"blogsecret","namespace"`, `"namespace"`))
				f.Add(protecttest.ReviewOf(operation, before, after, "alice", "system:serviceaccount:headwater:headwater"))
				f.Add(protecttest.ReviewOf(operation, before, after, "system:authenticated", "system:masters"))
				f.Add(protecttest.ReviewOf(operation, before, after, `"resource":"secrets"`, `"resource":"configmaps"`, `"blogsecret"`, `"blogconfig"`))
				f.Add(protecttest.ReviewOf(operation, before, after, `"resource":"secrets"`, `"resource":"namespaces"`))
			}
		}
		for _, metadata := range []string{
			`"labels":{"headwater.dev/clone":"true"},`,
			`"labels":{"share":"yes"},`,
			`"labels":{"headwater.dev/clone":"true"},"annotations":{"headwater.dev/rule":"denied","headwater.dev/source":"Secret/elsewhere/x"},`,
			`"labels":{"headwater.dev/clone":"true"},"annotations":{"headwater.dev/rule":"denied","headwater.dev/source":"Secret/elsewhere/x","headwater.dev/target":"platform/another"},`,
			`"finalizers":["x"],`,
			`"ownerReferences":[{"uid":"1"}],`,
		} {
			with := func(object string) string { return strings.Replace(object, `"metadata":{`, `"metadata":{`+metadata, 1) }
			f.Add(protecttest.ReviewOf(operation, with(protecttest.OldSecretJSON), protecttest.NewSecretJSON))
			f.Add(protecttest.ReviewOf(operation, with(protecttest.OldSecretJSON), with(protecttest.NewSecretJSON), "blogsecret", "another"))
			for _, user := range []string{"system:serviceaccount:kube-system:generic-garbage-collector", "system:serviceaccount:kube-system:namespace-controller", "system:kube-controller-manager", "system:serviceaccount:kube-system:default"} {
				f.Add(protecttest.ReviewOf(operation, with(protecttest.OldSecretJSON), protecttest.OldSecretJSON, "blogsecret", "another", "alice", user))
				f.Add(protecttest.ReviewOf(operation, with(protecttest.OldSecretJSON), protecttest.OldSecretJSON, "alice", user))
			}
			f.Add(protecttest.ReviewOf(operation, protecttest.OldSecretJSON, with(protecttest.OldSecretJSON)))
		}
	}
	set := rules.NewSet(append(protecttest.Rules().All(), protecttest.SelectingRule(),
		protecttest.NewRule("denied", object.Secret, "elsewhere", "x", func(r *spec.Rule) { r.Clones = spec.Deny }))...)
	reviewer := newTestReviewer(reviewerSetup{decide: func(r decide.Request) decide.Verdict { return decide.Decide(r, set, decidetest.NewWorld()) }})
	f.Fuzz(func(t *testing.T, body string) {
		answer := post(reviewer, body)
		require.NotContains(t, answer.Body.String(), protecttest.Canary)
		if answer.Code != http.StatusOK {
			require.GreaterOrEqual(t, answer.Code, 400)
			require.Less(t, answer.Code, 500, "input never causes an internal error")
			return
		}
		response := responseOf(t, answer)
		requireWellFormed(t, body, response)
		if response.Allowed && violates(body) {
			t.Fatalf("allowed: %s", body)
		}
	})
}

// requireWellFormed fails unless the API server would accept response as the
// answer to body.
func requireWellFormed(t *testing.T, body string, response *admissionv1.AdmissionResponse) {
	t.Helper()
	var review map[string]any
	require.NoError(t, json.Unmarshal([]byte(body), &review), "what is answered is JSON")
	require.EqualValues(t, child(review, "request")["uid"], response.UID)
	require.Empty(t, response.Patch)
	for key := range response.AuditAnnotations {
		require.Empty(t, validation.IsQualifiedName("headwater.dev/"+key))
	}
	for _, warning := range response.Warnings {
		require.NotContains(t, warning, "\n")
	}
	if response.Allowed {
		require.Nil(t, response.Result)
		return
	}
	require.NotEmpty(t, response.Result.Message)
	require.Contains(t, []int32{http.StatusForbidden, http.StatusInternalServerError}, response.Result.Code)
}

// violates reads a review as leniently as it can and counts unreadable parts as
// a violation.
func violates(body string) bool {
	var review map[string]any
	if json.Unmarshal([]byte(body), &review) != nil {
		return true
	}
	request := child(review, "request")
	if request["operation"] != "CREATE" && request["operation"] != "UPDATE" && request["operation"] != "DELETE" {
		return false
	}
	user := child(request, "userInfo")
	groups, _ := user["groups"].([]any)
	if user["username"] == "system:serviceaccount:headwater:headwater" || slices.Contains(groups, any("system:masters")) {
		return false
	}
	resource := child(request, "resource")
	if group, set := resource["group"]; set && group != "" && group != nil {
		return false
	}
	before, after := child(request, "oldObject"), child(request, "object")
	if resource["resource"] == "namespaces" {
		sub, _ := request["subResource"].(string)
		going := child(before, "metadata")["deletionTimestamp"] != nil
		return child(before, "metadata")["name"] == "platform" && request["operation"] == "DELETE" && sub == "" && !going
	}
	if resource["resource"] != "secrets" && resource["resource"] != "configmaps" {
		return false
	}
	return remarked(request, before, after) || made(request, before, after) || guarded(request, before) && edited(request, before, after)
}

// guarded reports, from the current object, whether a rule of the fuzz test
// protects it.
func guarded(request, before map[string]any) bool {
	metadata := child(before, "metadata")
	labels, here := child(metadata, "labels"), request["namespace"] == "platform"
	switch child(request, "resource")["resource"] {
	case "configmaps":
		return metadata["name"] == "blogconfig" && here
	default:
		clone := labels["headwater.dev/clone"] == "true" && child(metadata, "annotations")["headwater.dev/rule"] == "denied"
		lettingGo := request["operation"] == "DELETE" && (byCollector(request) || asks(request, "system:serviceaccount:kube-system:namespace-controller"))
		return here && (metadata["name"] == "blogsecret" || labels["share"] == "yes") || clone && !lettingGo
	}
}

// made reports whether the request makes an object a source of a rule of the
// fuzz test.
func made(request, before, after map[string]any) bool {
	isSource := func(o map[string]any) bool {
		metadata := child(o, "metadata")
		if child(request, "resource")["resource"] == "configmaps" {
			return metadata["name"] == "blogconfig"
		}
		return metadata["name"] == "blogsecret" || child(metadata, "labels")["share"] == "yes"
	}
	selected := request["operation"] == "UPDATE" && child(request, "resource")["resource"] == "secrets" &&
		child(child(before, "metadata"), "labels")["share"] != "yes" && child(child(after, "metadata"), "labels")["share"] == "yes"
	return request["namespace"] == "platform" && (request["operation"] == "CREATE" && isSource(after) || selected)
}

// byCollector reports whether a garbage collector sent the request, under its
// own user name or that of all controllers.
func byCollector(request map[string]any) bool {
	return asks(request, "system:serviceaccount:kube-system:generic-garbage-collector") || asks(request, "system:kube-controller-manager")
}

func asks(request map[string]any, user string) bool {
	return child(request, "userInfo")["username"] == user
}

// remarked reports whether the marks of a clone, before or after the request,
// change.
func remarked(request, before, after map[string]any) bool {
	old, now := child(before, "metadata"), child(after, "metadata")
	if request["operation"] == "DELETE" {
		return false
	}
	if request["operation"] == "CREATE" {
		old = nil
	}
	return (isMarked(old) || isMarked(now)) && (!reflect.DeepEqual(marks(old, "labels"), marks(now, "labels")) ||
		!reflect.DeepEqual(marks(old, "annotations"), marks(now, "annotations")))
}

// isMarked reports whether the metadata has all marks of a clone, for no other place.
func isMarked(metadata map[string]any) bool {
	annotations := marks(metadata, "annotations")
	namespace, _ := metadata["namespace"].(string)
	name, _ := metadata["name"].(string)
	target, isPlaced := annotations["headwater.dev/target"]
	return marks(metadata, "labels")["headwater.dev/clone"] == "true" && annotations["headwater.dev/rule"] != "" &&
		annotations["headwater.dev/source"] != "" && (!isPlaced || target == namespace+"/"+name)
}

func marks(metadata map[string]any, field string) map[string]string {
	out := map[string]string{}
	for key, value := range child(metadata, field) {
		if strings.HasPrefix(key, "headwater.dev/") {
			out[key], _ = value.(string)
		}
	}
	return out
}

// pinned reports whether a finalizer is added, the selected label changes, or
// the owners change. Owner references that a garbage collector removes do not
// count.
func pinned(request, before, after map[string]any) bool {
	list := func(o map[string]any, field, key string) (all []string) {
		items, _ := child(o, "metadata")[field].([]any)
		for _, item := range items {
			if inner, ok := item.(map[string]any); ok {
				item = inner[key]
			}
			text, _ := item.(string)
			all = append(all, text)
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	had := list(before, "finalizers", "")
	added := slices.ContainsFunc(list(after, "finalizers", ""), func(f string) bool { return !slices.Contains(had, f) })
	owned := !slices.Equal(list(before, "ownerReferences", "uid"), list(after, "ownerReferences", "uid"))
	return added || owned && !byCollector(request)
}

func edited(request, before, after map[string]any) bool {
	if request["operation"] == "CREATE" {
		return false
	}
	if request["operation"] == "DELETE" || pinned(request, before, after) {
		return true
	}
	share := func(o map[string]any) any { return child(child(o, "metadata"), "labels")["share"] }
	if share(before) == "yes" && share(after) != "yes" {
		return true
	}
	for _, field := range []string{"data", "binaryData"} {
		plain := field == "data" && child(request, "resource")["resource"] == "configmaps"
		if !reflect.DeepEqual(values(before, field, plain), values(after, field, plain)) {
			return true
		}
	}
	frozen := func(o map[string]any) bool { return o["immutable"] == true }
	kind := func(o map[string]any) string { s, _ := o["type"].(string); return s }
	if child(request, "resource")["resource"] == "secrets" && kind(before) != kind(after) {
		return true
	}
	return frozen(before) != frozen(after)
}

func values(o map[string]any, field string, plain bool) map[string]string {
	out := map[string]string{}
	for key, value := range child(o, field) {
		text, _ := value.(string)
		if !plain {
			raw, err := base64.StdEncoding.DecodeString(text)
			text = string(raw)
			if err != nil {
				text = strings.Repeat("!", 3)
			}
		}
		out[key] = text
	}
	return out
}

func child(m map[string]any, key string) map[string]any {
	out, _ := m[key].(map[string]any)
	return out
}
