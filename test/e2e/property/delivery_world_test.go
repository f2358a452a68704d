package property

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

const (
	deliverySource = "dp-src"
	deliveryNode   = "dp-node"
	operator       = "dp-operator"
	canaryRing     = "canary"
	noRing         = "none"
	// The consumers in slowNamespace take slowStart from when they read until they are
	// ready, or fail.
	slowNamespace, slowStart = "dp-c2", 3 * time.Second
	// sharedConsumer, in sharedNamespace, reads the clones of both rules. No bad value of one
	// rule comes there alone, so that it is known which rule it stops.
	sharedConsumer, sharedNamespace = "both", "dp-h1"
	// valueKey is the key of the sources.
	valueKey = "k"
)

var (
	// steady are namespaces that stay as they are, one in each stage.
	steady = []string{"dp-c1", "dp-h1", "dp-r1"}
	// moving are namespaces that come and go. The first one changes its stage as well.
	moving = []string{"dp-c2", "dp-h2", "dp-r2"}
)

const deliverySections = "reload: {minInterval: 0s, maxRestartsPerHour: 0}\n" + lab.EveryDelete

// deliveryWorld is the cluster, and what the test alone knows of it.
type deliveryWorld struct {
	*env
	dice

	headwater *lab.Headwater
	models    []*model
	rings     map[string]string
	// made counts values. next is from where the history is to be read on.
	made int
	next int64
	// reloads is how many configurations were applied since the last start. rules are
	// those of the last one.
	reloads float64
	rules   string

	// ran is since when, by etcd's revision, a pod that had read a value was ready.
	ran map[run]int64

	// idleIn are the namespaces whose consumers have no replicas.
	idleIn map[string]bool

	mu     sync.Mutex
	sickIn map[string]bool
	// read are the values that each pod read at its start, by the consumer that reads one alone.
	read map[types.UID]map[string]string
}

// run is a value that a consumer in a namespace ran.
type run struct{ consumer, namespace, value string }

func newDeliveryWorld(t *testing.T, seed uint64) *deliveryWorld {
	t.Helper()
	w := &deliveryWorld{
		env: &env{lab.On(t, cluster.ForTest(t, cluster.Options{}))}, dice: newDice(seed), rings: map[string]string{}, sickIn: map[string]bool{}, idleIn: map[string]bool{}, next: 1,
		ran: map[run]int64{}, read: map[types.UID]map[string]string{},
	}
	w.Plain()
	w.RuleStatuses()
	w.Sections = deliverySections
	w.Node(deliveryNode)
	require.NoError(t, lab.Bind(t.Context(), w.Admin, "cluster-admin", operator))
	w.Namespace(deliverySource)
	first := w.value(goodValue)
	for i, kind := range object.Kinds {
		m := &model{
			rule: strings.ToLower(string(kind)), kind: kind, hold: i == 1, approval: i == 1, stages: true, half: true,
			value: first, verdict: revisions.Delivered, stable: first, newest: first, rejected: map[string]bool{}, blamed: map[string]bool{}, have: map[string]string{},
		}
		m.rest()
		w.models = append(w.models, m)
		w.write(m, false)
	}
	w.PlayKubelet("spec.nodeName="+deliveryNode, w.health)
	for _, namespace := range slices.Concat(steady, moving[:2]) {
		w.createNamespace(namespace)
	}
	w.start()
	return w
}

func (w *deliveryWorld) ring(namespace string) string { return w.rings[namespace] }

func (w *deliveryWorld) idle(namespace string) bool { return w.idleIn[namespace] }

func (w *deliveryWorld) sick(namespace string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sickIn[namespace]
}

func (w *deliveryWorld) anySick() bool { return slices.ContainsFunc(moving, w.sick) }

func (w *deliveryWorld) setSick(namespace string, sick bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sickIn[namespace] = sick; !sick {
		delete(w.sickIn, namespace)
	}
}

func (w *deliveryWorld) value(kind string) string {
	w.made++
	return kind + strconv.Itoa(w.made)
}

// write writes the source of m.
func (w *deliveryWorld) write(m *model, allAtOnce bool) {
	ref := object.Ref{Kind: m.kind, Namespace: deliverySource, Name: sharedName}
	w.Eventually(func(context.Context) error {
		source := &object.Full{ObjectMeta: object.NewMeta(ref), Kind: m.kind, Content: object.Content{Data: map[string][]byte{valueKey: []byte(m.value)}}}
		if allAtOnce {
			source.Annotations = map[string]string{mark.Delivery: mark.AllAtOnce + ": " + m.value} // another one than before
		}
		if before := w.find(ref); before != nil {
			source.UID, source.ResourceVersion = before.UID, before.ResourceVersion
		}
		_, err := w.put(source)
		return err
	})
}

