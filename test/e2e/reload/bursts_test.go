package reload

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

// edit is what somebody does, by the prefix of lab.ReloadRule.
type edit func(e *env, prefix string)

// burst is a series of edits near one workload.
type burst struct {
	pace pace
	// stage makes the workload, of the name web.
	stage edit
	edits []edit
	every time.Duration
	// least and most are how many new pod templates it makes, those of the workload's owner
	// among them, if every edit comes in time. See slack.
	least, most int
}

type pace struct{ debounce, interval time.Duration }

func (p pace) String() string {
	return fmt.Sprintf("debounce: %s, minInterval: %s", p.debounce, p.interval)
}

// bursts are every shape that edits come in, by the prefix of lab.ReloadRule. Every
// key is 1 before the first of them.
func bursts() map[string]burst {
	another := func(i int) string { return fmt.Sprint("v", i) }
	toAndFro := func(i int) string { return []string{"2", "1"}[i%2] }
	debounced, unpaced := pace{time.Second, 30 * time.Second}, pace{}
	asked := pace{spec.DefaultDebounce, 0} // no rule's
	return map[string]burst{
		"one-edit":  {debounced, idle, times(1, used, another), 0, 1, 1},
		"at-once":   {debounced, idle, times(10, used, another), 0, 1, 1},
		"in-a-row":  {debounced, idle, times(10, used, another), 50 * time.Millisecond, 1, 1},
		"there-and": {pace{time.Second, 0}, idle, times(2, used, toAndFro), 100 * time.Millisecond, 0, 0},
		// A change puts off those that wait, but not for more than 10 s: the workload
		// would never hear of any.
		"no-end":    {pace{time.Second, 0}, idle, times(120, used, another), 100 * time.Millisecond, 2, 4},
		"a-trickle": {pace{0, 2 * time.Second}, idle, times(20, used, another), 250 * time.Millisecond, 2, 5},
		// After three, the least time between two doubles.
		"flapping": {pace{0, time.Second}, idle, times(60, used, toAndFro), 100 * time.Millisecond, 2, 6},

		"another-key":         {unpaced, idle, times(3, unused, another), 0, 0, 0},
		"all-keys":            {unpaced, idle, []edit{allKeys, unused("3")}, 0, 1, 1},
		"objects":             {pace{2 * time.Second, 0}, asking("own-a", "own-b"), []edit{used("2"), own("own-a")("2"), own("own-b")("2")}, 0, 1, 1},
		"asked-for":           {asked, asking("own-a"), times(10, own("own-a"), another), 50 * time.Millisecond, 1, 1},
		"asked-and-back":      {asked, asking("own-a"), times(2, own("own-a"), toAndFro), 100 * time.Millisecond, 0, 0},
		"recreated-same":      {unpaced, idle, []edit{recreateSource("1")}, 0, 0, 0},
		"recreated-other":     {unpaced, idle, []edit{recreateSource("2")}, 0, 1, 1},
		"own-recreated-same":  {unpaced, asking("own-a"), []edit{recreateOwn("1")}, 0, 0, 0},
		"own-recreated-other": {unpaced, asking("own-a"), []edit{recreateOwn("2")}, 0, 1, 1},
		// As kustomize does, whose objects have a hash of their data in their names.
		"renamed": {unpaced, asking("config-1"), []edit{renamed}, 0, 1, 1},

		"amid-its-own":   {unpaced, serving, []edit{used("2"), newPodBound, used("3")}, 0, 2, 2},
		"before-its-pod": {unpaced, servingLate, []edit{keptOff, used("2"), newPod, used("3"), letOn}, 0, 1, 1},
		"set-upgraded":   {pace{setDebounce, 0}, servingSet, []edit{setUpgraded}, 0, 1, 1},
	}
}

// idle makes a Deployment of no pods that reads the key used of the clone.
func idle(e *env, prefix string) {
	e.Deployment(prefix+"-a", "web", lab.ByEnv("shared", "used"), nil)
}

// times are n edits to what value says.
func times(n int, to func(value string) edit, value func(i int) string) []edit {
	all := make([]edit, n)
	for i := range all {
		all[i] = to(value(i))
	}
	return all
}

func used(value string) edit {
	return func(e *env, prefix string) { e.Change(prefix, "used", value) }
}

func unused(value string) edit {
	return func(e *env, prefix string) { e.Change(prefix, "unused", value) }
}

func allKeys(e *env, prefix string) {
	e.Edit(prefix+"-src", "shared", func(s *corev1.Secret) { s.Data["used"], s.Data["unused"] = []byte("2"), []byte("2") })
}

// own edits a Secret that is the workload's namespace's own.
func own(name string) func(value string) edit {
	return func(value string) edit {
		return func(e *env, prefix string) { e.SetKey(prefix+"-a", name, "k", value) }
	}
}

func recreateSource(value string) edit {
	return func(e *env, prefix string) {
		e.without(prefix+"-src", "shared")
		e.Secret(prefix+"-src", "shared", map[string]string{"used": value, "unused": "1"})
	}
}

