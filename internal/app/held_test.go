package app

import (
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/loop"
	"github.com/headwater-k8s/headwater/sync/survey"
)

const (
	fullText  = cloning
	emptyText = "apiVersion: headwater.dev/v1alpha1\nkind: Config\nrules: []\n"
)

// recorded is a ConfigMap of Headwater's own namespace.
func recorded(name, key, text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: testSettings().Namespace, Name: name}, Data: map[string]string{key: text}}
}

func approvedAt(t *testing.T, text string, at time.Time) *corev1.ConfigMap {
	t.Helper()
	approval, err := json.Marshal(survey.Approval{At: at, Configuration: config.RevisionOf([]byte(text))})
	require.NoError(t, err)
	return recorded(survey.ApprovalsName, survey.AboutConfiguration, string(approval))
}

func lastValidSecret(text string) *corev1.Secret {
	meta := metav1.ObjectMeta{Namespace: testSettings().Namespace, Name: config.LastValidName}
	return &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{config.ConfigMapKey: []byte(text)}}
}

// ownedBy has the ClusterRole with that UID own secret.
func ownedBy(uid types.UID, secret *corev1.Secret) *corev1.Secret {
	secret.OwnerReferences = []metav1.OwnerReference{{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: kube.OwnerName, UID: uid}}
	return secret
}

func TestAStartComparesTheFileWithWhatWasInForce(t *testing.T) {
	empty, err := config.Parse("headwater.yaml", []byte(emptyText))
	require.NoError(t, err)
	owner := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: kube.OwnerName, UID: "here"}}
	for sentence, test := range map[string]struct {
		objects            []runtime.Object
		fails              string // the resource that cannot be read
		held, known, doubt bool
	}{
		"nothing is recorded":                  {},
		"the same was in force":                {objects: []runtime.Object{lastValidSecret(emptyText)}, known: true},
		"rules were in force":                  {objects: []runtime.Object{lastValidSecret(fullText)}, known: true, held: true},
		"an earlier version recorded rules":    {objects: []runtime.Object{recorded(config.LastValidName, config.ConfigMapKey, fullText)}, known: true, held: true},
		"what is recorded cannot be read":      {objects: []runtime.Object{lastValidSecret("novelty: {}")}},
		"this installation recorded rules":     {objects: []runtime.Object{owner, ownedBy("here", lastValidSecret(fullText))}, known: true, held: true},
		"another installation recorded rules":  {objects: []runtime.Object{owner, ownedBy("elsewhere", lastValidSecret(fullText))}},
		"somebody approved the file":           {objects: []runtime.Object{lastValidSecret(fullText), approvedAt(t, emptyText, time.Now())}, known: true},
		"somebody approved it long ago":        {objects: []runtime.Object{lastValidSecret(fullText), approvedAt(t, emptyText, time.Now().Add(-2*time.Hour))}, known: true, held: true},
		"an approval of a day to come":         {objects: []runtime.Object{lastValidSecret(fullText), approvedAt(t, emptyText, time.Now().AddDate(1, 0, 0))}, known: true, held: true},
		"somebody approved another file":       {objects: []runtime.Object{lastValidSecret(fullText), approvedAt(t, fullText, time.Now())}, known: true, held: true},
		"the approval is no JSON":              {objects: []runtime.Object{lastValidSecret(fullText), recorded(survey.ApprovalsName, survey.AboutConfiguration, "yes")}, known: true, held: true},
		"the API server does not answer to it": {objects: []runtime.Object{lastValidSecret(fullText)}, fails: "secrets", doubt: true},
		"whether it is approved is not known":  {objects: []runtime.Object{lastValidSecret(fullText)}, fails: "configmaps", known: true, held: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			client := fake.NewClientset(test.objects...)
			if test.fails != "" {
				client.PrependReactor("get", test.fails, func(k8stesting.Action) (bool, runtime.Object, error) {
					return true, nil, errors.New("no answer")
				})
			}
			begins := compare(t.Context(), client, testSettings().Namespace, empty)
			require.Equal(t, test.doubt, begins.unread != nil, begins.unread)
			require.Equal(t, test.known, begins.before != nil)
			require.Equal(t, test.held, begins.held != nil, begins.held)
			require.Equal(t, empty.Revision, begins.file)
			if test.held {
				require.Same(t, begins.before, begins.Config)
			} else {
				require.Same(t, empty, begins.Config)
			}
		})
	}
}

// A process that began without knowing what was in force begins again with it.
func TestAHeldFileThatWasNotComparedEndsTheProcess(t *testing.T) {
	empty, err := config.Parse("headwater.yaml", []byte(emptyText))
	require.NoError(t, err)
	r := &reloader{current: empty, in: reloaderParams{
		Settings: testSettings(), Clients: &kube.Clients{Typed: fake.NewClientset(lastValidSecret(fullText))},
		Started: &Started{Config: empty, unread: errors.New("no answer")},
	}}
	var fatal kube.FatalError
	require.ErrorAs(t, r.checkStart(t.Context()), &fatal)
	require.ErrorContains(t, fatal, "the configuration is held: it has no rule")

	r.in.Clients.Typed = fake.NewClientset(lastValidSecret(emptyText))
	require.NoError(t, r.checkStart(t.Context()))
	require.NoError(t, r.in.Started.unread)
}

