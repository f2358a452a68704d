package workload

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/reload/kinds"
)

func controlled(name string, by *Owner) *Workload {
	return &Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}, Kind: kinds.KindDeployment, Owner: by}
}

func TestTheTopmostKnownOwnerIsStamped(t *testing.T) {
	app := Owner{Kind: "App.example.com", Name: "app", UID: "uid-app"}
	fleet := Owner{Kind: "Fleet.example.com", Name: "fleet", UID: "uid-fleet"}
	found := func(workloads ...*Workload) func(Owner) (*Workload, OwnerLookup) {
		return func(owner Owner) (*Workload, OwnerLookup) {
			for _, w := range workloads {
				if w.Name == owner.Name {
					return w, OwnerFound
				}
			}
			return nil, OwnerNotFound
		}
	}
	seen := func(sight OwnerLookup) func(Owner) (*Workload, OwnerLookup) {
		return func(Owner) (*Workload, OwnerLookup) { return nil, sight }
	}
	bare := controlled("app", nil)
	bare.NoTemplate = true
	target := controlled("app", nil)
	target.custom = kinds.CustomKind{Group: "example.com", Version: "v1", Kind: "App"}.Info()
	circle := controlled("app", &Owner{Kind: kinds.KindDeployment, Name: "web", UID: "uid-web"})
	for sentence, test := range map[string]struct {
		owner    *Owner
		look     func(Owner) (*Workload, OwnerLookup)
		top      string
		unread   bool
		stranger *Owner
	}{
		"one that nobody controls is stamped itself":             {look: seen(OwnerFound), top: "web"},
		"its owner is, where the kind is known":                  {owner: &app, look: found(controlled("app", nil)), top: "app"},
		"the owner's owner is":                                   {owner: &app, look: found(controlled("app", &fleet), controlled("fleet", nil)), top: "fleet"},
		"of an unknown kind, it is stamped itself":               {owner: &app, look: seen(OwnerUnsupported), top: "web", stranger: &app},
		"an owner without a pod template is a stranger":          {owner: &app, look: found(bare), top: "web", stranger: &app},
		"nor does a target hold one":                             {owner: &app, look: found(target), top: "web", stranger: &app},
		"while the kind is being read nobody is":                 {owner: &app, look: seen(OwnerNotSynced), top: "web", unread: true},
		"an owner that is gone has no say":                       {owner: &app, look: seen(OwnerNotFound), top: "web"},
		"nor has another that took its name":                     {owner: &Owner{Kind: app.Kind, Name: "app", UID: "old"}, look: found(controlled("app", nil)), top: "web"},
		"a circle leads nowhere":                                 {owner: &app, look: found(circle, controlled("web", &app)), top: "web"},
		"the walk ends at what is not known above a known owner": {owner: &app, look: found(controlled("app", &fleet)), top: "app"},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := FindRootOwner(controlled("web", test.owner), test.look)
			require.Equal(t, test.top, got.Root.Name)
			require.Equal(t, test.unread, got.NotSynced)
			require.Equal(t, test.stranger, got.Unsupported)
		})
	}
}

func TestWhoUndoesARestart(t *testing.T) {
	w := controlled("web", &Owner{Kind: "App.example.com", Name: "app"})
	require.False(t, w.StampReverted(""), "there was none")
	require.True(t, w.StampReverted("2026-01-01T00:00:00Z"))
	w.Stamp = 1
	require.False(t, w.StampReverted("2026-01-01T00:00:00Z"))
	w.Stamp, w.Owner = 0, nil
	require.False(t, w.StampReverted("2026-01-01T00:00:00Z"), "a person did")
	w.Kind, w.custom = "App.example.com", appInfo()
	require.True(t, w.StampReverted("2026-01-01T00:00:00Z"), "the schema of a declared kind may drop it")
	w.custom = kinds.CustomKind{Group: "example.com", Version: "v1", Kind: "App"}.Info()
	require.False(t, w.StampReverted("2026-01-01T00:00:00Z"), "a target has no pod template")
	w.Kind, w.custom = kinds.KindRollout, kinds.Known()[0]
	require.False(t, w.StampReverted("2026-01-01T00:00:00Z"), "a person did")
}
