package property

import (
	"context"
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

// A small world, so that everything meets everything.
var (
	sourceNamespaces = []string{"prop-src1", "prop-src2"}
	targetNamespaces = []string{"prop-a1", "prop-a2", "prop-b1", "prop-b2", "prop-c1"}
	sourceNames      = []string{"one", "two"}
	cloneNames       = []string{"one", "two", "alias"}
	tiers            = []string{"gold", "silver", "none"}
)

// theirs prefixes labels that nobody but strangers uses.
const theirs = "stranger.example/"

// version is an object as somebody left it.
type version struct {
	uid      types.UID
	revision string
}

func versionOf(o *object.Full) version { return version{o.UID, o.ResourceVersion} }

// world is the cluster, and what the test alone knows of it.
type world struct {
	*env
	dice

	headwater *lab.Headwater
	rules     []config.Rule
	// strangers are the objects that are somebody else's, as they left them.
	strangers map[object.Ref]version
	// takeable are the clones' names, without namespace, that a rule of this
	// round may have taken from strangers.
	takeable map[object.Ref]bool
	alive    map[string]bool
	// gentle is true in rounds that give no cause to remove or remake a clone.
	gentle bool
	since  cluster.Mark
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{
		env: newEnv(t), dice: newDice(seed),
		strangers: map[object.Ref]version{}, alive: map[string]bool{},
	}
	w.Sections = lab.EveryDelete
	for _, name := range sourceNamespaces {
		w.Namespace(name)
	}
	for _, name := range targetNamespaces {
		w.Namespace(name, "tier="+pick(w, tiers))
		w.alive[name] = true
	}
	w.gentle = true
	for range 4 {
		w.putSource()
		w.addRule()
	}
	w.restart()
	return w
}

// begin starts a round: what was is as the rules asked for, and what was taken
// over is no stranger's any more.
func (w *world) begin() {
	maps.DeleteFunc(w.strangers, func(ref object.Ref, left version) bool {
		now := w.find(ref)
		return now == nil || versionOf(now) != left
	})
	w.since, w.takeable = w.Cluster.Mark(), map[object.Ref]bool{}
	w.noteTakeable()
}

// judge compares the whole cluster with what the rules ask for.
func (w *world) judge(ctx context.Context) error {
	o := oracle{
		rules: w.rules, strangers: w.strangers, takeable: w.takeable,
		namespaces: map[string]map[string]string{}, objects: map[object.Ref]*object.Full{},
	}
	namespaces, err := w.Admin.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, namespace := range namespaces.Items {
		if w.alive[namespace.Name] {
			o.namespaces[namespace.Name] = namespace.Labels
		}
	}
	secrets, err := w.Admin.CoreV1().Secrets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range secrets.Items {
		o.add(&secrets.Items[i])
	}
	configMaps, err := w.Admin.CoreV1().ConfigMaps(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range configMaps.Items {
		o.add(&configMaps.Items[i])
	}
	return o.judge()
}
