package sync

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync/board"
	"github.com/headwater-k8s/headwater/sync/internal/synctest"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/progress"
	"github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

const worldNamespaces = 6

// boardWorld changes a cluster at random.
type boardWorld struct {
	t       *testing.T
	random  *rand.Rand
	view    *View
	clients *kube.Clients
	// metadata is the cluster as metadata clients see it.
	metadata clienttesting.ObjectTracker
	// seconds are since 1970; handlers read them, too.
	seconds  atomic.Int64
	fraction float64
	version  int
	rules    []spec.Rule
	// full evaluates everything each time.
	full *board.Board
	// followed are the clones by namespace that a reader of the changes until at knows.
	followed map[string][]survey.CloneStatus
	at       uint64
}

func newBoardWorld(t *testing.T, seed uint64) *boardWorld {
	t.Helper()
	gold := synctest.RuleNamed(t, "gold", "", rules.Source{Kind: object.Secret, Name: "one"})
	gold.Namespaces = synctest.Rule(t, func(c *spec.Config) {
		c.Namespaces.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}
	}).Namespaces
	gold.OnSourceDeleted = spec.Delete
	second := *synctest.Rule(t, nil)
	second.Name = "second"
	w := &boardWorld{
		t: t, random: rand.New(rand.NewPCG(seed, seed)), fraction: 0.3, version: 100,
		rules: []spec.Rule{
			*synctest.Rule(t, nil), staged(t), second, gold,
			synctest.RuleNamed(t, "shared", "", rules.Source{Kind: object.Secret, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"share": "yes"}}}),
		},
	}
	w.seconds.Store(5000)
	w.view, w.clients = viewOn(t, nil, nil, w.rules[0], gold, w.rules[4])
	w.metadata = w.clients.Metadata.(interface {
		Tracker() clienttesting.ObjectTracker
	}).Tracker()
	c := w.view.controller
	c.now, c.maxFraction = w.now, func() float64 { return w.fraction }
	w.followed = map[string][]survey.CloneStatus{}
	w.full = board.New(c.board.Params)
	return w
}

// step changes something, and says what.
func (w *boardWorld) step() string {
	steps := []struct {
		what   string
		weight int
		do     func() string
	}{
		{"namespace", 2, w.changeNamespace},
		{"source", 2, w.changeSource},
		{"reconciled", 6, w.reconcile},
		{"clone", 2, w.changeClone},
		{"other object", 1, w.changeOther},
		{"failure", 1, w.fail},
		{"fight", 2, w.fight},
		{"rules", 1, w.changeRules},
		{"revision", 1, w.changeRevision},
		{"approvals", 2, w.approve},
		{"time", 2, w.passTime},
		{"fraction", 2, w.changeFraction},
	}
	at := w.random.IntN(24)
	for _, step := range steps {
		if at -= step.weight; at < 0 {
			return step.what + " " + step.do()
		}
	}
	panic("the weights add up to 24")
}

func (w *boardWorld) passTime() string {
	return fmt.Sprint(w.seconds.Add(w.random.Int64N(180)))
}

func (w *boardWorld) now() time.Time { return time.Unix(w.seconds.Load(), 0) }

func (w *boardWorld) changeFraction() string {
	w.fraction = []float64{0.1, 0.3, 1}[w.random.IntN(3)]
	return fmt.Sprint(w.fraction)
}

func (w *boardWorld) nextVersion() string {
	w.version++
	return strconv.Itoa(w.version)
}

func (w *boardWorld) namespace() string {
	return fmt.Sprintf("team-%d", w.random.IntN(worldNamespaces))
}

func (w *boardWorld) name() string { return []string{"blogsecret", "one", "two"}[w.random.IntN(3)] }

func (w *boardWorld) target() object.Ref {
	return object.Ref{Kind: object.Secret, Namespace: w.namespace(), Name: w.name()}
}

// put creates or replaces obj.
func (w *boardWorld) put(tracker clienttesting.ObjectTracker, resource, namespace string, obj runtime.Object) {
	w.t.Helper()
	gvr := schema.GroupVersionResource{Version: "v1", Resource: resource}
	err := tracker.Create(gvr, obj, namespace)
	if apierrors.IsAlreadyExists(err) {
		err = tracker.Update(gvr, obj, namespace)
	}
	require.NoError(w.t, err)
}

