package sync

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/internal/synctest"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// unreadView is the View of a cluster with a namespace, a source of rule, and an approval of an
// emptied source, in which one resource cannot be listed before allow is called.
func unreadView(t *testing.T, resource string, rule *spec.Rule) (v *View, clients *kube.Clients, allow func()) {
	source := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "blogsecret", UID: "source-1", ResourceVersion: "5"},
		Data:       map[string][]byte{"password": []byte("c4n4ry")},
	}
	approvals := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "headwater-system", Name: survey.ApprovalsName},
		Data:       map[string]string{"blog": `{"at":"2026-05-01T12:00:00Z","sources":{"Secret/platform/blogsecret":"when it was empty"}}`},
	}
	namespace := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: "team-0"}}
	var allowed atomic.Bool
	refuses := func(of string) bool { return of == resource && !allowed.Load() }
	v, clients = viewBegun(t, refuses, []runtime.Object{source, approvals}, []runtime.Object{namespace}, *rule)
	return v, clients, func() { allowed.Store(true) }
}

func (v *View) awaitFull(t *testing.T, kind object.Kind) {
	t.Helper()
	require.Eventually(t, func() bool { return v.controller.Caches.IsFull(kind) }, time.Minute, time.Millisecond)
}

func TestTheBoardKnowsAKindOnceItHasLookedAtAllOfIt(t *testing.T) {
	rule := synctest.Rule(t, nil)
	v, _, allow := unreadView(t, "secrets", rule)
	v.awaitFull(t, object.ConfigMap)
	v.Refresh(0, 0)
	require.True(t, v.Unread(rule.Base))
	require.True(t, v.AnyUnread())
	require.Empty(t, read(v))

	allow()
	require.Eventually(t, func() bool {
		_, isRead := v.controller.Caches.Sources.Of(rule.Base)
		return isRead && v.controller.Caches.IsFull(object.Secret)
	}, time.Minute, time.Millisecond)
	require.True(t, v.Unread(rule.Base), "nobody has looked since")
	v.Refresh(time.Hour, time.Hour)
	require.False(t, v.Unread(rule.Base))
	require.False(t, v.AnyUnread())
	require.Len(t, read(v), 1)

	require.NoError(t, v.controller.Caches.Sources.Track(t.Context(), nil))
	v.controller.board.AllChanged()
	require.True(t, v.Unread(rule.Base), "its sources are not read")
	require.Len(t, read(v), 1, "it stands as it stood")
}

func TestNoRemovalIsRuledOnWithoutTheApprovals(t *testing.T) {
	rule := synctest.Rule(t, nil)
	v, _, allow := unreadView(t, "configmaps", rule)
	v.awaitFull(t, object.Secret)
	known := func() bool {
		_, known := v.controller.MayRemove("blog", plan.RemovalLog{}, time.Now())
		return known
	}
	require.False(t, known())
	allow()
	require.Eventually(t, known, time.Minute, time.Millisecond)
}

func TestNoApprovalThatIsNotReadOutlivesTheValuesThatItLetGo(t *testing.T) {
	rule := synctest.Rule(t, nil)
	v, clients, _ := unreadView(t, "configmaps", rule)
	v.awaitFull(t, object.Secret)
	require.Eventually(t, func() bool {
		source, _ := v.controller.Caches.Sources.Get(rule.Source.Ref())
		return source != nil
	}, time.Minute, time.Millisecond)
	require.Nil(t, v.controller.Approvals.All())

	end := func() { require.NoError(t, v.controller.EndApproval(t.Context(), rule, rule.Source.Ref())) }
	end()
	configMaps := clients.Typed.CoreV1().ConfigMaps("headwater-system")
	stored, err := configMaps.Get(t.Context(), survey.ApprovalsName, metav1.GetOptions{})
	require.NoError(t, err)
	require.Empty(t, stored.Data)
	require.NoError(t, configMaps.Delete(t.Context(), survey.ApprovalsName, metav1.DeleteOptions{}))
	end()
}
