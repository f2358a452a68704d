package register

import (
	"testing"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/headwater-k8s/headwater/internal/configmap"
)

func TestWhatHappenedWhileNobodyLedIsTold(t *testing.T) {
	client := fake.NewClientset()
	taking := func() *Versions { // the lead
		next := &Versions{Store: configmap.Store{Client: client, Namespace: "headwater", Name: RegisteredConfigMap}}
		require.NoError(t, next.load(t.Context()))
		return next
	}
	policy := func(change ...func(*metav1.ObjectMeta)) *admissionregistrationv1.ValidatingAdmissionPolicy {
		meta := metav1.ObjectMeta{Name: "headwater-sources", UID: "a", Generation: 1, OwnerReferences: []metav1.OwnerReference{{UID: "role"}}}
		for _, f := range change {
			f(&meta)
		}
		return &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: meta}
	}
	first := taking()
	require.False(t, first.deleted(kindPolicy, policy()), "it was never there")
	require.False(t, first.changed(kindPolicy, policy()), "nobody has noted it: an upgrade")
	first.set(kindPolicy, policy())
	require.NoError(t, first.save(t.Context()))

	second := taking()
	require.True(t, second.deleted(kindPolicy, policy()))
	require.False(t, second.deleted(kindBinding, policy()), "another kind")
	require.False(t, second.deleted(kindPolicy, policy(func(o *metav1.ObjectMeta) { o.OwnerReferences[0].UID = "next" })), "an uninstallation")
	require.False(t, second.changed(kindPolicy, policy(func(o *metav1.ObjectMeta) { o.Labels = map[string]string{"team": "a"} })))
	require.True(t, second.changed(kindPolicy, policy(func(o *metav1.ObjectMeta) { o.Generation = 2 })))
	require.True(t, second.changed(kindPolicy, policy(func(o *metav1.ObjectMeta) { o.UID = "b" })))
	second.remove(kindPolicy, "headwater-sources")
	require.NoError(t, second.save(t.Context()))

	third := taking()
	require.False(t, third.deleted(kindPolicy, policy()), "Headwater itself has removed it")
}