func (w *boardWorld) remove(tracker clienttesting.ObjectTracker, resource, namespace, name string) {
	w.t.Helper()
	err := tracker.Delete(schema.GroupVersionResource{Version: "v1", Resource: resource}, namespace, name)
	if !apierrors.IsNotFound(err) {
		require.NoError(w.t, err)
	}
}

func (w *boardWorld) typed() clienttesting.ObjectTracker {
	return w.clients.Typed.(interface {
		Tracker() clienttesting.ObjectTracker
	}).Tracker()
}

func (w *boardWorld) changeNamespace() string {
	name := w.namespace()
	if w.random.IntN(4) == 0 {
		w.remove(w.metadata, "namespaces", "", name)
		return name + " deleted"
	}
	namespace := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: w.nextVersion(), Labels: map[string]string{"tier": []string{"gold", "tin"}[w.random.IntN(2)]}},
	}
	if w.random.IntN(6) == 0 {
		namespace.DeletionTimestamp, namespace.Finalizers = &metav1.Time{Time: w.now()}, []string{"kubernetes"}
	}
	w.put(w.metadata, "namespaces", "", namespace)
	return fmt.Sprint(name, " ", namespace.Labels, " ", namespace.DeletionTimestamp)
}

func (w *boardWorld) changeSource() string {
	name := w.name()
	if w.random.IntN(4) == 0 {
		w.remove(w.typed(), "secrets", "platform", name)
		return name + " deleted"
	}
	source := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: name, UID: "source-1", ResourceVersion: w.nextVersion()},
		Data:       map[string][]byte{"password": {byte('a' + w.random.IntN(3))}},
	}
	if w.random.IntN(5) == 0 {
		source.Data = nil // emptied
	}
	if name != "blogsecret" && w.random.IntN(2) == 0 {
		source.Labels = map[string]string{"share": "yes"}
	}
	w.put(w.typed(), "secrets", "platform", source)
	return fmt.Sprint(name, " ", source.Labels, " ", len(source.Data))
}

// reconcile does what the controller would do at a target.
func (w *boardWorld) reconcile() string {
	target := w.target()
	state, err := w.view.controller.State(target)
	if err != nil {
		return target.String()
	}
	decision := plan.Plan(state)
	switch decision.Action {
	case plan.Create, plan.Update, plan.Recreate:
		clone := decision.Desired.ToSecret()
		clone.ResourceVersion = w.nextVersion()
		w.put(w.typed(), "secrets", target.Namespace, clone)
	case plan.Remove:
		w.remove(w.typed(), "secrets", target.Namespace, target.Name)
	default:
	}
	w.view.controller.progress.Record(progress.Outcome{State: state, Decision: decision, Rule: ruleOf(state, decision)}, w.now())
	w.view.Changed(target)
	return fmt.Sprint(target, " ", decision.Action)
}

// changeClone deletes a clone, or writes one of a rule that need not exist.
func (w *boardWorld) changeClone() string {
	target := w.target()
	if w.random.IntN(2) == 0 {
		w.remove(w.typed(), "secrets", target.Namespace, target.Name)
		return target.String() + " deleted"
	}
	rule := []string{"blog", "gold", "former", "former"}[w.random.IntN(4)]
	w.put(w.typed(), "secrets", target.Namespace, w.cloneOf(rule, target))
	return target.String() + " of " + rule
}

// cloneOf returns a clone without data.
func (w *boardWorld) cloneOf(rule string, target object.Ref) *corev1.Secret {
	clone := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: target.Namespace, Name: target.Name, ResourceVersion: w.nextVersion()}}
	source := object.Ref{Kind: object.Secret, Namespace: "platform", Name: target.Name}
	mark.Stamp(&clone.ObjectMeta, mark.Clone{Rule: rule, Source: source, SourceUID: "source-1"})
	return clone
}

func (w *boardWorld) changeOther() string {
	target := w.target()
	if w.random.IntN(2) == 0 {
		w.remove(w.metadata, "secrets", target.Namespace, target.Name)
		return target.String() + " deleted"
	}
	w.put(w.metadata, "secrets", target.Namespace, &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: target.Namespace, Name: target.Name, ResourceVersion: w.nextVersion()},
	})
	return target.String()
}
