package counts

import "github.com/headwater-k8s/headwater/internal/object"

// maxChanged is how many targets are recorded one by one.
const maxChanged = 50_000

// changes are what to recount. If all is true, the rest does not matter.
type changes struct {
	targets    map[object.Ref]struct{}
	namespaces map[string]struct{}
	sources    map[ruleSource]struct{}
	all        bool
}

type ruleSource struct {
	rule   string
	source object.Ref
}

func (c *Counter) takeChanges() changes {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := c.changed
	c.changed = changes{}
	return changed
}

// hasChanges reports whether the latest Snapshot lacks something that was recorded.
func (c *Counter) hasChanges() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := c.changed
	return changed.all || len(changed.targets)+len(changed.namespaces)+len(changed.sources) > 0 || c.set != c.Reader.Live.Load()
}

// TargetChanged records that the state of the clone at target may have changed. Call
// it after the change, like the methods below.
func (c *Counter) TargetChanged(target object.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.changed.all:
	case len(c.changed.targets) >= maxChanged:
		c.changed = changes{all: true}
	default:
		add(&c.changed.targets, target)
	}
}

// NamespaceChanged records that of the clones in namespace.
func (c *Counter) NamespaceChanged(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	add(&c.changed.namespaces, namespace)
}

// SourceChanged records that of the clones of source by rule.
func (c *Counter) SourceChanged(rule string, source object.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	add(&c.changed.sources, ruleSource{rule, source})
}

// AllChanged records that of every clone.
func (c *Counter) AllChanged() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed = changes{all: true}
}

func add[K comparable](set *map[K]struct{}, key K) {
	if *set == nil {
		*set = map[K]struct{}{}
	}
	(*set)[key] = struct{}{}
}
