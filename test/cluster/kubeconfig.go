package cluster

import (
	"fmt"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

const (
	adminKubeconfig = "kubeconfig"
	contextName     = "headwater"
)

func kubeconfigOf(component string) string {
	return component + ".kubeconfig"
}

// Kubeconfig is the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string {
	return c.path(adminKubeconfig)
}

// KubeconfigFor writes a kubeconfig by which the administrator acts as user, for
// programs that are to run with no more than their own permissions. Groups may
// be left out for service accounts, whose groups the API server knows.
func (c *Cluster) KubeconfigFor(path, user string, groups ...string) error {
	return c.writeKubeconfig(path, c.url(), c.actingAs(user, groups...))
}

func (c *Cluster) actingAs(user string, groups ...string) *api.AuthInfo {
	return &api.AuthInfo{
		Token:             c.creds.tokens[adminUser],
		Impersonate:       user,
		ImpersonateUID:    uidOf(user),
		ImpersonateGroups: groups,
	}
}

// uidOf is a UID for user if it is a service account, as if a token of it were used: who
// impersonates only the name of one has none.
func uidOf(user string) string {
	if strings.HasPrefix(user, "system:serviceaccount:") {
		return "by-token"
	}
	return ""
}

// Config is the administrator's, a new one for each call. It has no rate limit
// on the client's side.
func (c *Cluster) Config() *rest.Config {
	return &rest.Config{
		Host:            c.url(),
		BearerToken:     c.creds.tokens[adminUser],
		TLSClientConfig: rest.TLSClientConfig{CAData: c.creds.ca},
		QPS:             -1,
	}
}

// ConfigFor is Config, acting as user; see KubeconfigFor.
func (c *Cluster) ConfigFor(user string, groups ...string) *rest.Config {
	config := c.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: user, UID: uidOf(user), Groups: groups}
	return config
}

func (c *Cluster) url() string {
	return "https://" + address(c.ports.apiServer)
}

func (c *Cluster) writeKubeconfigs() error {
	paths := map[string]string{
		adminUser:                        c.Kubeconfig(),
		componentUser(ControllerManager): c.path(kubeconfigOf(ControllerManager)),
		componentUser(Scheduler):         c.path(kubeconfigOf(Scheduler)),
	}
	for user, path := range paths {
		if err := c.writeKubeconfig(path, c.url(), &api.AuthInfo{Token: c.creds.tokens[user]}); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) writeKubeconfig(path, server string, auth *api.AuthInfo) error {
	config := api.NewConfig()
	config.Clusters[contextName] = &api.Cluster{Server: server, CertificateAuthorityData: c.creds.ca}
	config.AuthInfos[contextName] = auth
	config.Contexts[contextName] = &api.Context{Cluster: contextName, AuthInfo: contextName}
	config.CurrentContext = contextName
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("write a kubeconfig: %w", err)
	}
	return nil
}
