package sync

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
)

// calling is a rule whose clones are called target, or as the source is.
func calling(tb testing.TB, name, target string, source rules.Source) Rule {
	tb.Helper()
	source.Namespace = "platform"
	base, err := rules.NewBase(name, source)
	require.NoError(tb, err)
	config := Config{}
	config.Target.Name = target
	config.Default()
	rule, err := Compile(base, config, "headwater-system")
	require.NoError(tb, err)
	return rule
}

func TestTheClaimantsOfAPlaceAreAllThatMayWantItInTheFilesOrder(t *testing.T) {
	everything := &metav1.LabelSelector{}
	set := rules.NewSet(
		calling(t, "a by name", "", rules.Source{Kind: object.Secret, Name: "a"}),
		calling(t, "all", "", rules.Source{Kind: object.Secret, Selector: everything}),
		calling(t, "b as a", "a", rules.Source{Kind: object.Secret, Name: "b"}),
		calling(t, "all as b", "b", rules.Source{Kind: object.Secret, Selector: everything}),
		calling(t, "a of another kind", "", rules.Source{Kind: object.ConfigMap, Name: "a"}),
		calling(t, "all once more", "", rules.Source{Kind: object.Secret, Selector: everything}),
		calling(t, "a once more", "", rules.Source{Kind: object.Secret, Name: "a"}),
	)
	claimants := newClaimants(set)
	for target, want := range map[object.Ref][]string{
		{Kind: object.Secret, Name: "a"}:    {"a by name", "all", "b as a", "all once more", "a once more"},
		{Kind: object.Secret, Name: "b"}:    {"all", "all as b", "all once more"},
		{Kind: object.Secret, Name: "c"}:    {"all", "all once more"},
		{Kind: object.ConfigMap, Name: "a"}: {"a of another kind"},
		{Kind: object.ConfigMap, Name: "b"}: nil,
	} {
		var found, asked []string
		for _, rule := range claimants.of(target) {
			found = append(found, rule.Name)
		}
		for _, rule := range set.All() {
			if _, may := rule.sourceOf(target); may {
				asked = append(asked, rule.Name)
			}
		}
		require.Equal(t, want, found, target)
		require.Equal(t, asked, found, "as if each rule were asked about %s", target)
	}
}

// What a look at one place costs must not grow with the number of rules.
func BenchmarkAPlaceAmongRules(b *testing.B) {
	for _, many := range []int{2, 200} {
		b.Run(fmt.Sprint(many), func(b *testing.B) {
			set := []Rule{calling(b, "blog", "", rules.Source{Kind: object.Secret, Name: "blogsecret"})}
			for len(set) < many {
				name := fmt.Sprint("other-", len(set))
				set = append(set, calling(b, name, "", rules.Source{Kind: object.Secret, Name: name}))
			}
			glance := viewOf(b, 5, set...).Glance()
			for b.Loop() {
				glance(object.Ref{Kind: object.Secret, Namespace: "team-4", Name: "blogsecret"}, func(Finding) {})
			}
		})
	}
}
