package reload

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/report"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// patch is a JSON merge patch of annotations. The UID is a precondition: the API server
// refuses it if another object has taken the name.
type patch struct {
	Metadata patchMeta
	// StampAt is the path to the annotations that Stamp is set in.
	StampAt []string
	Stamp   map[string]*string
}

type patchMeta struct {
	UID types.UID `json:"uid,omitempty"`
	// Annotations to set; a nil value removes one.
	Annotations map[string]*string `json:"annotations"`
}

// MarshalJSON implements json.Marshaler.
func (p patch) MarshalJSON() ([]byte, error) {
	body := map[string]any{}
	if p.Stamp != nil {
		var stamped any = p.Stamp
		for _, key := range slices.Backward(p.StampAt) {
			stamped = map[string]any{key: stamped}
		}
		body, _ = stamped.(map[string]any)
	}
	body["metadata"] = p.Metadata
	return json.Marshal(body)
}

// adoptPatch sets the baseline of d, or removes it if it is empty. It sets what somebody
// reverted again, and records that the pods were checked although they lack the stamp.
func adoptPatch(s *decide.State, d decide.Decision) patch {
	p := annotationPatch(s.Workload.UID, mark.Baseline, d.Baseline)
	if s.LostRestarts() {
		p = p.at(s.Known.Restarts)
	}
	if !d.Incomplete && s.LostStamp() || d.Undone == decide.UndoneByOwner {
		at, _ := s.Known.Restarts.Format()
		p.Metadata.Annotations[mark.RestartChecked] = &at
	}
	return p
}

// annotationPatch sets an annotation, or removes it if value is empty.
func annotationPatch(uid types.UID, annotation, value string) patch {
	to := &value
	if value == "" {
		to = nil
	}
	return patch{Metadata: patchMeta{UID: uid, Annotations: map[string]*string{annotation: to}}}
}

// restartPatch sets the baseline and the restart times, and stamps the pod template, in
// one write, so that no write can exist without the others. Without a template it
// stamps the object itself. Repeating the same restart before the caches show it writes the
// same stamp, so that starts no second rollout.
func restartPatch(stampAt []string, uid types.UID, baseline string, last time.Time, restarts mark.Restarts, because mark.Because) patch {
	p := annotationPatch(uid, mark.Baseline, baseline).at(restarts)
	if stampAt == nil {
		p.Metadata.Annotations[mark.RestartedFor] = &baseline
		return p.because(because)
	}
	p.StampAt, p.Stamp = stampAt, map[string]*string{mark.RestartedFor: &baseline, mark.RestartedAfter: nil}
	if !last.IsZero() {
		after := mark.FormatTime(last)
		p.Stamp[mark.RestartedAfter] = &after
	}
	return p.because(because)
}

// because returns p with the reason of the restart. A restart that is repeated keeps it.
func (p patch) because(because mark.Because) patch {
	if len(because.Objects) > 0 {
		because.Stamp = uint64(p.stamp())
		why := because.Format()
		p.Metadata.Annotations[mark.RestartedBecause] = &why
	}
	return p
}

// at returns p with the restart times. A check of an earlier restart is removed.
func (p patch) at(restarts mark.Restarts) patch {
	at, before := restarts.Format()
	p.Metadata.Annotations[mark.RestartedAt] = &at
	p.Metadata.Annotations[mark.RestartedBefore], p.Metadata.Annotations[mark.RestartChecked] = nil, nil
	if before != "" {
		p.Metadata.Annotations[mark.RestartedBefore] = &before
	}
	return p
}

// stamp returns the stamp that p writes on the pod template.
func (p patch) stamp() workload.Stamp {
	set := map[string]string{}
	for annotation, value := range p.Stamp {
		if value != nil {
			set[annotation] = *value
		}
	}
	return workload.StampOf(set)
}

// stripped returns the first annotation that p sets and annotations, which the API server
// stores, do not have like that; empty if there is none.
func stripped(set map[string]*string, annotations map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if value := set[name]; value != nil && annotations[name] != *value {
			return name
		}
	}
	return ""
}

// patcher sends patches. It requests only metadata in response, because the caches
// receive the rest by watch. It wraps the API server's errors.
type patcher struct {
	client metadata.Interface
	// optional finds the resource of a kind that a cluster may not have.
	optional func(schema.GroupKind) (schema.GroupVersionResource, error)
}

// send patches the object and returns its new resourceVersion. If the API server stores an
// annotation otherwise, it returns a report.AdmissionError, too.
func (p patcher) send(ctx context.Context, k kinds.Key, content patch) (resourceVersion string, err error) {
	body, err := json.Marshal(content)
	if err != nil {
		return "", fmt.Errorf("patch %s: %w", k, err)
	}
	resource, err := p.resource(k.Kind)
	if err != nil {
		return "", fmt.Errorf("patch %s: %w", k, err)
	}
	options := metav1.PatchOptions{FieldManager: mark.FieldManager}
	patched, err := p.client.Resource(resource).Namespace(k.Namespace).Patch(ctx, k.Name, types.MergePatchType, body, options)
	if err != nil {
		return "", fmt.Errorf("patch %s: %w", k, err)
	}
	if name := stripped(content.Metadata.Annotations, patched.Annotations); name != "" {
		err = fmt.Errorf("patch %s: %w", k, report.AdmissionError{Annotation: name})
	}
	return patched.ResourceVersion, err
}

func (p patcher) resource(kind kinds.Kind) (schema.GroupVersionResource, error) {
	if form, typed := kinds.Typed[kind]; typed {
		return form.GroupVersion().WithResource(form.Resource), nil
	}
	return p.optional(kind.GroupKind())
}
