package sync

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/queue"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync/board"
	"github.com/headwater-k8s/headwater/sync/internal/synctest"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/progress"
	"github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// What a look at one place costs must not grow with the number of rules.
func BenchmarkAPlaceAmongRules(b *testing.B) {
	for _, many := range []int{2, 200} {
		b.Run(fmt.Sprint(many), func(b *testing.B) {
			set := []spec.Rule{synctest.RuleNamed(b, "blog", "", rules.Source{Kind: object.Secret, Name: "blogsecret"})}
			for len(set) < many {
				name := fmt.Sprint("other-", len(set))
				set = append(set, synctest.RuleNamed(b, name, "", rules.Source{Kind: object.Secret, Name: name}))
			}
			reading := readingOf(viewOf(b, 5, set...))
			for b.Loop() {
				_ = reading.Report(object.Ref{Kind: object.Secret, Namespace: "team-4", Name: "blogsecret"}, func(survey.CloneStatus) {})
			}
		})
	}
}

// readingOf is a new Reading with what the controller knows.
func readingOf(v *View) *survey.Reading {
	return v.controller.NewReading(v.controller.maxFraction(), v.controller.lookUp)
}

// read returns how all clones stand.
func read(v *View) (all []survey.CloneStatus) {
	v.Refresh(0, 0)
	v.Each("", func(*board.Standing) bool { return true }, func(f survey.CloneStatus) { all = append(all, f) })
	return all
}

// viewOf is the View of a cluster with these namespaces, in which the first has
// a clone, the second somebody else's object, the third a clone of a rule that
// is gone, and the others none.
func viewOf(tb testing.TB, namespaces int, set ...spec.Rule) *View {
	tb.Helper()
	var typed, metadata []runtime.Object
	for i := range namespaces {
		metadata = append(metadata, &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("team-%d", i)},
		})
	}
	source := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "blogsecret", UID: "source-1", ResourceVersion: "5"},
		Data:       map[string][]byte{"password": []byte("c4n4ry")},
	}
	clone := func(namespace, name, rule string) *corev1.Secret {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: "3"}}
		mark.Stamp(&secret.ObjectMeta, mark.Clone{Rule: rule, Source: object.Ref{Kind: object.Secret, Namespace: "platform", Name: "blogsecret"}, SourceUID: "source-1"})
		return secret
	}
	typed = append(typed, source, clone("team-0", "blogsecret", "blog"), clone("team-2", "former", "former"))
	metadata = append(metadata, &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-1", Name: "blogsecret", ResourceVersion: "4"},
	})
	v, _ := viewOn(tb, typed, metadata, set...)
	return v
}

// viewOn is the View of a cluster with these objects.
func viewOn(tb testing.TB, typed, metadata []runtime.Object, set ...spec.Rule) (*View, *kube.Clients) {
	tb.Helper()
	v, clients := viewBegun(tb, func(string) bool { return false }, typed, metadata, set...)
	ctx, stop := context.WithTimeout(tb.Context(), time.Minute)
	defer stop()
	require.True(tb, v.controller.Caches.AwaitRead(ctx, &v.controller.subscriptions))
	return v, clients
}

// viewBegun is viewOn before everything is read: lists of the resources that refuses names fail.
func viewBegun(tb testing.TB, refuses func(resource string) bool, typed, metadata []runtime.Object, set ...spec.Rule) (*View, *kube.Clients) {
	tb.Helper()
	scheme := metadatafake.NewTestScheme()
	require.NoError(tb, metav1.AddMetaToScheme(scheme))
	client, metadataClient := fake.NewClientset(typed...), metadatafake.NewSimpleMetadataClient(scheme, metadata...)
	client.PrependWatchReactor("*", watchSelected(client.Tracker()))
	metadataClient.PrependWatchReactor("*", watchSelected(metadataClient.Tracker()))
	refuse := func(action clienttesting.Action) (bool, runtime.Object, error) {
		return refuses(action.GetResource().Resource), nil, errors.New("no key decrypts it")
	}
	client.PrependReactor("list", "*", refuse)
	metadataClient.PrependReactor("list", "*", refuse)
	clients := &kube.Clients{Typed: client, Metadata: metadataClient}
	key, err := digestkey.NewEphemeral()
	require.NoError(tb, err)
	caches, err := informers.NewCaches(clients, key, zap.NewNop())
	require.NoError(tb, err)
	recorded, err := revisions.NewView(clients, caches, key, "headwater-system", zap.NewNop())
	require.NoError(tb, err)
	observer, err := survey.NewReader(rules.NewLive(rules.NewSet(set...)), clients, caches, recorded, "headwater-system", zap.NewNop())
	require.NoError(tb, err)
	ctx, cancel := context.WithCancel(tb.Context())
	tb.Cleanup(func() { cancel(); caches.Wait() })
	require.NoError(tb, caches.Sources.Track(ctx, []informers.Place{{Kind: object.Secret, Namespace: "platform"}}))
	c := &controller{
		Reader: observer, maxFraction: func() float64 { return 0.3 }, now: time.Now,
		progress: progress.NewTracker(0), observer: noopObserver{}, log: zap.NewNop(),
	}
	require.NoError(tb, c.connect(queue.Options{Name: "sync", Log: c.log, Registry: prometheus.NewRegistry()}))
	caches.Start(ctx)
	return newView(c, nil), clients
}

