package fields

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/spec"
)

func TestAListWithoutKeysIsReplacedAsAWhole(t *testing.T) {
	path, err := spec.ParseFieldPath("spec.env[name=CA].value")
	require.NoError(t, err)
	for fields, want := range map[string]bool{
		`{"f:spec":{"f:env":{"k:{\"name\":\"CA\"}":{".":{},"f:name":{},"f:value":{}}}}}`: false,
		`{"f:spec":{"f:env":{}}}`: true,
	} {
		entries := []metav1.ManagedFieldsEntry{{Manager: "me", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(fields)}}
		require.Equal(t, want, replacesList(entries, "me", path), fields)
	}
	plain, err := spec.ParseFieldPath("spec.env")
	require.NoError(t, err)
	require.False(t, replacesList(nil, "me", plain), "it is in no list")
}

func TestTargetIsWrittenOnlyWhereItDiffers(t *testing.T) {
	hasher, err := digest.New(make([]byte, digest.KeySize))
	require.NoError(t, err)
	data := func(value string) *object.Digested {
		return object.NewDigested(metav1.ObjectMeta{}, object.Common{Digests: object.Digest(hasher, object.Content{Data: map[string][]byte{"key": []byte(value)}})})
	}
	holding := func(values map[string]string, set ...string) *SetTarget {
		kept := &SetTarget{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"set": "yes"}}, Values: map[string]digest.Sum{}}
		for path, value := range values {
			kept.Values[path] = object.DigestText(hasher, value)
		}
		if set != nil {
			kept.Set = map[string][]string{"rule": set, "other": {"spec.z"}}
		}
		return kept
	}
	unselected := func(kept *SetTarget) *SetTarget {
		kept.Labels = nil
		return kept
	}
	for sentence, test := range map[string]struct {
		target  *SetTarget
		current *object.Digested
		want    targetDecision
	}{
		"a field that is not there is set":                  {holding(nil), data("1"), targetDecision{Step: StepSet, Reason: reasonDiffers}},
		"one that differs is":                               {holding(map[string]string{"spec.a": "2"}, "spec.a"), data("1"), targetDecision{Step: StepSet, Reason: reasonDiffers}},
		"one that holds the value is not":                   {holding(map[string]string{"spec.a": "1"}, "spec.a"), data("1"), targetDecision{Step: spec.StepNothing, Reason: spec.ReasonUnchanged}},
		"nor is it when somebody else put it there":         {holding(map[string]string{"spec.a": "1"}), data("1"), targetDecision{Step: spec.StepNothing, Reason: spec.ReasonUnchanged}},
		"a field that is no longer wanted is given back":    {holding(map[string]string{"spec.a": "1"}, "spec.a", "spec.b"), data("1"), targetDecision{Step: StepSet, Reason: reasonUnwanted}},
		"without its object a target keeps what it has":     {holding(map[string]string{"spec.a": "1"}, "spec.a"), nil, targetDecision{Step: spec.StepNothing, Reason: spec.ReasonUnchanged}},
		"without the key, too":                              {holding(map[string]string{"spec.a": "1"}, "spec.a"), object.NewDigested(metav1.ObjectMeta{}, object.Common{}), targetDecision{Step: spec.StepNothing, Reason: spec.ReasonMissing, Missing: "key"}},
		"what was set is given back when it is unselected":  {unselected(holding(nil, "spec.a")), data("1"), targetDecision{Step: stepRelease, Reason: reasonUnselected}},
		"even without the object":                           {unselected(holding(nil, "spec.a")), nil, targetDecision{Step: stepRelease, Reason: reasonUnselected}},
		"what was never selected is left alone":             {unselected(holding(nil)), data("1"), targetDecision{Step: spec.StepNothing, Reason: spec.ReasonUnchanged}},
		"what another rule has set is none of this rule's ": {holding(map[string]string{"spec.a": "1"}, []string{}...), data("1"), targetDecision{Step: spec.StepNothing, Reason: spec.ReasonUnchanged}},
	} {
		t.Run(sentence, func(t *testing.T) {
			require.Equal(t, test.want, DecideTarget("rule", reloadtest.SetTarget(t, ".spec.a"), test.target, test.current))
		})
	}
}

