package survey

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync/internal/synctest"
)

func TestTheClaimantsOfAPlaceAreAllThatMayWantItInTheFilesOrder(t *testing.T) {
	everything := &metav1.LabelSelector{}
	set := rules.NewSet(
		synctest.RuleNamed(t, "a by name", "", rules.Source{Kind: object.Secret, Name: "a"}),
		synctest.RuleNamed(t, "all", "", rules.Source{Kind: object.Secret, Selector: everything}),
		synctest.RuleNamed(t, "b as a", "a", rules.Source{Kind: object.Secret, Name: "b"}),
		synctest.RuleNamed(t, "all as b", "b", rules.Source{Kind: object.Secret, Selector: everything}),
		synctest.RuleNamed(t, "a of another kind", "", rules.Source{Kind: object.ConfigMap, Name: "a"}),
		synctest.RuleNamed(t, "all once more", "", rules.Source{Kind: object.Secret, Selector: everything}),
		synctest.RuleNamed(t, "a once more", "", rules.Source{Kind: object.Secret, Name: "a"}),
	)
	index := newRuleIndex(set)
	for target, want := range map[object.Ref][]string{
		{Kind: object.Secret, Name: "a"}:    {"a by name", "all", "b as a", "all once more", "a once more"},
		{Kind: object.Secret, Name: "b"}:    {"all", "all as b", "all once more"},
		{Kind: object.Secret, Name: "c"}:    {"all", "all once more"},
		{Kind: object.ConfigMap, Name: "a"}: {"a of another kind"},
		{Kind: object.ConfigMap, Name: "b"}: nil,
	} {
		var found, asked []string
		for _, rule := range index.Of(target) {
			found = append(found, rule.Name)
		}
		for _, rule := range set.All() {
			if _, may := rule.SourceOf(target); may {
				asked = append(asked, rule.Name)
			}
		}
		require.Equal(t, want, found, target)
		require.Equal(t, asked, found, "as if each rule were asked about %s", target)
	}
}
