package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/test/process"
)

const (
	readyTimeout   = 5 * time.Minute
	requestTimeout = 5 * time.Second
	pollInterval   = 50 * time.Millisecond
)

func (c *Cluster) start(ctx context.Context) error {
	if err := c.prepare(); err != nil {
		return err
	}
	steps := []func(context.Context) error{c.startEtcd, c.StartAPIServer, c.startControllers}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// prepare starts from an empty folder, whatever an earlier attempt left there.
func (c *Cluster) prepare() error {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return fmt.Errorf("read the cluster's folder: %w", err)
	}
	for _, entry := range entries {
		if err := os.RemoveAll(c.path(entry.Name())); err != nil {
			return fmt.Errorf("clear the cluster's folder: %w", err)
		}
	}
	if c.ports, err = c.options.findPorts(); err != nil {
		return err
	}
	if c.creds, err = writeCredentials(c.dir); err != nil {
		return err
	}
	if err := os.WriteFile(c.path(auditPolicyFile), []byte(auditPolicy), 0o600); err != nil {
		return fmt.Errorf("write the audit policy: %w", err)
	}
	return c.writeKubeconfigs()
}

func (c *Cluster) startEtcd(ctx context.Context) error {
	if err := c.spawn(Etcd); err != nil {
		return err
	}
	return c.await(ctx, Etcd, c.etcdReady)
}

// startControllers runs what needs a ready API server: the controller manager
// gives up when it has to wait for one.
func (c *Cluster) startControllers(ctx context.Context) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	// The authorizer hears a moment later of the roles that the API server made. Without them,
	// the controller manager ends.
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               componentUser(ControllerManager),
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: metav1.NamespaceSystem, Resource: "serviceaccounts", Verb: "get"},
	}}
	err = c.await(ctx, APIServer, func(ctx context.Context) error {
		answer, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err == nil && !answer.Status.Allowed {
			err = errors.New("the controller manager may do nothing yet")
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, component := range []string{ControllerManager, Scheduler} {
		if err := c.spawn(component); err != nil {
			return err
		}
	}
	return c.await(ctx, ControllerManager, func(ctx context.Context) error {
		for _, name := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic} {
			if _, err := client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{}); err != nil {
				return err
			}
		}
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

func (c *Cluster) client() (*kubernetes.Clientset, error) {
	config := c.Config()
	config.Timeout = requestTimeout
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return client, nil
}

// etcdReady also makes sure that it is our etcd that answers: if another one took
// the port, the API server must not write to it. The API server itself proves
// who it is by its certificate.
func (c *Cluster) etcdReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	url := "http://" + address(c.ports.etcd) + "/v3/cluster/member/list"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewBufferString("{}"))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	var list struct{ Members []struct{ Name string } }
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		return fmt.Errorf("%s, and no list of members: %w", response.Status, err)
	}
	if len(list.Members) != 1 || list.Members[0].Name != c.name {
		return fmt.Errorf("another etcd answers on port %d", c.ports.etcd)
	}
	return nil
}

// await fails at once when any component ends.
func (c *Cluster) await(ctx context.Context, component string, ready func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	last := errors.New("it was not asked")
	err := wait.PollUntilContextCancel(bounded, pollInterval, true, func(ctx context.Context) (bool, error) {
		if err := c.failure(); err != nil {
			return false, err
		}
		err := ready(ctx)
		if ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	if err == nil || bounded.Err() == nil {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("wait for %s: %w", component, ctx.Err())
	}
	content, _ := os.ReadFile(logPath(c.dir, component))
	return fmt.Errorf("%s is not ready after %s: %w; its log is %s, which says last:\n%s",
		component, readyTimeout, last, logPath(c.dir, component), process.LastLines(content))
}
