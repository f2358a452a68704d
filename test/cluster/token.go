package cluster

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Token creates a token of a service account, which must exist.
func (c *Cluster) Token(ctx context.Context, namespace, name string, lifetime time.Duration) (string, error) {
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return "", fmt.Errorf("create a token: %w", err)
	}
	seconds := int64(lifetime.Seconds())
	request, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("create a token of %s/%s: %w", namespace, name, err)
	}
	return request.Status.Token, nil
}

// KubeconfigOf writes a kubeconfig with a token, and nothing of the administrator's.
func (c *Cluster) KubeconfigOf(path, token string) error {
	return c.writeKubeconfig(path, c.url(), &api.AuthInfo{Token: token})
}
