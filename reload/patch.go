package reload

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/headwater-k8s/headwater/internal/mark"
)

// patch is a JSON merge patch of annotations. The UID in it is a precondition:
// an object that took the name of another is refused.
type patch struct {
	Metadata patchMeta
	// Template is the path to the pod template that Stamp goes on.
	Template []string
	Stamp    map[string]*string
}

type patchMeta struct {
	UID types.UID `json:"uid,omitempty"`
	// Annotations are set, those with a nil value removed.
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

// adoptPatch sets the baseline, or removes it when it is empty.
func adoptPatch(uid types.UID, baseline string) patch {
	value := &baseline
	if baseline == "" {
		value = nil
	}
	return patch{Metadata: patchMeta{UID: uid, Annotations: map[string]*string{mark.Baseline: value}}}
}

// restartPatch sets the baseline and the times, and stamps the pod template, in
// one write, so that none can be there without the others. Without a template
// the object itself is stamped.
func restartPatch(template []string, uid types.UID, baseline string, restarts mark.Restarts) patch {
	p := adoptPatch(uid, baseline)
	at, before := restarts.Format()
	p.Metadata.Annotations[mark.RestartedAt] = &at
	p.Metadata.Annotations[mark.RestartedBefore] = nil
	if before != "" {
		p.Metadata.Annotations[mark.RestartedBefore] = &before
	}
	if template == nil {
		p.Metadata.Annotations[mark.RestartedFor] = &baseline
		return p
	}
	p.Template, p.Stamp = template, map[string]*string{mark.RestartedFor: &baseline}
	return p
}

func refreshPatch(uid types.UID, refreshedFor string) patch {
	return patch{Metadata: patchMeta{UID: uid, Annotations: map[string]*string{mark.RefreshedFor: &refreshedFor}}}
}

func confirmPatch(uid types.UID, refreshedFor string) patch {
	return patch{Metadata: patchMeta{UID: uid, Annotations: map[string]*string{mark.RefreshConfirmed: &refreshedFor}}}
}

// patcher sends patches. Its errors are the API server's own, wrapped.
type patcher struct {
	client kubernetes.Interface
	// metadata patches kinds that this program has no types of: only the answer
	// is cut down to the metadata.
	metadata  metadata.Interface
	resources func(schema.GroupKind) (schema.GroupVersionResource, error)
}

// send patches the object k and returns its new resourceVersion.
func (p patcher) send(ctx context.Context, k key, content patch) (resourceVersion string, err error) {
	body, err := json.Marshal(content)
	if err != nil {
		return "", fmt.Errorf("patch %s: %w", k, err)
	}
	options := metav1.PatchOptions{FieldManager: mark.FieldManager}
	var patched metav1.Object
	switch k.kind {
	case KindDeployment:
		patched, err = p.client.AppsV1().Deployments(k.namespace).Patch(ctx, k.name, types.MergePatchType, body, options)
	case KindStatefulSet:
		patched, err = p.client.AppsV1().StatefulSets(k.namespace).Patch(ctx, k.name, types.MergePatchType, body, options)
	case KindDaemonSet:
		patched, err = p.client.AppsV1().DaemonSets(k.namespace).Patch(ctx, k.name, types.MergePatchType, body, options)
	case KindCronJob:
		patched, err = p.client.BatchV1().CronJobs(k.namespace).Patch(ctx, k.name, types.MergePatchType, body, options)
	case KindPod:
		patched, err = p.client.CoreV1().Pods(k.namespace).Patch(ctx, k.name, types.MergePatchType, body, options)
	default:
		patched, err = p.sendCustom(ctx, k, body, options)
	}
	if err != nil {
		return "", fmt.Errorf("patch %s: %w", k, err)
	}
	return patched.GetResourceVersion(), nil
}

func (p patcher) sendCustom(ctx context.Context, k key, body []byte, options metav1.PatchOptions) (metav1.Object, error) {
	resource, err := p.resources(k.kind.groupKind())
	if err != nil {
		return nil, err
	}
	return p.metadata.Resource(resource).Namespace(k.namespace).Patch(ctx, k.name, types.MergePatchType, body, options)
}
