package counts

import (
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/revisions"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// Watch subscribes to everything in the caches that the state of clones depends on,
// except rules, which count compares, and removals, of which it asks each time.
func (c *Counter) Watch() error {
	reader, all := c.Reader, informers.Subscriptions{}
	err := all.Add(reader.Caches.Namespaces.OnChange(func(change informers.Change[*informers.Namespace]) {
		c.NamespaceChanged(change.Latest().Name)
	}))
	if err != nil {
		return err
	}
	for _, kind := range object.Kinds {
		if err := c.watchObjects(kind, &all); err != nil {
			return err
		}
	}
	err = all.Add(reader.Approvals.View.OnChange(func(informers.Change[*survey.StoredApprovals]) { c.AllChanged() }))
	if err != nil {
		return err
	}
	if err := all.Add(reader.Caches.Sources.OnChange(c.sourceChanged)); err != nil {
		return err
	}
	_, err = reader.Revisions.OnChange(func(change informers.Change[*revisions.Stored]) {
		key := change.Latest().Key()
		c.SourceChanged(key.Rule, key.Source)
	})
	return err
}

func (c *Counter) watchObjects(kind object.Kind, all *informers.Subscriptions) error {
	err := all.Add(c.Reader.Caches.Clones[kind].OnChange(func(change informers.Change[*object.Digested]) {
		c.TargetChanged(change.Latest().Ref())
	}))
	if err != nil {
		return err
	}
	return all.Add(c.Reader.Caches.Unmanaged[kind].OnChange(func(change informers.Change[*informers.Unmanaged]) {
		found := change.Latest()
		target := object.Ref{Kind: kind, Namespace: found.Namespace, Name: found.Name}
		if len(c.Reader.RuleIndex(c.Reader.Live.Load()).Of(target)) > 0 { // else no rule wants this name
			c.TargetChanged(target)
		}
	}))
}

// sourceChanged ignores the other objects of a source namespace.
func (c *Counter) sourceChanged(change informers.Change[*object.Full]) {
	set := c.Reader.Live.Load()
	for _, version := range []*object.Full{change.Old, change.New} {
		if version == nil {
			continue
		}
		for _, rule := range set.ForSource(version.Ref(), version.Labels) {
			c.SourceChanged(rule.Name, version.Ref())
		}
	}
}
