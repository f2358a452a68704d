package explain

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/fields"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
)

func TestHowFieldsStand(t *testing.T) {
	hasher, err := digest.New(make([]byte, digest.KeySize))
	require.NoError(t, err)
	having := func(data map[string][]byte) *object.Digested {
		return object.NewDigested(metav1.ObjectMeta{}, object.Common{Digests: object.Digest(hasher, object.Content{Data: data})})
	}
	wanted := spec.RuleTarget{CompiledTarget: reloadtest.SetTarget(t, "spec.a"), Rule: spec.Rule{Base: rules.Base{Name: "rule"}}}
	bucket := &fields.SetTarget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "chosen", Labels: map[string]string{"set": "yes"}}, Info: wanted.Info,
		Values: map[string]digest.Sum{"spec.a": object.DigestText(hasher, "1")}, Set: map[string][]string{"rule": {"spec.a"}},
	}
	ref := object.Ref{Kind: object.Secret, Namespace: "team", Name: "shared"}
	for sentence, test := range map[string]struct {
		current *object.Digested
		want    decide.Status
	}{
		"the fields hold the values":       {having(map[string][]byte{"key": []byte("1")}), decide.Current},
		"a value has changed":              {having(map[string][]byte{"key": []byte("2")}), decide.Behind},
		"a key is missing":                 {having(nil), decide.Missing},
		"the object is none of the rule's": {nil, decide.Missing},
	} {
		t.Run(sentence, func(t *testing.T) {
			require.Equal(t, Use{
				Consumer: "Bucket.example.com/team/chosen", Object: "Secret/team/shared", Mode: refs.Fields, Keys: []string{"key"},
				Rule: "rule", OnChange: fields.StepSet, Reason: spec.ReasonKept, Status: test.want,
			}, fieldsUse(wanted, bucket, ref, test.current))
		})
	}
}
