package revisions

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

// Store writes revisions to Headwater's namespace.
type Store struct {
	Writer    *kube.Writer
	Namespace string
	// Key is the digest key, which revisions name; nil in tests.
	Key *digestkey.Key
}

// nameOf returns the name of the object that records a revision. Two leaders that
// record the same revision choose the same name, so that one of them fails. It ends with
// the number, as Parse reads it.
func nameOf(key Key, number int) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key.Source.String()))
	return fmt.Sprintf("headwater-revision-%s-%08x-%d", key.Rule, h.Sum32(), number)
}

// Create records a new revision of source. It fails with AlreadyExists if another
// revision has that number, because the cache is behind.
func (s Store) Create(ctx context.Context, source *object.Full, revision Revision) error {
	key := Key{revision.Rule, revision.Source}
	recorded := &object.Full{
		ObjectMeta: object.NewMeta(object.Ref{Kind: source.Kind, Namespace: s.Namespace, Name: nameOf(key, revision.Number)}),
		Kind:       source.Kind,
		Content:    source.Content,
	}
	recorded.Labels = object.Merged(mark.ManagedLabels(), map[string]string{
		mark.Revision: strconv.Itoa(revision.Number), mark.Rule: revision.Rule,
	})
	if s.Key != nil && s.Key.ID() != "" {
		recorded.Labels[mark.DigestKey] = s.Key.ID()
	}
	recorded.Annotations = map[string]string{
		mark.Rule: revision.Rule, mark.Source: revision.Source.String(), mark.SourceUID: string(source.UID), mark.EditedBy: revision.EditedBy, mark.Protocol: protocol,
	}
	if source.Content.Immutable {
		recorded.Annotations[mark.SourceImmutable] = "true"
	}
	if revision.AllAtOnceValue != "" {
		recorded.Annotations[mark.AllAtOnceValue] = revision.AllAtOnceValue
	}
	if revision.ChangedKeys != nil {
		keys, err := json.Marshal(revision.ChangedKeys)
		if err != nil {
			return fmt.Errorf("record revision %d of %s: %w", revision.Number, key, err)
		}
		recorded.Annotations[mark.ChangedKeys] = string(keys)
	}
	setAnnotations(recorded, revision)
	recorded.Content.Immutable = true
	_, err := s.Writer.Create(ctx, recorded)
	return err
}

// Update writes what revision says of its delivery to the stored object. It fails
// with Conflict if the cache is behind, and does nothing if nothing differs.
func (s Store) Update(ctx context.Context, stored *Stored, revision Revision) error {
	changed := *stored.full
	changed.Annotations = maps.Clone(stored.full.Annotations)
	setAnnotations(&changed, revision)
	if maps.Equal(changed.Annotations, stored.full.Annotations) {
		return nil
	}
	_, err := s.Writer.Update(ctx, &changed)
	return err
}

// setAnnotations never writes mark.Evidence. It removes it if the revision has none, so
// that reload looks again, and the changed keys if the whole object counts.
func setAnnotations(o *object.Full, revision Revision) {
	if revision.Evidence.Version == 0 && revision.EvidenceUnread == nil {
		delete(o.Annotations, mark.Evidence)
	}
	if revision.ChangedKeys == nil {
		delete(o.Annotations, mark.ChangedKeys)
	}
	for key, value := range revision.Annotations() {
		if value == "" {
			delete(o.Annotations, key)
		} else {
			o.Annotations[key] = value
		}
	}
}

// Hand gives the stored revision to another rule.
func (s Store) Hand(ctx context.Context, stored *Stored, rule string) error {
	changed := *stored.full
	changed.Annotations = object.Merged(stored.full.Annotations, map[string]string{mark.Rule: rule})
	changed.Labels = object.Merged(stored.full.Labels, map[string]string{mark.Rule: rule})
	_, err := s.Writer.Update(ctx, &changed)
	return err
}

// Delete deletes the stored object.
func (s Store) Delete(ctx context.Context, stored *Stored) error {
	err := s.Writer.Delete(ctx, stored.full.Ref(), stored.ObjectMeta)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
