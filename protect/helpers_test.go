package protect

import (
	"strings"
	"time"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect/spec"
)

const soon = 10 * time.Second

func writes(client *fake.Clientset) (verbs []string) {
	for _, action := range client.Actions() {
		switch action.GetVerb() {
		case "create", "update", "patch", "delete":
			verbs = append(verbs, action.GetVerb())
		}
	}
	return verbs
}

const alice = "alice"

const (
	oldSecret     = `{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"platform","name":"blogsecret"},"type":"Opaque","data":{"password":"czNjcjN0LWNhbmFyeQ=="}}`
	newSecretJSON = `{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"platform","name":"blogsecret"},"type":"Opaque","data":{"password":"b3RoZXI="}}`
	oldConfig     = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"platform","name":"blogconfig"},"data":{"a":"s3cr3t-canary"},"binaryData":{"b":"AA=="}}`
	oldPlatform   = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"platform"},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}}`
)

// reviewOf builds the review of a write to the Secret by alice, with parts
// replaced.
func reviewOf(operation, before, after string, replace ...string) string {
	body := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u1",` +
		`"kind":{"group":"","version":"v1","kind":"Secret"},"resource":{"group":"","version":"v1","resource":"secrets"},` +
		`"name":"blogsecret","namespace":"platform","operation":"` + operation + `",` +
		`"userInfo":{"username":"alice","groups":["system:authenticated"]},"object":` + after + `,"oldObject":` + before + `,"dryRun":false,"options":null}}`
	return strings.NewReplacer(replace...).Replace(body)
}

func testRules() *rules.Set[spec.Rule] {
	return rules.NewSet(blogRule(), newRule("blogconfig", object.ConfigMap, "platform", "blogconfig"))
}
