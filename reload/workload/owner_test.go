package workload_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/workload"
)

func controlled(name string, by *workload.Owner) *workload.Workload {
	return &workload.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}, Kind: kinds.KindDeployment, Owner: by}
}

// targetInfo is a kind without a pod template.
var targetInfo = kinds.CustomKind{Group: "example.com", Version: "v1", Kind: "App"}.Info()

// customOf is an object of that kind which nobody controls.
func customOf(t *testing.T, info *kinds.Info) *workload.Workload {
	t.Helper()
	kept, err := workload.KeepCustom(info, workload.ActedOn)(reloadtest.Custom(t, "{metadata: {namespace: ns, name: app, uid: uid-app}, spec: {template: {}}}"))
	require.NoError(t, err)
	return kept
}

func TestTheTopmostKnownOwnerIsStamped(t *testing.T) {
	app := workload.Owner{Kind: "App.example.com", Name: "app", UID: "uid-app"}
	fleet := workload.Owner{Kind: "Fleet.example.com", Name: "fleet", UID: "uid-fleet"}
	found := func(workloads ...*workload.Workload) func(workload.Owner) (*workload.Workload, workload.OwnerLookup) {
		return func(owner workload.Owner) (*workload.Workload, workload.OwnerLookup) {
			for _, w := range workloads {
				if w.Name == owner.Name {
					return w, workload.OwnerFound
				}
			}
			return nil, workload.OwnerNotFound
		}
	}
	seen := func(sight workload.OwnerLookup) func(workload.Owner) (*workload.Workload, workload.OwnerLookup) {
		return func(workload.Owner) (*workload.Workload, workload.OwnerLookup) { return nil, sight }
	}
	bare := controlled("app", nil)
	bare.NoTemplate = true
	bareBelow, bareFleet := controlled("app", &fleet), controlled("fleet", nil)
	bareBelow.NoTemplate, bareFleet.NoTemplate = true, true
	target := customOf(t, targetInfo)
	require.Equal(t, app.UID, target.UID)
	circle := controlled("app", &workload.Owner{Kind: kinds.KindDeployment, Name: "web", UID: "uid-web"})
	for sentence, test := range map[string]struct {
		owner    *workload.Owner
		look     func(workload.Owner) (*workload.Workload, workload.OwnerLookup)
		top      string
		unread   bool
		stranger *workload.Owner
	}{
		"one that nobody controls is stamped itself":             {look: seen(workload.OwnerFound), top: "web"},
		"its owner is, where the kind is known":                  {owner: &app, look: found(controlled("app", nil)), top: "app"},
		"the owner's owner is":                                   {owner: &app, look: found(controlled("app", &fleet), controlled("fleet", nil)), top: "fleet"},
		"of an unknown kind, it is stamped itself":               {owner: &app, look: seen(workload.OwnerUnsupported), top: "web", stranger: &app},
		"an owner without a pod template is a stranger":          {owner: &app, look: found(bare), top: "web", stranger: &app},
		"nor does a target hold one":                             {owner: &app, look: found(target), top: "web", stranger: &app},
		"while the kind is being read nobody is":                 {owner: &app, look: seen(workload.OwnerNotSynced), top: "web", unread: true},
		"an owner that is gone has no say":                       {owner: &app, look: seen(workload.OwnerNotFound), top: "web"},
		"nor has another that took its name":                     {owner: &workload.Owner{Kind: app.Kind, Name: "app", UID: "old"}, look: found(controlled("app", nil)), top: "web"},
		"a circle leads nowhere":                                 {owner: &app, look: found(circle, controlled("web", &app)), top: "web"},
		"an owner between may have none":                         {owner: &app, look: found(bareBelow, controlled("fleet", nil)), top: "fleet"},
		"the topmost of several that have none is named":         {owner: &app, look: found(bareBelow, bareFleet), top: "web", stranger: &fleet},
		"the walk ends at what is not known above a known owner": {owner: &app, look: found(controlled("app", &fleet)), top: "app"},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := workload.FindRootOwner(controlled("web", test.owner), test.look)
			require.Equal(t, test.top, got.Root.Name)
			require.Equal(t, test.unread, got.NotSynced)
			require.Equal(t, test.stranger, got.Unsupported)
		})
	}
}

func TestWhoUndoesARestart(t *testing.T) {
	w := controlled("web", &workload.Owner{Kind: "App.example.com", Name: "app"})
	require.False(t, w.StampReverted(""), "there was none")
	require.True(t, w.StampReverted("2026-01-01T00:00:00Z"))
	w.Stamp = 1
	require.False(t, w.StampReverted("2026-01-01T00:00:00Z"))
	w.Stamp, w.Owner = 0, nil
	require.False(t, w.StampReverted("2026-01-01T00:00:00Z"), "a person did")
	w = customOf(t, appInfo())
	require.True(t, w.StampReverted("2026-01-01T00:00:00Z"), "the schema of a declared kind may drop it")
	w = customOf(t, targetInfo)
	require.False(t, w.StampReverted("2026-01-01T00:00:00Z"), "a target has no pod template")
	w = customOf(t, kinds.Known()[0])
	require.Equal(t, kinds.KindRollout, w.Kind)
	require.False(t, w.StampReverted("2026-01-01T00:00:00Z"), "a person did")
}
