package explain

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// accounts are the image pull secrets of ServiceAccounts. The API server adds them to
// pods that name none, so no pod template shows them; see
// https://kubernetes.io/docs/tasks/configure-pod-container/configure-service-account/#add-imagepullsecrets-to-a-service-account.
type accounts map[account][]corev1.LocalObjectReference

type account struct{ namespace, name string }

func readAccounts(ctx context.Context, clients *kube.Clients) (accounts, error) {
	if !clients.Scope.Reads("serviceaccounts") {
		return accounts{}, nil
	}
	list, err := clients.Typed.CoreV1().ServiceAccounts(clients.Scope.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list ServiceAccounts: %w", err)
	}
	all := accounts{}
	for i := range list.Items {
		if pulls := list.Items[i].ImagePullSecrets; len(pulls) > 0 {
			all[account{list.Items[i].Namespace, list.Items[i].Name}] = pulls
		}
	}
	return all, nil
}

// visible returns the references to show, including those through the ServiceAccount.
func (a accounts) visible(namespace string, spec *corev1.PodSpec) []refs.Reference {
	found := refs.ReferenceList(workload.Visible(spec))
	if len(spec.ImagePullSecrets) > 0 {
		return found
	}
	name := cmp.Or(spec.ServiceAccountName, spec.DeprecatedServiceAccount, "default")
	for _, pull := range a[account{namespace, name}] {
		reference := refs.PullSecret(pull)
		reference.Through = string(serviceAccount) + "/" + name
		found.Add(reference)
	}
	return found.Merged()
}

const serviceAccount object.Kind = "ServiceAccount"