func TestOnlyWhoAppliesHoldsAField(t *testing.T) {
	entry := func(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const key = `{"f:spec":{"f:credentials":{".":{},"f:key":{}}}}`
	for sentence, test := range map[string]struct {
		entry metav1.ManagedFieldsEntry
		want  []string
	}{
		"somebody who applies it":        {entry("flux", metav1.ManagedFieldsOperationApply, key), []string{"flux"}},
		"somebody who edited it":         {entry("kubectl-edit", metav1.ManagedFieldsOperationUpdate, key), nil},
		"somebody who applies another":   {entry("flux", metav1.ManagedFieldsOperationApply, `{"f:spec":{"f:credentials":{"f:user":{}}}}`), nil},
		"Headwater itself":               {entry("own", metav1.ManagedFieldsOperationApply, key), nil},
		"what cannot be read":            {entry("flux", metav1.ManagedFieldsOperationApply, `[`), nil},
		"an entry that says nothing":     {metav1.ManagedFieldsEntry{Manager: "flux", Operation: metav1.ManagedFieldsOperationApply}, nil},
		"somebody who applies above it":  {entry("flux", metav1.ManagedFieldsOperationApply, `{"f:spec":{}}`), nil},
		"somebody who applies all of it": {entry("flux", metav1.ManagedFieldsOperationApply, `{"f:spec":{"f:credentials":{"f:key":{},"f:user":{}}}}`), []string{"flux"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			require.Equal(t, test.want, otherAppliers([]metav1.ManagedFieldsEntry{test.entry, test.entry}, func(manager string) bool { return manager == "own" }, []string{"spec.credentials.key"}))
		})
	}
}

func TestTargetKeepsDigestsAlone(t *testing.T) {
	form := reloadtest.SetTarget(t, "spec.a").Info
	key, err := digestkey.NewEphemeral()
	require.NoError(t, err)
	hasher, err := key.Hasher()
	require.NoError(t, err)
	kept, err := keepTarget(form, []string{"spec.a", "spec.b", "spec.c.d", "spec.e"}, key)(reloadtest.Custom(t, `
apiVersion: example.com/v1
kind: Bucket
metadata:
  {namespace: ns, name: bucket, uid: u, resourceVersion: "7", labels: {set: "yes"}, annotations: {set.headwater.dev/rule: "spec.a,spec.b", other: x}}
spec: {a: text, b: 7, c: text, secret: hunter2}
`))
	require.NoError(t, err)
	require.Equal(t, map[string]digest.Sum{"spec.a": object.DigestText(hasher, "text")}, kept.Values, "a number is no text, and c holds no d")
	require.Equal(t, map[string][]string{"rule": {"spec.a", "spec.b"}}, kept.Set)
	require.Empty(t, kept.Annotations)
	require.Equal(t, targetKey{"r", "Bucket.example.com", "ns", "bucket"}, kept.key("r"))
	require.Equal(t, "Bucket.example.com/ns/bucket of rule r", kept.key("r").String())
}

func TestRefusalIsToldWithoutItsText(t *testing.T) {
	refusal := apierrors.NewInvalid(schema.GroupKind{Group: "example.com", Kind: "Bucket"}, "n", field.ErrorList{
		field.Invalid(field.NewPath("spec", "key"), "hunter2", "must be short"),
	})
	err := withoutValues(request{targetKey: targetKey{kind: "Bucket.example.com", namespace: "ns", name: "n", rule: "r"}}, refusal)
	require.NotContains(t, err.Error(), "hunter2")
	require.Contains(t, err.Error(), "spec.key")
	require.Contains(t, err.Error(), "Invalid (422)")
	err = withoutValues(request{}, apierrors.NewForbidden(schema.GroupResource{}, "n", errors.New("hunter2")))
	require.NotContains(t, err.Error(), "hunter2")
}

func TestTargetsAreChecked(t *testing.T) {
	bucket := kinds.CustomKind{Group: "example.com", Version: "v1", Kind: "Bucket"}
	set := func(to ...string) []spec.SetField {
		var fields []spec.SetField
		for _, path := range to {
			fields = append(fields, spec.SetField{From: "key", To: path})
		}
		return fields
	}
	for sentence, test := range map[string]struct {
		targets []spec.Target
		field   string // of the only fault; empty: none
	}{
		"one that is annotated":           {targets: []spec.Target{{CustomKind: bucket, Annotate: true}}},
		"one with fields":                 {targets: []spec.Target{{CustomKind: bucket, Set: set("spec.a", ".spec.b.c")}}},
		"one with a field beside spec":    {targets: []spec.Target{{CustomKind: bucket, Set: set("data.a")}}},
		"neither":                         {[]spec.Target{{CustomKind: bucket}}, "targets[0]"},
		"both":                            {[]spec.Target{{CustomKind: bucket, Annotate: true, Set: set("spec.a")}}, "targets[0]"},
		"one kind twice":                  {[]spec.Target{{CustomKind: bucket, Annotate: true}, {CustomKind: bucket, Set: set("spec.a")}}, "targets[1].kind"},
		"a workload":                      {[]spec.Target{{CustomKind: kinds.CustomKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Annotate: true}}, "targets[0]"},
		"a Secret":                        {[]spec.Target{{CustomKind: kinds.CustomKind{Version: "v1", Kind: "Secret"}, Set: set("data.a")}}, "targets[0]"},
		"an annotation by force":          {[]spec.Target{{CustomKind: bucket, Annotate: true, Force: true}}, "targets[0].force"},
		"a field twice":                   {[]spec.Target{{CustomKind: bucket, Set: set("spec.a", ".spec.a")}}, "targets[0].set[1].to"},
		"a field of a field":              {[]spec.Target{{CustomKind: bucket, Set: set("spec.a", "spec.a.b")}}, "targets[0].set[1].to"},
		"a field around a field":          {[]spec.Target{{CustomKind: bucket, Set: set("spec.a.b", "spec.a")}}, "targets[0].set[1].to"},
		"an item of a list":               {[]spec.Target{{CustomKind: bucket, Set: set("spec.a[0].b")}}, "targets[0].set[0].to"},
		"the metadata":                    {[]spec.Target{{CustomKind: bucket, Set: set("metadata.labels.a")}}, "targets[0].set[0].to"},
		"the status":                      {[]spec.Target{{CustomKind: bucket, Set: set("status.a")}}, "targets[0].set[0].to"},
		"nothing":                         {[]spec.Target{{CustomKind: bucket, Set: set("")}}, "targets[0].set[0].to"},
		"a key that is none":              {[]spec.Target{{CustomKind: bucket, Set: []spec.SetField{{From: "a/b", To: "spec.a"}}}}, "targets[0].set[0].from"},
		"a selector that cannot be read ": {[]spec.Target{{CustomKind: bucket, Annotate: true, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a b": ""}}}}, "targets[0].selector.matchLabels[a b]"},
	} {
		t.Run(sentence, func(t *testing.T) {
			config := spec.Config{Targets: test.targets}
			config.Default()
			errs := config.Validate(field.NewPath("reload"))
			if test.field == "" {
				require.Empty(t, errs)
				return
			}
			require.Len(t, errs, 1)
			require.Equal(t, "reload."+test.field, errs[0].Field)
		})
	}
}

func TestTargetSeesTheObjectOfItsOwnNamespace(t *testing.T) {
	rule, err := spec.Compile(rules.Base{Name: "r", Source: rules.Source{Kind: object.Secret, Namespace: "platform", Name: "s"}}, spec.Config{})
	require.NoError(t, err)
	require.Equal(t, "s", rule.NameIn("platform", "s"))
	require.Empty(t, rule.NameIn("team", "s"), "a rule without clones")
	require.Equal(t, "s", rule.ClonedAs("", rules.Matcher{}).NameIn("team", "s"))
	require.Equal(t, "c", rule.ClonedAs("c", rules.Matcher{}).NameIn("team", "s"))
	require.Equal(t, "s", rule.ClonedAs("c", rules.Matcher{}).NameIn("platform", "s"))
}
