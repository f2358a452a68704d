package revisions

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/delivery"
)

// Store writes revisions to Headwater's namespace.
type Store struct {
	Writer    *kube.Writer
	Namespace string
}

// nameOf returns the name of the object that records a revision. Two leaders that
// record the same revision choose the same name, so that one of them fails.
func nameOf(key Key, number int) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key.Source.String()))
	return fmt.Sprintf("headwater-revision-%s-%08x-%d", key.Rule, h.Sum32(), number)
}

// Create records a new revision of source. It fails with AlreadyExists if another
// revision has that number, because the cache is behind.
func (s Store) Create(ctx context.Context, source *object.Full, revision delivery.Revision) error {
	key := Key{revision.Rule, revision.Source}
	recorded := &object.Full{
		ObjectMeta: object.NewMeta(object.Ref{Kind: source.Kind, Namespace: s.Namespace, Name: nameOf(key, revision.Number)}),
		Kind:       source.Kind,
		Content:    source.Content,
	}
	recorded.Labels = object.Merged(mark.ManagedLabels(), map[string]string{
		mark.Revision: strconv.Itoa(revision.Number), mark.Rule: revision.Rule,
	})
	recorded.Annotations = map[string]string{
		mark.Rule: revision.Rule, mark.Source: revision.Source.String(), mark.SourceUID: string(source.UID), mark.EditedBy: revision.EditedBy,
	}
	if source.Content.Immutable {
		recorded.Annotations[mark.SourceImmutable] = "true"
	}
	setAnnotations(recorded, revision)
	recorded.Content.Immutable = true
	return s.Writer.Create(ctx, recorded)
}

// Update writes what revision says of its delivery to the stored object. It fails
// with Conflict if the cache is behind, and does nothing if nothing differs.
func (s Store) Update(ctx context.Context, stored *Stored, revision delivery.Revision) error {
	changed := *stored.full
	changed.Annotations = maps.Clone(stored.full.Annotations)
	setAnnotations(&changed, revision)
	if maps.Equal(changed.Annotations, stored.full.Annotations) {
		return nil
	}
	return s.Writer.Update(ctx, &changed)
}

func setAnnotations(o *object.Full, revision delivery.Revision) {
	for key, value := range revision.Annotations() {
		if value == "" {
			delete(o.Annotations, key)
		} else {
			o.Annotations[key] = value
		}
	}
}

// Delete deletes the stored object.
func (s Store) Delete(ctx context.Context, stored *Stored) error {
	err := s.Writer.Delete(ctx, stored.full.Ref(), stored.ObjectMeta)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
