package cluster

import (
	"context"
	"errors"
	"os"

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
	return c.withoutEtcd(ctx, func(string, string) error { return nil })
}

// SaveEtcd keeps a copy of etcd's data as it is now, in place of an earlier one.
func (c *Cluster) SaveEtcd(ctx context.Context) error {
	return c.withoutEtcd(ctx, func(data, saved string) error {
		return errors.Join(os.RemoveAll(saved), os.CopyFS(saved, os.DirFS(data)))
	})
}

// RestoreEtcd has etcd and the API server begin again with the data that SaveEtcd kept.
func (c *Cluster) RestoreEtcd(ctx context.Context) error {
	if err := c.KillAPIServer(); err != nil {
		return err
	}
	err := c.withoutEtcd(ctx, func(data, saved string) error {
		return errors.Join(os.RemoveAll(data), os.Rename(saved, data))
	})
	return errors.Join(err, c.StartAPIServer(ctx))
}

// withoutEtcd calls change with the folders of etcd's data and of its copy while etcd
// does not run.
func (c *Cluster) withoutEtcd(ctx context.Context, change func(data, saved string) error) error {
	if etcd := c.running(Etcd); etcd != nil {
		etcd.Kill()
	}
	return errors.Join(change(c.path("etcd"), c.path("etcd-saved")), c.startEtcd(ctx))
}

// PauseControllers has no controller do anything until resume.
func (c *Cluster) PauseControllers() (resume func() error, err error) {
	controllers := c.running(ControllerManager)
	return controllers.Resume, controllers.Pause()
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