// watchSelected makes watches of a fake client apply selectors, as its lists do.
func watchSelected(tracker clienttesting.ObjectTracker) clienttesting.WatchReactionFunc {
	return func(action clienttesting.Action) (bool, watch.Interface, error) {
		watching, _ := action.(clienttesting.WatchActionImpl)
		all, err := tracker.Watch(action.GetResource(), action.GetNamespace(), watching.ListOptions)
		if err != nil {
			return true, nil, err
		}
		selector := watching.WatchRestrictions
		return true, watch.Filter(all, func(event watch.Event) (watch.Event, bool) {
			object, isObject := event.Object.(metav1.Object)
			return event, !isObject ||
				(selector.Labels == nil || selector.Labels.Matches(labels.Set(object.GetLabels()))) &&
					(selector.Fields == nil || selector.Fields.Matches(fields.Set{metav1.ObjectNameField: object.GetName()}))
		}), nil
	}
}

// fail records that the write of rule blog's clone at target failed.
func fail(c *controller, target object.Ref, err error, at time.Time) {
	c.progress.Record(progress.Outcome{State: plan.State{Target: target}, Rule: "blog", Err: err}, at)
	c.board.Changed(target)
}

func twoRules(t *testing.T) []spec.Rule {
	t.Helper()
	second := *synctest.Rule(t, nil)
	second.Name = "second"
	return []spec.Rule{*synctest.Rule(t, nil), second}
}

func TestEveryCloneStandsInSomeWay(t *testing.T) {
	v := viewOf(t, 5, twoRules(t)...)
	fail(v.controller, object.Ref{Kind: object.Secret, Namespace: "team-3", Name: "blogsecret"}, errors.New("quota"), time.Unix(1000, 0))
	standings := map[string]survey.Status{}
	for _, f := range read(v) {
		standings[f.Rule+" "+f.Target.Namespace] = f.Status
		require.NotEmpty(t, f.Why())
	}
	require.Equal(t, map[string]survey.Status{
		"blog team-0": survey.Behind, "blog team-1": survey.Conflicting, "blog team-2": survey.Behind, "blog team-3": survey.Failed, "blog team-4": survey.Behind,
		"second team-0": survey.Conflicting, "second team-1": survey.Conflicting, "second team-2": survey.Conflicting, "second team-3": survey.Conflicting, "second team-4": survey.Conflicting,
		"former team-2": survey.Retained,
	}, standings)
	require.Equal(t, []string{"blog", "second", "former"}, v.Rules())
}

// Forged marks can name any number of rules.
func TestRulesThatOnlyClonesNameHaveOneLabel(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(viewOf(t, 3, *synctest.Rule(t, nil)).metrics)
	families, err := registry.Gather()
	require.NoError(t, err)
	named := map[string]bool{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "rule" {
					named[label.GetValue()] = true
				}
			}
		}
	}
	require.Equal(t, map[string]bool{"blog": true, survey.FormerRules: true}, named)
}

func TestAFailureSaysSinceWhenAndWhy(t *testing.T) {
	v := viewOf(t, 4, *synctest.Rule(t, nil))
	fail(v.controller, object.Ref{Kind: object.Secret, Namespace: "team-3", Name: "blogsecret"}, errors.New("exceeded quota"), time.Unix(1000, 0))
	for _, f := range read(v) {
		if f.Target.Namespace == "team-3" {
			require.Equal(t, time.Unix(1000, 0), f.Since)
			require.Contains(t, f.Why(), "exceeded quota; retrying")
		}
	}
}
