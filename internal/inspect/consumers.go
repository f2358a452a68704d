package inspect

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/output"
	"github.com/headwater-k8s/headwater/reload/explain"
)

// Consumers lists the consumers of an object.
type Consumers struct {
	Object string `json:"object"`
	// Clones is how many clones the object has; Consumers includes theirs.
	Clones    int           `json:"clones,omitempty"`
	Consumers []explain.Use `json:"consumers"`
	// Notes say what is not known, and why.
	Notes []string `json:"notes,omitempty"`
}

// FindConsumers returns the consumers of the object KIND/NAME and of its clones.
func FindConsumers(ctx context.Context, options Options, object string) (Consumers, error) {
	ref, err := parseObject(object, options.Kubeconfig.Namespace())
	if err != nil {
		return Consumers{}, err
	}
	c, err := connectToReload(ctx, options)
	if err != nil {
		return Consumers{}, err
	}
	observer, notes, err := c.openReload(ctx, options)
	if err != nil {
		return Consumers{}, err
	}
	resource := c.clients.Metadata.Resource(corev1.SchemeGroupVersion.WithResource(ref.Kind.Resource()))
	if _, err := resource.Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
		notes = append(notes, fmt.Sprintf("there is no such %s; shown is who would consume it", ref.Kind))
	} else if err != nil {
		return Consumers{}, fmt.Errorf("get %s: %w", ref, err)
	}
	uses, clones, err := observer.Consumers(ctx, ref, time.Now())
	return Consumers{Object: ref.String(), Clones: clones, Consumers: uses, Notes: notes}, err
}

// Table writes a row per consumer.
func (c Consumers) Table(out *output.Writer) {
	if len(c.Consumers) == 0 {
		_, _ = fmt.Fprintln(out, c.Object+": nobody consumes it"+c.norClones())
	} else {
		var rows [][]string
		for _, use := range c.Consumers {
			rows = append(rows, append(c.names(use.Consumer, use.Object), cells(use)...))
		}
		out.Rows(rows, append(c.names("CONSUMER", "OBJECT"), useColumns...), "CHANGED")
	}
	writeNotes(out, c.Notes)
}

// Names lists the consumers, each once.
func (c Consumers) Names() []string {
	var names []string
	for _, use := range c.Consumers {
		names = append(names, use.Consumer)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// names omits the object if it is the same in every row.
func (c Consumers) names(consumer, object string) []string {
	if c.Clones == 0 {
		return []string{consumer}
	}
	return []string{consumer, object}
}

func (c Consumers) norClones() string {
	if c.Clones == 0 {
		return ""
	}
	return fmt.Sprintf(", nor any of its %d clones", c.Clones)
}