func recreateOwn(value string) edit {
	return func(e *env, prefix string) {
		e.without(prefix+"-a", "own-a")
		e.Secret(prefix+"-a", "own-a", map[string]string{"k": value})
	}
}

// without deletes a Secret.
func (e *env) without(namespace, name string) {
	e.Helper()
	require.NoError(e, e.Admin.CoreV1().Secrets(namespace).Delete(e.Context(), name, metav1.DeleteOptions{}))
}

// asking makes a Deployment whose owner asks for it to be reloaded for the clone
// and for these Secrets of its namespace.
func asking(names ...string) edit {
	return func(e *env, prefix string) {
		spec := lab.ByEnv("shared", "used")
		for _, name := range names {
			e.Secret(prefix+"-a", name, map[string]string{"k": "1"})
			spec.Containers[0].EnvFrom = append(spec.Containers[0].EnvFrom, lab.ByEnvFrom(name).Containers[0].EnvFrom...)
		}
		e.Deployment(prefix+"-a", "web", spec, map[string]string{mark.Reload: "Auto"})
	}
}

// renamed deploys with a new Secret in place of the old one, and prunes that.
func renamed(e *env, prefix string) {
	e.Secret(prefix+"-a", "config-2", map[string]string{"k": "2"})
	e.patched(prefix+"-a", "web", `{"spec":{"template":{"spec":{"containers":[{"name":"app","envFrom":[{"secretRef":{"name":"config-2"}}]}]}}}}`)
	e.without(prefix+"-a", "config-1")
}

func serving(e *env, prefix string) {
	e.Node(prefix + "-node")
	e.serving(prefix+"-a", "web", 1, lab.ByEnv("shared", "used"))
}

func newPodBound(e *env, prefix string) { e.newPodBound(prefix+"-a", "web") }

// servingLate is serving on a node that keptOff and letOn are about.
func servingLate(e *env, prefix string) {
	e.Node(prefix + "-node")
	e.late(prefix + "-node")
	spec := lab.ByEnv("shared", "used")
	spec.NodeSelector = map[string]string{"late": "yes"}
	e.serving(prefix+"-a", "web", 1, spec)
}

