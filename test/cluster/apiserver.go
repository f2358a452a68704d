package cluster

import (
	"context"
	"errors"

	"github.com/headwater-k8s/headwater/test/process"
)

// StartAPIServer brings back the API server that KillAPIServer ended, on its old
// port, and returns once it is ready.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	if c.apiServer() != nil {
		return errors.New("the API server runs already: end it with KillAPIServer first")
	}
	if err := c.spawn(APIServer); err != nil {
		return err
	}
	client, err := c.client()
	if err != nil {
		return err
	}
	return c.await(ctx, APIServer, func(ctx context.Context) error {
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// KillAPIServer ends the API server without warning, as a crash does. All else,
// the data with it, stays.
func (c *Cluster) KillAPIServer() error {
	server := c.apiServer()
	if server == nil {
		return errors.New("the API server does not run: bring it back with StartAPIServer first")
	}
	server.Kill()
	return nil
}

// RestartAPIServer ends the API server as an upgrade does, and returns once the
// new one is ready.
func (c *Cluster) RestartAPIServer(ctx context.Context) error {
	if server := c.apiServer(); server != nil {
		server.Stop(stopGrace)
	}
	return c.StartAPIServer(ctx)
}

// RestartEtcd ends etcd as a crash does, and returns once it answers again, with
// the data that it had. The API server runs on.
func (c *Cluster) RestartEtcd(ctx context.Context) error {
	if etcd := c.running(Etcd); etcd != nil {
		etcd.Kill()
	}
	return c.startEtcd(ctx)
}

func (c *Cluster) apiServer() *process.Process { return c.running(APIServer) }

// running is nil unless the component runs.
func (c *Cluster) running(component string) *process.Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	process := c.processes[component]
	if process == nil {
		return nil
	}
	select {
	case <-process.Done():
		return nil
	default:
		return process
	}
}
