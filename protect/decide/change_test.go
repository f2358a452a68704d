package decide_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/internal/protecttest"
	"github.com/headwater-k8s/headwater/protect/spec"
)

func TestChanges(t *testing.T) {
	ownedBy := func(uids ...string) func(*object.Full) {
		return func(o *object.Full) {
			for _, uid := range uids {
				o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{UID: types.UID(uid), Name: uid})
			}
		}
	}
	finalizers := func(names ...string) func(*object.Full) { return func(o *object.Full) { o.Finalizers = names } }
	annotation := func(key, value string) func(*object.Full) {
		return func(o *object.Full) { o.Annotations = map[string]string{key: value} }
	}
	label := func(key, value string) func(*object.Full) {
		return func(o *object.Full) { o.Labels = map[string]string{key: value} }
	}
	none := func(*object.Full) {}
	// The rule selects by a label whose absence selects, too.
	base, err := rules.NewBase("shared", rules.Source{Kind: object.Secret, Namespace: "platform", Selector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "share", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"never"}}},
	}})
	require.NoError(t, err)
	rule := spec.Rule{Base: base, Copied: spec.Copied{Labels: []string{"tier*"}, Annotations: []string{"*"}}}
	rule.Default()
	for name, tc := range map[string]struct {
		before, after func(*object.Full)
		want          []string
	}{
		"nothing": {none, none, nil},
		"a value": {none, protecttest.SetData("other"), []string{"data"}},
		"a key more": {none, func(o *object.Full) {
			o.Content.Data = map[string][]byte{"password": []byte(protecttest.Canary), "b": nil}
		}, []string{"data"}},
		"all keys gone":              {none, func(o *object.Full) { o.Content.Data = nil }, []string{"data"}},
		"nil and no data":            {func(o *object.Full) { o.Content.Data = nil }, func(o *object.Full) { o.Content.Data = map[string][]byte{} }, nil},
		"nil and no value":           {protecttest.SetData(""), func(o *object.Full) { o.Content.Data = map[string][]byte{"password": nil} }, nil},
		"binary data":                {none, func(o *object.Full) { o.Content.BinaryData = map[string][]byte{"a": {1}} }, []string{"binaryData"}},
		"type":                       {none, func(o *object.Full) { o.Content.Type = "kubernetes.io/tls" }, []string{"type"}},
		"immutable":                  {none, func(o *object.Full) { o.Content.Immutable = true }, []string{"immutable"}},
		"our label added":            {none, label("headwater.dev/clone", "true"), []string{"metadata.labels"}},
		"our label removed":          {label("headwater.dev/clone", "true"), none, []string{"metadata.labels"}},
		"our annotation":             {annotation("headwater.dev/rule", "a"), annotation("headwater.dev/rule", "b"), []string{"metadata.annotations"}},
		"selecting label removed":    {label("share", "yes"), none, []string{"metadata.labels"}},
		"selecting label changed":    {label("share", "yes"), label("share", "no"), []string{"metadata.labels"}},
		"selecting label added":      {none, label("share", ""), []string{"metadata.labels"}},
		"selecting label kept":       {label("share", "yes"), label("share", "yes"), nil},
		"other labels":               {label("team", "a"), label("team", "b"), nil},
		"a copied label":             {label("tier.example.org/x", "a"), label("tier.example.org/x", "b"), []string{"metadata.labels"}},
		"a copied label added":       {none, label("tier", ""), []string{"metadata.labels"}},
		"a copied label removed":     {label("tier", ""), none, []string{"metadata.labels"}},
		"a copied annotation":        {none, annotation("example.org/note", "x"), []string{"metadata.annotations"}},
		"an annotation never copied": {none, annotation("kubectl.kubernetes.io/last-applied-configuration", "{}"), nil},
		"owner added":                {none, ownedBy("a"), []string{"metadata.ownerReferences"}},
		"owner removed":              {ownedBy("a", "b"), ownedBy("a"), []string{"metadata.ownerReferences"}},
		"owners reordered":           {ownedBy("a", "b"), ownedBy("b", "a"), nil},
		"owner twice":                {ownedBy("a"), ownedBy("a", "a"), []string{"metadata.ownerReferences"}},
		"finalizer added":            {finalizers("a"), finalizers("a", "b"), []string{"metadata.finalizers"}},
		"finalizer removed":          {finalizers("a", "b"), finalizers("a"), nil},
		"finalizer swapped":          {finalizers("a"), finalizers("b"), []string{"metadata.finalizers"}},
		"managed fields":             {none, func(o *object.Full) { o.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "x"}} }, nil},
		"resource version":           {none, func(o *object.Full) { o.ResourceVersion, o.Generation = "2", 7 }, nil},
		"several":                    {none, func(o *object.Full) { o.Content.Type, o.Content.Immutable = "a", true }, []string{"type", "immutable"}},
	} {
		t.Run(name, func(t *testing.T) {
			request := update(alice, protecttest.NewSecret(tc.before), protecttest.NewSecret(tc.after))
			request.Scope.About = decide.AboutSelected
			verdict := decide.Decide(request, rules.NewSet(rule), newWorld())
			require.Equal(t, tc.want, verdict.Changed)
			require.Equal(t, tc.want == nil, verdict.Allowed)
		})
	}
}
