package service

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/headwater-k8s/headwater/test/lab"
)

// What the chart renders for podPullSecrets, and nothing that Headwater does.
func TestPodsGetTheClonesAsPullSecretsBesideTheirOwn(t *testing.T) {
	e := newEnv(t)
	e.Namespace("pull-in", "pull=yes")
	e.Namespace("pull-out")
	_, err := e.Admin.CoreV1().ServiceAccounts("pull-in").Create(t.Context(), &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Name: "robot"}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "robots"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)

	everything, err := os.ReadFile(filepath.Join(lab.Root(t), "test/deploy/testdata/everything.golden.yaml"))
	require.NoError(t, err)
	documents := slices.DeleteFunc(strings.Split(string(everything), "\n---\n"), func(document string) bool {
		return !strings.Contains(document, "\nkind: MutatingAdmissionPolicy")
	})
	require.Len(t, documents, 2)
	file := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(documents, "\n---\n")), 0o600))
	require.NoError(t, lab.Apply(t.Context(), e.Cluster.Config(), file))
	t.Cleanup(func() { // of the test, whose context is done
		for _, resource := range []string{"mutatingadmissionpolicybindings", "mutatingadmissionpolicies"} {
			policies := e.Dynamic().Resource(schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource})
			require.NoError(t, policies.Delete(context.WithoutCancel(t.Context()), "headwater-pull-secrets", metav1.DeleteOptions{}))
		}
	})

	for sentence, test := range map[string]struct {
		namespace, account string
		own, want          []string
	}{
		"a pod without":                      {"pull-in", "default", nil, []string{"mirror", "registry"}},
		"one with its own":                   {"pull-in", "default", []string{"mine"}, []string{"mine", "mirror", "registry"}},
		"one that names a clone already":     {"pull-in", "default", []string{"registry"}, []string{"mirror", "registry"}},
		"one whose ServiceAccount has one":   {"pull-in", "robot", nil, []string{"mirror", "registry", "robots"}},
		"one in a namespace without a label": {"pull-out", "default", nil, nil},
	} {
		e.Eventually(func(ctx context.Context) error {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{GenerateName: "pod-"},
				Spec:       corev1.PodSpec{ServiceAccountName: test.account, Containers: []corev1.Container{{Name: "c", Image: "registry.example.com/app"}}},
			}
			for _, name := range test.own {
				pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
			}
			made, err := e.Admin.CoreV1().Pods(test.namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil {
				return err
			}
			var names []string
			for _, reference := range made.Spec.ImagePullSecrets {
				names = append(names, reference.Name)
			}
			if slices.Sort(names); !slices.Equal(names, test.want) {
				return fmt.Errorf("%s has imagePullSecrets %v, want %v", sentence, names, test.want)
			}
			return nil
		})
	}
}