func keptOff(e *env, prefix string) {
	_, err := e.Admin.CoreV1().Nodes().Patch(e.Context(), prefix+"-node", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"late":null}}}`), metav1.PatchOptions{})
	require.NoError(e, err)
}

func newPod(e *env, prefix string) {
	e.Eventually(func(context.Context) error {
		return lab.ErrorIf(e.Stamps(prefix + "-a")["Deployment/web"] == "", "not restarted")
	})
	e.updated(prefix+"-a", "web")
	e.SecondLater()
}

func letOn(e *env, prefix string) {
	require.Contains(e, e.HasEvent(prefix+"-a", "web", "RestartWaits"), "a rollout in progress")
	e.SecondLater()
	e.late(prefix + "-node")
	e.rolledOut(prefix+"-a", "web")
}

func servingSet(e *env, prefix string) {
	e.Node(prefix + "-node")
	e.Create(prefix+"-a", lab.StatefulSet(prefix+"-a", "web", 2, lab.ByEnv("shared", "used")))
	e.setRolledOut(prefix + "-a")
}

// setDebounce is long enough to deploy a StatefulSet meanwhile.
const setDebounce = 10 * time.Second

// setUpgraded deploys a new version of the StatefulSet right after its
// configuration, as helm does.
func setUpgraded(e *env, prefix string) {
	edited := time.Now()
	e.Change(prefix, "used", "2")
	e.Cloned(prefix, "used", "2")
	e.SecondLater() // so that its pods are known to have started with that
	_, err := e.Admin.AppsV1().StatefulSets(prefix+"-a").Patch(e.Context(), "web", types.StrategicMergePatchType, []byte(newImage), metav1.PatchOptions{})
	require.NoError(e, err)
	if late := time.Since(edited); late > setDebounce {
		e.Inconclusive("the StatefulSet was upgraded %s after its configuration, and the debounce is %s", late, setDebounce)
	}
	e.HasNote(prefix+"-a", "web", "RestartWaits", "a rollout in progress")
	e.setRolledOut(prefix + "-a")
}

// setRolledOut is rolledOut for the StatefulSet web.
func (e *env) setRolledOut(namespace string) {
	e.Helper()
	e.Eventually(func(ctx context.Context) error {
		failed := e.started(ctx, namespace, "web")
		s, err := e.Admin.AppsV1().StatefulSets(namespace).Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if of := s.Status; of.ObservedGeneration < s.Generation || of.UpdatedReplicas < *s.Spec.Replicas || of.AvailableReplicas < *s.Spec.Replicas {
			return fmt.Errorf("not rolled out: %+v (%w)", of, failed)
		}
		return nil
	})
}

// templates are how many pod templates the workloads of each namespace have had one
// after the other, of those that were made after revision from.
func (e *env) templates(from int64) map[string]int {
	e.Helper()
	editions, _, err := e.Cluster.History(e.Context(), from, "deployments", "statefulsets")
	require.NoError(e, err)
	count, last := map[string]int{}, map[string]corev1.PodTemplateSpec{}
	for _, edition := range editions {
		var template corev1.PodTemplateSpec
		switch w := edition.Object.(type) {
		case *appsv1.Deployment:
			template = w.Spec.Template
		case *appsv1.StatefulSet:
			template = w.Spec.Template
		default:
			continue
		}
		if before, had := last[edition.Namespace]; !had || !equality.Semantic.DeepEqual(before, template) {
			count[edition.Namespace]++
			last[edition.Namespace] = template
		}
	}
	return count
}

// A burst is judged by when its changes were written. What Headwater sees later than that, the
// test sees late, too: a burst with too many or too few rollouts is inconclusive then.
func TestHowManyRolloutsABurstMakes(t *testing.T) {
	e := newEnv(t)
	delays := e.Delays()
	e.Sections = lab.Unpaced
	first := e.Secret(e.Namespace("bursts"), "first", nil)
	from, err := strconv.ParseInt(first.ResourceVersion, 10, 64)
	require.NoError(t, err)
	bursts, rules := bursts(), ""
	for name, burst := range bursts {
		e.Stage(name)
		rules += pacedRule(name, burst.pace.String())
		burst.stage(e, name)
	}
	h := e.Start(rules)
	for name := range bursts {
		e.Cloned(name, "used", "1")
	}
	e.Settled(h)
	began := e.Cluster.Mark()
	var late sync.Map // the names of bursts without a verdict
	t.Run("bursts", func(t *testing.T) {
		for name, burst := range bursts {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				t.Cleanup(func() {
					if t.Skipped() {
						late.Store(name, true)
					}
				})
				burst.play(&env{e.Of(t)}, name)
			})
		}
	})
	e.HasMetric(h, 0, "headwater_reload_waiting", nil)
	e.Settled(h)
	e.HasMetric(h, 0, "headwater_reload_waiting", nil)
	templates := e.templates(from)
	t.Run("rollouts", func(t *testing.T) {
		for name, burst := range bursts {
			if _, skipped := late.Load(name); skipped {
				continue
			}
			t.Run(name, func(t *testing.T) {
				burst.judge(&env{e.Of(t)}, templates[name+"-a"]-1, e.changes(began, name+"-a"), delays)
			})
		}
	})
}

// judge checks how many rollouts a burst made.
func (b burst) judge(e *env, rollouts int, changes []time.Time, delays *lab.Delays) {
	e.Helper()
	most := b.most + b.slack(changes)
	e.Logf("%d rollouts, of at least %d and at most %d", rollouts, b.least, most)
	if pace := cmp.Or(b.pace.debounce, b.pace.interval); (rollouts < b.least || rollouts > most) && pace > 0 && len(changes) > 0 {
		late := delays.Longest(changes[0], changes[len(changes)-1].Add(spec.ShortDebounce))
		if late > pace/2 { // the other half of a pause that slack does not count
			e.Inconclusive("%d rollouts, not %d to %d, but writes were seen as late as %s, at a pace of %s", rollouts, b.least, most, late, pace)
		}
	}
	require.GreaterOrEqual(e, rollouts, b.least)
	require.LessOrEqual(e, rollouts, most)
}

// changes are when the Secrets of a namespace were written, the clone among them.
func (e *env) changes(since cluster.Mark, namespace string) (times []time.Time) {
	e.Helper()
	writes, err := e.Cluster.Since(e.Context(), since, func(r cluster.Request) bool {
		return r.IsWrite() && r.Resource == "secrets" && r.Namespace == namespace && r.Code < 300
	})
	require.NoError(e, err)
	for _, write := range writes {
		times = append(times, write.Time)
	}
	return times
}

// slack is how many rollouts more a burst may make whose changes came later than they should
// have, since the machine was busy: one for each pause in which a debounce may have ended, and
// one for each time that the burst lasted longer by what the next restart waits for at most.
func (b burst) slack(changes []time.Time) (more int) {
	if len(changes) == 0 {
		return 0
	}
	for i, at := range changes[1:] {
		if b.pace.debounce > 0 && at.Sub(changes[i]) > b.pace.debounce/2 {
			more++
		}
	}
	late := changes[len(changes)-1].Sub(changes[0]) - time.Duration(len(b.edits))*b.every
	const enough = time.Second / 2
	return more + int((max(late-enough, 0)+b.wait()-1)/b.wait())
}

// wait is how long a restart waits at most while changes go on.
func (b burst) wait() time.Duration { return cmp.Or(b.pace.interval, spec.ShortDebounce) }

// play makes the edits, and waits until the clone is as the source.
func (b burst) play(e *env, prefix string) {
	ticker := time.NewTicker(max(b.every, time.Millisecond))
	defer ticker.Stop()
	for _, edit := range b.edits {
		<-ticker.C
		edit(e, prefix)
	}
	e.Cloned(prefix, "used", string(e.Get(prefix+"-src", "shared").Data["used"]))
	e.Cloned(prefix, "unused", string(e.Get(prefix+"-src", "shared").Data["unused"]))
}
