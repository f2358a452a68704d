package reload

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// patch is a JSON merge patch of annotations. The UID is a precondition: the API server
// refuses it if another object has taken the name.
type patch struct {
	Metadata patchMeta
	// Template is the path to the pod template that Stamp goes on.
	Template []string
	Stamp    map[string]*string
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
		var template any = map[string]any{"metadata": patchMeta{Annotations: p.Stamp}}
		for _, key := range slices.Backward(p.Template) {
			template = map[string]any{key: template}
		}
		body, _ = template.(map[string]any)
	}
	body["metadata"] = p.Metadata
	return json.Marshal(body)
}

// adoptPatch sets the baseline, or removes it if it is empty.
func adoptPatch(uid types.UID, baseline string) patch {
	value := &baseline
	if baseline == "" {
		value = nil
	}
	return patch{Metadata: patchMeta{UID: uid, Annotations: map[string]*string{mark.Baseline: value}}}
}

// restartPatch sets the baseline and the restart times, and stamps the pod template, in
// one write, so that no write can exist without the others. Without a template it
// stamps the object itself. Repeating the same restart writes the same stamp, so a
// retry after a lost response starts no second rollout.
func restartPatch(template []string, uid types.UID, baseline string, last time.Time, restarts mark.Restarts) patch {
	p := adoptPatch(uid, baseline).at(restarts)
	if template == nil {
		p.Metadata.Annotations[mark.RestartedFor] = &baseline
		return p
	}
	p.Template, p.Stamp = template, map[string]*string{mark.RestartedFor: &baseline, mark.RestartedAfter: nil}
	if !last.IsZero() {
		after := mark.FormatTime(last)
		p.Stamp[mark.RestartedAfter] = &after
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

func refreshPatch(uid types.UID, refreshedFor string) patch {
	return patch{Metadata: patchMeta{UID: uid, Annotations: map[string]*string{mark.RefreshedFor: &refreshedFor}}}
}

func confirmPatch(uid types.UID, refreshedFor string) patch {
	return patch{Metadata: patchMeta{UID: uid, Annotations: map[string]*string{mark.RefreshConfirmed: &refreshedFor}}}
}

// patcher sends patches. It requests only metadata in response, because the caches
// receive the rest by watch. It wraps the API server's errors.
type patcher struct {
	client metadata.Interface
	// optional finds the resource of a kind that a cluster may not have.
	optional func(schema.GroupKind) (schema.GroupVersionResource, error)
}

// send patches the object and returns its new resourceVersion.
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
	return patched.ResourceVersion, nil
}

func (p patcher) resource(kind kinds.Kind) (schema.GroupVersionResource, error) {
	if form, typed := kinds.Typed[kind]; typed {
		return form.GroupVersion().WithResource(form.Resource), nil
	}
	return p.optional(kind.GroupKind())
}
