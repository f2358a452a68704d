package cel

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	protectdecide "github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/manifests"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
)

// long is a name of as many characters as one may have.
func long(of, i int) string { return fmt.Sprintf("%s-%03d", strings.Repeat("n", of-4), i) }

// As much as a file may hold: a hundred rules with names as long as they may be, each of
// which lets in twenty, a thousand identities, and a selector of hundreds of values.
func TestTheLongestConfigurationCompiles(t *testing.T) {
	var file strings.Builder
	file.WriteString(head + "protect: {systemIdentities: [")
	for i := range 1000 {
		fmt.Fprintf(&file, "%q, ", long(253, i))
	}
	file.WriteString("]}\nrules:\n")
	for i := range 100 {
		source := "name: " + long(253, i)
		switch {
		case i == 1:
			source = "selector: {matchExpressions: [{key: share, operator: In, values: [" + strings.Join(manyLabels(650), ", ") + "]}]}"
		case i%4 == 0:
			source = "selector: {matchExpressions: [{key: share, operator: NotIn, values: [" + long(63, i) + "]}]}"
		}
		fmt.Fprintf(&file, "- name: %s\n  source: {kind: Secret, namespace: %s, %s}\n  sync: {}\n", long(63, i), long(63, i/2), source)
		fmt.Fprintf(&file, "  protect: {clones: Deny, allow: {users: [%s]}}\n", strings.Join(append(many(20), strings.Repeat("\U0001F600", 100)), ", "))
	}
	parsed, err := config.Parse("f.yaml", []byte(file.String()))
	require.NoError(t, err)
	generate(t, parsed)
}

func manyLabels(count int) []string {
	var all []string
	for i := range count {
		all = append(all, long(63, i))
	}
	return all
}

func many(count int) []string {
	var all []string
	for i := range count {
		all = append(all, long(253, i))
	}
	return all
}

// The API server limits the CEL cost of one request. Objects of the maximum size,
// two hundred rules and a user in a hundred groups stay below the limit, so that it
// refuses no request for its cost.
func TestTheLargestRequestIsWithinTheBudget(t *testing.T) {
	set, world, before := manyRules(t), quiet(protectspec.Settings{}), large("v")
	policies, webhooks := compiled(t, set, world)
	for sentence, after := range map[string]*object.Full{
		"everything as it was": large("v"), "everything other than it was": large("w"), "gone": nil,
	} {
		t.Run(sentence, func(t *testing.T) {
			r := request{
				operation: admission.Update, kind: object.Secret, inNamespace: "p", name: "a", before: before, after: after,
				user: user.DefaultInfo{Name: "mallory", Groups: many(100)},
			}
			if after == nil {
				r.operation = admission.Delete
			}
			for _, held := range []overrides{nil, {every}} {
				for _, p := range policies {
					_, failures := p.judge(t, r.attributes(), r.namespace(world), held)
					require.Empty(t, failures)
				}
				for _, w := range webhooks {
					w.asked(t, r.attributes(), held)
				}
			}
		})
	}
}

// compiled is what the API server has of the engines at work alone.
func compiled(t testing.TB, set *rules.Set[protectspec.Rule], world protectdecide.World) (policies []policy, webhooks []webhook) {
	t.Helper()
	for _, p := range manifests.Policies(set, world, protectspec.Enforce, protectspec.Warn, protectspec.Audit) {
		policies = append(policies, compilePolicy(t, p))
	}
	endpoint, err := protectspec.NewEndpoint("", "headwater")
	require.NoError(t, err)
	for _, w := range manifests.Configuration(set, world.Headwater, manifests.FailClosed, endpoint, nil).Webhooks {
		webhooks = append(webhooks, compileWebhook(t, w))
	}
	return policies, webhooks
}

// large is a Secret, and a clone, of a megabyte in a thousand keys.
func large(value string) *object.Full {
	full := &object.Full{
		Kind: object.Secret,
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "p", Name: "a", Labels: map[string]string{"headwater.dev/clone": "true"}, Annotations: map[string]string{"headwater.dev/rule": long(63, 1)},
		},
		Content: object.Content{Type: "Opaque", Data: map[string][]byte{}},
	}
	for i := range 1000 {
		full.Content.Data[fmt.Sprintf("%s-%d", strings.Repeat("k", 200), i)] = []byte(strings.Repeat(value, 800))
		full.Annotations[fmt.Sprintf("note-%d", i)] = strings.Repeat(value, 100)
	}
	for i := range 20 {
		full.Finalizers = append(full.Finalizers, long(63, i))
		full.OwnerReferences = append(full.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: long(253, i), UID: "u"})
	}
	return full
}

func manyRules(t *testing.T) *rules.Set[protectspec.Rule] {
	t.Helper()
	var all []protectspec.Rule
	for i := range 200 {
		source := rules.Source{Kind: object.Secret, Namespace: "p", Name: "a"}
		if i > 0 {
			source.Name = ""
			source.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "headwater.dev/clone", Operator: metav1.LabelSelectorOpNotIn, Values: []string{long(63, i)}},
			}}
		}
		base, err := rules.NewBase(long(63, i), source)
		require.NoError(t, err)
		rule := protectspec.Rule{
			Base: base, Config: protectspec.Config{Clones: protectspec.Deny, Allow: protectspec.Allow{Users: many(100), Groups: many(10)}},
			Copied: protectspec.Copied{Labels: []string{"*.example.org/*"}, Annotations: []string{"*-[0-9]?", long(63, i)}},
		}
		rule.Default()
		all = append(all, rule)
	}
	return rules.NewSet(all...)
}