// createNamespace creates a namespace with a consumer of each clone.
func (w *deliveryWorld) createNamespace(name string) {
	ring := noRing
	if strings.HasPrefix(name, "dp-c") {
		ring = canaryRing
	}
	w.Eventually(func(ctx context.Context) error { // one of that name may be terminating
		_, err := w.Admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"ring": ring}}}, metav1.CreateOptions{})
		return err
	})
	w.rings[name] = ring
	both := lab.ByNothing()
	for _, m := range w.models {
		m.arrive(w, name)
		spec, read := lab.ByNothing(), use{ref: object.Ref{Kind: m.kind, Namespace: name, Name: sharedName}, key: valueKey}
		read.consume(&spec)
		read.consume(&both)
		w.Create(name, lab.Deployment(name, m.consumer(), 1, spec))
	}
	if name == sharedNamespace {
		w.Create(name, lab.Deployment(name, sharedConsumer, 1, both))
	}
}

func (w *deliveryWorld) deleteNamespace(name string) {
	require.NoError(w, w.Admin.CoreV1().Namespaces().Delete(w.Context(), name, metav1.DeleteOptions{}))
	delete(w.rings, name)
	delete(w.idleIn, name)
	w.setSick(name, false)
	for _, m := range w.models {
		delete(m.have, name)
		delete(m.blamed, name)
	}
}

func (w *deliveryWorld) relabel(name, ring string) {
	_, err := w.Admin.CoreV1().Namespaces().Patch(w.Context(), name, types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"ring":%q}}}`, ring), metav1.PatchOptions{})
	require.NoError(w, err)
	w.rings[name] = ring
}

// start starts Headwater, which may have been killed.
func (w *deliveryWorld) start() {
	if w.headwater != nil {
		w.headwater.Kill()
	}
	w.rules = w.file()
	o := w.Options(w.rules)
	o.Args = []string{lab.Alone} // a lease would outlive the killed
	w.headwater, w.reloads = w.Launch(o), 0
}

func (w *deliveryWorld) file() string {
	text := ""
	for _, m := range w.models {
		text += m.config()
	}
	return text
}

// configure writes the file if it differs, and waits until it is in force.
func (w *deliveryWorld) configure() {
	if w.rules == w.file() {
		return
	}
	require.NoError(w, w.headwater.Ready(w.Context()))
	w.rules = w.file()
	w.ConfigFile(w.rules)
	w.reloads++
	w.HasMetric(w.headwater, w.reloads, "headwater_config_reloads_total", map[string]string{"result": "applied"})
}

// steer runs a command about the delivery of a rule.
func (w *deliveryWorld) steer(m *model, verb string, args ...string) (stderr string, exit int) {
	_, stderr, exit = w.Command(operator, append([]string{verb, m.rule}, args...)...)
	return stderr, exit
}

// values returns the value of each clone of m.
func (w *deliveryWorld) values(ctx context.Context, m *model) (map[string]string, error) {
	values := map[string]string{}
	if m.kind == object.Secret {
		all, err := w.Admin.CoreV1().Secrets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: mark.CloneLabel})
		if err != nil {
			return nil, err
		}
		for _, one := range all.Items {
			values[one.Namespace] = string(one.Data[valueKey])
		}
	} else {
		all, err := w.Admin.CoreV1().ConfigMaps(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: mark.CloneLabel})
		if err != nil {
			return nil, err
		}
		for _, one := range all.Items {
			values[one.Namespace] = one.Data[valueKey]
		}
	}
	maps.DeleteFunc(values, func(namespace, _ string) bool { _, alive := w.rings[namespace]; return !alive })
	return values, nil
}

// recorded is a revision of a rule, as it is stored.
type recorded struct {
	name, value string
	number      int
	verdict     revisions.Verdict
}

// recorded returns the recorded revisions of m, oldest first.
func (w *deliveryWorld) recorded(ctx context.Context, m *model) (all []recorded, err error) {
	add := func(o metav1.Object, value string) {
		name := o.GetName()
		number, _ := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
		all = append(all, recorded{name, value, number, revisions.Verdict(o.GetAnnotations()[mark.Verdict])})
	}
	of := metav1.ListOptions{LabelSelector: mark.Revision + "," + mark.Rule + "=" + m.rule}
	secrets, err := w.Admin.CoreV1().Secrets(lab.Namespace).List(ctx, of)
	if err != nil {
		return nil, err
	}
	for i := range secrets.Items {
		add(&secrets.Items[i], string(secrets.Items[i].Data[valueKey]))
	}
	configMaps, err := w.Admin.CoreV1().ConfigMaps(lab.Namespace).List(ctx, of)
	if err != nil {
		return nil, err
	}
	for i := range configMaps.Items {
		add(&configMaps.Items[i], configMaps.Items[i].Data[valueKey])
	}
	slices.SortFunc(all, func(a, b recorded) int { return a.number - b.number })
	return all, nil
}

// patchObject patches an object of m's kind.
func (w *deliveryWorld) patchObject(m *model, namespace, name string, body []byte) {
	var err error
	if m.kind == object.Secret {
		_, err = w.Admin.CoreV1().Secrets(namespace).Patch(w.Context(), name, types.MergePatchType, body, metav1.PatchOptions{})
	} else {
		_, err = w.Admin.CoreV1().ConfigMaps(namespace).Patch(w.Context(), name, types.MergePatchType, body, metav1.PatchOptions{})
	}
	require.NoError(w, err)
}
