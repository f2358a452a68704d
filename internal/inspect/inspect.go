// Package inspect implements the commands that read a cluster without the running
// service. It decides with the same code as the service.
package inspect

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
	syncspec "github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// readTimeout bounds how long the initial read of the cluster may take.
const readTimeout = 2 * time.Minute

// Options select the cluster and the configuration.
type Options struct {
	// ConfigFile is a path; if it is empty, the configuration is read from the
	// cluster.
	ConfigFile string
	Kubeconfig kube.Kubeconfig
	// Namespace is Headwater's own.
	Namespace string
	// UserAgent identifies the requests in the API server's audit log.
	UserAgent string
	// Warn, if set, shows a warning to the user.
	Warn func(text string)
}

// Inspector has caches of everything that the rules refer to.
type Inspector struct {
	options    Options
	user       string
	clients    *kube.Clients
	config     *config.Config
	rules      *rules.Set[syncspec.Rule]
	protecting *rules.Set[protectspec.Rule]
	bases      []rules.Base
	reader     *survey.Reader
	caches     *informers.Caches
	writer     *kube.Writer
	key        *digestkey.Key
}

// Open connects and waits until the caches are full; they follow changes until ctx
// ends.
func Open(ctx context.Context, options Options) (*Inspector, error) {
	c, err := connect(ctx, options, permissions())
	if err != nil {
		return nil, err
	}
	key, err := digestkey.NewEphemeral()
	if err != nil {
		return nil, err
	}
	caches, err := informers.NewCaches(c.clients, key, zap.NewNop())
	if err != nil {
		return nil, err
	}
	observer, err := survey.NewReader(rules.NewLive(c.sets.Sync), c.clients, caches, options.Namespace, zap.NewNop())
	if err != nil {
		return nil, err
	}
	if err := c.fill(ctx, caches); err != nil {
		return nil, err
	}
	return &Inspector{
		options: options, user: c.user, clients: c.clients, config: c.config, rules: c.sets.Sync, protecting: c.sets.Protect, bases: c.sets.Bases,
		reader: observer, caches: caches, writer: kube.NewWriter(c.clients), key: key,
	}, nil
}

// connection is a cluster and its configuration.
type connection struct {
	clients *kube.Clients
	// user is the name of the user who runs the command.
	user   string
	config *config.Config
	sets   config.Sets
}

// connect connects and loads the configuration. It fails if the user lacks one of
// the needed permissions.
func connect(ctx context.Context, options Options, needed []kube.Permission) (*connection, error) {
	clients, err := kube.Connect(options.Kubeconfig, options.UserAgent)
	if err != nil {
		return nil, err
	}
	user, err := kube.WhoAmI(ctx, clients)
	if err != nil {
		return nil, err
	}
	loaded, err := loadConfig(ctx, clients.Typed, options)
	if err != nil {
		return nil, err
	}
	sets, err := loaded.Compile(options.Namespace)
	if err != nil {
		return nil, err
	}
	if err := kube.CheckPermissions(ctx, clients.Typed, user, "headwater-view", needed); err != nil {
		return nil, err
	}
	return &connection{clients: clients, user: user, config: loaded, sets: sets}, nil
}

// fill starts caches and waits until they are full; they run until ctx ends.
func (c *connection) fill(ctx context.Context, caches *informers.Caches) error {
	if err := caches.Sources.Track(ctx, c.sets.Places()); err != nil {
		return err
	}
	caches.Start(ctx)
	readCtx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if !caches.AwaitFull(readCtx, nil) {
		return fmt.Errorf("read the cluster: still reading %v after %s", caches.Pending(), readTimeout)
	}
	return nil
}

func permissions() []kube.Permission {
	read := []string{"get", "list", "watch"}
	return []kube.Permission{
		{Resource: "secrets", Verbs: read, For: "compare clones with their sources"},
		{Resource: "configmaps", Verbs: read, For: "compare clones with their sources"},
		{Resource: "namespaces", Verbs: read, For: "know which namespaces there are"},
	}
}

func (i *Inspector) maxFraction() float64 { return *i.config.Safety.MaxDeleteFraction }

// lookup returns a survey.Lookup that reads the object from the API server.
func (i *Inspector) lookup(ctx context.Context) survey.Lookup {
	return func(target object.Ref) *object.Digested {
		found, err := i.writer.Describe(ctx, target, i.key)
		if err != nil {
			return nil
		}
		return found
	}
}
