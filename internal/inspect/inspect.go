// Package inspect implements the commands that read a cluster without the running
// service. It decides with the same code as the service.
package inspect

import (
	"context"

	"go.uber.org/zap"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/rules"
	syncspec "github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// Options select the cluster and the configuration.
type Options struct {
	// ConfigFile is a path; if it is empty, the configuration is read from the
	// cluster.
	ConfigFile string
	Kubeconfig kube.Kubeconfig
	// Own is the namespace that Headwater runs in.
	Own string
	// UserAgent identifies the requests in the API server's audit log.
	UserAgent string
	// Warn, if set, shows a warning to the user.
	Warn func(text string)
}

// Inspector has caches of everything that the rules refer to.
type Inspector struct {
	*connection

	options Options
	rules   *rules.Set[syncspec.Rule]
	bases   []rules.Base
	reader  *survey.Reader
	writer  *kube.Writer
	key     *digestkey.Key
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
	recorded, err := revisions.NewView(c.clients, caches, key, options.Own, zap.NewNop())
	if err != nil {
		return nil, err
	}
	observer, err := survey.NewReader(rules.NewLive(c.sets.Sync), c.clients, caches, recorded, options.Own, zap.NewNop())
	if err != nil {
		return nil, err
	}
	if err := c.fill(ctx, caches); err != nil {
		return nil, err
	}
	return &Inspector{
		connection: c, options: options, rules: c.sets.Sync, bases: c.sets.Bases,
		reader: observer, writer: kube.NewWriter(c.clients), key: key,
	}, nil
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
