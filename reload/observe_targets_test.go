package reload

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
)

func TestHowFieldsStand(t *testing.T) {
	hasher, err := digest.New(make([]byte, digest.KeySize))
	require.NoError(t, err)
	having := func(data map[string][]byte) *object.Digested {
		return &object.Digested{Digests: object.Digest(hasher, object.Content{Data: data})}
	}
	wanted := ruleTarget{target: setTarget(t, "spec.a"), rule: Rule{Base: rules.Base{Name: "rule"}}}
	bucket := &SetTarget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "chosen", Labels: map[string]string{"set": "yes"}}, Form: wanted.form,
		Values: map[string]digest.Sum{"spec.a": object.DigestText(hasher, "1")}, Set: map[string][]string{"rule": {"spec.a"}},
	}
	ref := object.Ref{Kind: object.Secret, Namespace: "team", Name: "shared"}
	for sentence, test := range map[string]struct {
		current *object.Digested
		want    Standing
	}{
		"the fields hold the values":       {having(map[string][]byte{"key": []byte("1")}), Current},
		"a value has changed":              {having(map[string][]byte{"key": []byte("2")}), Behind},
		"a key is missing":                 {having(nil), Missing},
		"the object is none of the rule's": {nil, Missing},
	} {
		t.Run(sentence, func(t *testing.T) {
			require.Equal(t, Use{
				Consumer: "Bucket.example.com/team/chosen", Object: "Secret/team/shared", Mode: Fields, Keys: []string{"key"},
				Rule: "rule", OnChange: StepSet, Reason: ReasonKept, Standing: test.want,
			}, fieldsUse(wanted, bucket, ref, test.current))
		})
	}
}
