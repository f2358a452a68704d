package workload_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/workload"
)

func TestAPodNamesTheControllerThatPeopleHearOf(t *testing.T) {
	controlledBy := func(apiVersion, kind, name string, labels map[string]string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: "p", Labels: labels,
				OwnerReferences: []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: "u", Controller: new(true)}},
			},
			Spec: harnessEnv(),
		}
	}
	for sentence, test := range map[string]struct {
		pod  *corev1.Pod
		want kinds.Key
	}{
		"a bare ReplicaSet":             {controlledBy("apps/v1", "ReplicaSet", "rs", nil), kinds.Key{Kind: "ReplicaSet.apps", Namespace: "ns", Name: "rs"}},
		"a ReplicationController":       {controlledBy("v1", "ReplicationController", "rc", nil), kinds.Key{Kind: "ReplicationController", Namespace: "ns", Name: "rc"}},
		"a Job":                         {controlledBy("batch/v1", "Job", "job", nil), kinds.Key{Kind: "Job.batch", Namespace: "ns", Name: "job"}},
		"a Job named as if by schedule": {controlledBy("batch/v1", "Job", "job-7", nil), kinds.Key{Kind: "Job.batch", Namespace: "ns", Name: "job-7"}},
		"a kind that nobody knows":      {controlledBy("example.com/v1", "Shop", "shop", nil), kinds.Key{Kind: "Shop.example.com", Namespace: "ns", Name: "shop"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			kept, err := workload.KeepPod(test.pod, workload.ActedOn)
			require.NoError(t, err)
			require.Equal(t, test.want, workload.KeyAbout(kept.Controller.Value()))
			require.NotEmpty(t, kept.Controller.Value().UID)
		})
	}
	hashed := controlledBy("apps/v1", "ReplicaSet", "web-7f", map[string]string{"pod-template-hash": "7f"})
	for _, pod := range []*corev1.Pod{hashed, controlledBy("apps/v1", "StatefulSet", "set", nil), {Spec: harnessEnv()}} {
		kept, err := workload.KeepPod(pod, workload.ActedOn)
		require.NoError(t, err)
		require.Equal(t, workload.PodController{}, kept.Controller)
	}
}
