package protect

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzReview checks, by a second reading of the same bytes that shares no code
// with the first: what is protected and not exempt is never allowed.
func FuzzReview(f *testing.F) {
	for _, operation := range []string{"CREATE", "UPDATE", "DELETE"} {
		for _, before := range []string{oldSecret, oldConfig, oldPlatform, "null", `{}`} {
			for _, after := range []string{oldSecret, newSecretJSON, oldConfig, "null"} {
				f.Add(reviewOf(operation, before, after))
				f.Add(reviewOf(operation, before, after, `"name":"blogsecret","namespace"`, `"namespace"`))
				f.Add(reviewOf(operation, before, after, "alice", "system:serviceaccount:headwater:headwater"))
				f.Add(reviewOf(operation, before, after, "system:authenticated", "system:masters"))
				f.Add(reviewOf(operation, before, after, `"resource":"secrets"`, `"resource":"configmaps"`, `"blogsecret"`, `"blogconfig"`))
				f.Add(reviewOf(operation, before, after, `"resource":"secrets"`, `"resource":"namespaces"`))
				f.Add(reviewOf(operation, before, after, `"metadata":{`, `"metadata":{"labels":{"headwater.dev/clone":"true"},`))
			}
		}
	}
	reviewer := newTestReviewer(reviewerSetup{})
	f.Fuzz(func(t *testing.T, body string) {
		answer := post(reviewer, body)
		if answer.Code != http.StatusOK {
			require.GreaterOrEqual(t, answer.Code, 400)
			require.Less(t, answer.Code, 500, "input never causes an internal error")
			return
		}
		response := responseOf(t, answer)
		if response.Allowed && violates(body) {
			t.Fatalf("allowed: %s", body)
		}
	})
}

// violates reads a review as loosely as it can and holds what it cannot read
// against it.
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
	name := child(before, "metadata")["name"]
	if request["operation"] == "CREATE" {
		return (resource["resource"] == "secrets" || resource["resource"] == "configmaps") && forged(child(after, "metadata"))
	}
	switch resource["resource"] {
	case "secrets":
		return name == "blogsecret" && request["namespace"] == "platform" && edited(request, before, after)
	case "configmaps":
		return name == "blogconfig" && request["namespace"] == "platform" && edited(request, before, after)
	case "namespaces":
		sub, _ := request["subResource"].(string)
		going := child(before, "metadata")["deletionTimestamp"] != nil
		return name == "platform" && request["operation"] == "DELETE" && sub == "" && !going
	}
	return false
}

// forged is a loose reading of the metadata of an object that is created.
func forged(metadata map[string]any) bool {
	_, marked := child(metadata, "labels")["headwater.dev/clone"]
	return marked
}

func edited(request, before, after map[string]any) bool {
	if request["operation"] == "DELETE" {
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