// The next start would compare its file with what is stored, which is not what was in force.
func TestAConfigurationThatCannotBeStoredIsReported(t *testing.T) {
	immutable := lastValidSecret(emptyText)
	immutable.Immutable = new(true)
	for sentence, test := range map[string]struct {
		stored  []runtime.Object
		refused bool
	}{
		"nothing is stored":           {},
		"another one is stored":       {stored: []runtime.Object{lastValidSecret(emptyText)}},
		"somebody made it immutable":  {stored: []runtime.Object{immutable}},
		"the API server denies it":    {stored: []runtime.Object{lastValidSecret(emptyText)}, refused: true},
		"it denies also the creation": {refused: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				full, err := config.Parse("headwater.yaml", []byte(fullText))
				require.NoError(t, err)
				client, denies := fake.NewClientset(test.stored...), test.refused
				client.PrependReactor("*", "secrets", func(action k8stesting.Action) (bool, runtime.Object, error) {
					stored, err := client.Tracker().Get(action.GetResource(), action.GetNamespace(), config.LastValidName)
					secret, isStored := stored.(*corev1.Secret)
					if denies && action.GetVerb() != "get" || action.GetVerb() == "update" && err == nil && isStored && secret.Immutable != nil {
						return true, nil, errors.New("denied")
					}
					return false, nil, nil
				})
				kept, _ := newLastValid(&kube.Clients{Typed: client, Owner: kube.NewOwner(client)}, testSettings(), full, zap.NewNop())
				_, _ = kept.keep(t.Context())
				require.Empty(t, kept.refusal(), "it may be for a moment")
				<-time.After(notStoredAfter)
				if test.refused {
					_, _ = kept.keep(t.Context())
					require.Equal(t, "NotStored", kept.refusal().Reason)
					require.Contains(t, kept.refusal().Message, "headwater-last-valid: denied")
					denies = false
					_, _ = kept.keep(t.Context())
				}
				require.Empty(t, kept.refusal())
				stored, err := client.CoreV1().Secrets(testSettings().Namespace).Get(t.Context(), config.LastValidName, metav1.GetOptions{})
				require.NoError(t, err)
				require.Equal(t, fullText, string(stored.Data[config.ConfigMapKey]))
			})
		})
	}
}

func TestAnApprovalThatCannotBeReadIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full, err := config.Parse("headwater.yaml", []byte(fullText))
		require.NoError(t, err)
		empty, err := config.Parse("headwater.yaml", []byte(emptyText))
		require.NoError(t, err)
		client, failed := fake.NewClientset(approvedAt(t, emptyText, time.Now())), false
		client.PrependReactor("get", "configmaps", func(k8stesting.Action) (bool, runtime.Object, error) {
			first := !failed
			failed = true
			return first, nil, errors.New("no answer")
		})
		r := &reloader{current: full, again: loop.NewWake(), in: reloaderParams{
			Settings: testSettings(), Clients: &kube.Clients{Typed: client}, Log: zap.NewNop(), Events: events.NewRecorder(client, prometheus.NewRegistry(), zap.NewNop()),
		}}
		require.ErrorContains(t, r.hold(t.Context(), empty), "is held")
		<-r.again
		require.NoError(t, r.hold(t.Context(), empty))
	})
}

// Not only a file that changes while Headwater runs protects less.
func TestAStartSaysWhatTheFileProtectsLess(t *testing.T) {
	strong, err := config.Parse("headwater.yaml", []byte(protecting("Enforce")))
	require.NoError(t, err)
	weak, err := config.Parse("headwater.yaml", []byte(protecting("Audit")))
	require.NoError(t, err)
	for sentence, test := range map[string]struct {
		before *config.Config
		unread error
		want   []string
	}{
		"it protected more":              {before: strong, want: []string{"ProtectionWeakened"}},
		"it protected more, read later":  {unread: errors.New("no answer"), want: []string{"ProtectionWeakened"}},
		"it protected the same":          {before: weak},
		"nobody knows what it protected": {want: []string{"RulesNotCompared"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			client := fake.NewClientset(lastValidSecret(protecting("Enforce")))
			r := &reloader{current: weak, in: reloaderParams{
				Settings: testSettings(), Clients: &kube.Clients{Typed: client}, Log: zap.NewNop(),
				Events: events.NewRecorder(client, prometheus.NewRegistry(), zap.NewNop()), Started: &Started{Config: weak, before: test.before, unread: test.unread},
			}}
			var told []string
			r.in.Events.Subscribe(func(event events.Event) { told = append(told, event.Reason) })
			require.NoError(t, r.checkStart(t.Context()))
			require.Equal(t, test.want, told)
		})
	}
}

func protecting(mode string) string {
	return "apiVersion: headwater.dev/v1alpha1\nkind: Config\nrules:\n- {name: a, source: {kind: Secret, namespace: p, name: a}, protect: {mode: " + mode + "}}\n"
}
