package reload

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/internal/mark"
)

// patch is a JSON merge patch of annotations. The UID in it is a precondition:
// an object that took the name of another is refused.
type patch struct {
	Metadata patchMeta  `json:"metadata"`
	Spec     *patchSpec `json:"spec,omitempty"`
}

type patchMeta struct {
	UID types.UID `json:"uid,omitempty"`
	// Annotations are set, those with a nil value removed.
	Annotations map[string]*string `json:"annotations"`
}

// patchSpec has one of its fields: a CronJob's pod template lies deeper.
type patchSpec struct {
	Template    *patchTemplate `json:"template,omitempty"`
	JobTemplate *patchJob      `json:"jobTemplate,omitempty"`
}

type patchTemplate struct {
	Metadata patchMeta `json:"metadata"`
}

type patchJob struct {
	Spec patchSpec `json:"spec"`
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
// one write, so that none can be there without the others.
func restartPatch(kind Kind, uid types.UID, baseline string, restarts mark.Restarts) patch {
	p := adoptPatch(uid, baseline)
	at, before := restarts.Format()
	p.Metadata.Annotations[mark.RestartedAt] = &at
	p.Metadata.Annotations[mark.RestartedBefore] = nil
	if before != "" {
		p.Metadata.Annotations[mark.RestartedBefore] = &before
	}
	p.Spec = &patchSpec{Template: &patchTemplate{patchMeta{Annotations: map[string]*string{mark.RestartedFor: &baseline}}}}
	if kind == KindCronJob {
		p.Spec = &patchSpec{JobTemplate: &patchJob{*p.Spec}}
	}
	return p
}

func refreshPatch(uid types.UID, refreshedFor string) patch {
	return patch{Metadata: patchMeta{UID: uid, Annotations: map[string]*string{mark.RefreshedFor: &refreshedFor}}}
}

func confirmPatch(uid types.UID, refreshedFor string) patch {
	return patch{Metadata: patchMeta{UID: uid, Annotations: map[string]*string{mark.RefreshConfirmed: &refreshedFor}}}
}

// patcher sends patches. Its errors are the API server's own, wrapped.
type patcher struct{ client kubernetes.Interface }

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
		return "", fmt.Errorf("patch %s: unknown kind", k)
	}
	if err != nil {
		return "", fmt.Errorf("patch %s: %w", k, err)
	}
	return patched.GetResourceVersion(), nil
}
