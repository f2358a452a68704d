// Package inspect implements the commands that read a cluster without the running
// service. It decides with the same code as the service.
package inspect

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

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
	observer, err := survey.NewReader(rules.NewLive(c.sets.Sync), c.clients, caches, key, options.Own, zap.NewNop())
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

// Scope limits a Status to part of the cluster.
type Scope struct {
	// Rule limits it to one rule; empty means all rules.
	Rule string
	// Namespaces limits it to these target namespaces, names or globs; empty means all.
	Namespaces []string
}

// Validate reports an invalid glob.
func (s Scope) Validate() error {
	for _, glob := range s.Namespaces {
		if _, err := path.Match(glob, ""); err != nil || glob == "" {
			return fmt.Errorf("target namespace %q is no name or glob", glob)
		}
	}
	return nil
}

func (s Scope) hasRule(name string) bool { return s.Rule == "" || s.Rule == name }

func (s Scope) hasNamespace(name string) bool {
	return len(s.Namespaces) == 0 || slices.ContainsFunc(s.Namespaces, func(glob string) bool {
		matched, err := path.Match(glob, name)
		return matched && err == nil
	})
}

func (s Scope) has(cloneStatus survey.CloneStatus) bool {
	return s.hasRule(cloneStatus.Rule) && s.hasNamespace(cloneStatus.Target.Namespace)
}

// names returns the Namespaces that are not globs.
func (s Scope) names() []string {
	return slices.DeleteFunc(slices.Clone(s.Namespaces), func(glob string) bool { return strings.ContainsAny(glob, `*?[\`) })
}

// reaches reports whether rule selects a namespace of the scope.
func (i *Inspector) reaches(scope Scope, rule syncspec.Rule) bool {
	if len(scope.Namespaces) == 0 {
		return true
	}
	for _, namespace := range i.caches.Namespaces.List() {
		if scope.hasNamespace(namespace.Name) && rule.Into().Matches(namespace.Name, namespace.Labels) {
			return true
		}
	}
	return false
}

// unknownRule returns an error if neither the configuration nor a clone names the
// rule of scope.
func (i *Inspector) unknownRule(scope Scope, found []*ruleStatus) error {
	var names []string
	for _, base := range i.bases {
		names = append(names, base.Name)
	}
	if scope.Rule == "" || slices.Contains(names, scope.Rule) ||
		slices.ContainsFunc(found, func(r *ruleStatus) bool { return r.Name == scope.Rule }) {
		return nil
	}
	return fmt.Errorf("no rule %q in the configuration, and no clone of such a rule; rules: %s", scope.Rule, strings.Join(names, ", "))
}
