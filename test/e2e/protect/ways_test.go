package protect

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// object is one Secret or ConfigMap, by the names of the API.
type object struct{ resource, namespace, name string }

// way is a way to write to an object: as a dry run, or with no dry, for real.
type way func(ctx context.Context, as kubernetes.Interface, dry []string) error

func (o object) at(request *rest.Request) *rest.Request {
	return request.Namespace(o.namespace).Resource(o.resource).Name(o.name)
}

func (o object) patch(kind types.PatchType, body string) way {
	return o.patchAnsweredWith("application/json", kind, body)
}

func (o object) merge(body string) way { return o.patch(types.MergePatchType, body) }

func (o object) patchAnsweredWith(media string, kind types.PatchType, body string) way {
	return func(ctx context.Context, as kubernetes.Interface, dry []string) error {
		options := &metav1.PatchOptions{DryRun: dry}
		if kind == types.ApplyPatchType {
			force := true
			options.Force, options.FieldManager = &force, "x"
		}
		return o.at(as.CoreV1().RESTClient().Patch(kind)).SetHeader("Accept", media).
			VersionedParams(options, scheme.ParameterCodec).Body([]byte(body)).Do(ctx).Error()
	}
}

func (o object) delete(options metav1.DeleteOptions) way {
	return func(ctx context.Context, as kubernetes.Interface, dry []string) error {
		asked := options
		asked.DryRun = dry
		return o.at(as.CoreV1().RESTClient().Delete()).Body(&asked).Do(ctx).Error()
	}
}

// deleteOfCollection deletes o by a request that does not name it.
func (o object) deleteOfCollection(ctx context.Context, as kubernetes.Interface, dry []string) error {
	return as.CoreV1().RESTClient().Delete().Namespace(o.namespace).Resource(o.resource).
		VersionedParams(&metav1.ListOptions{FieldSelector: "metadata.name=" + o.name}, scheme.ParameterCodec).
		Body(&metav1.DeleteOptions{DryRun: dry}).Do(ctx).Error()
}

// replacement is what kubectl replace --force does.
func (o object) replacement(metadata, content string) way {
	return func(ctx context.Context, as kubernetes.Interface, dry []string) error {
		if err := o.delete(metav1.DeleteOptions{})(ctx, as, dry); err != nil {
			return err
		}
		err := as.CoreV1().RESTClient().Post().Namespace(o.namespace).Resource(o.resource).
			VersionedParams(&metav1.CreateOptions{DryRun: dry}, scheme.ParameterCodec).
			Body([]byte(o.manifest(metadata, content))).Do(ctx).Error()
		if len(dry) > 0 && apierrors.IsAlreadyExists(err) { // as the API server finds once nobody refuses
			return nil
		}
		return err
	}
}

func (o object) manifest(metadata, content string) string {
	kind := map[string]string{"secrets": "Secret", "configmaps": "ConfigMap"}[o.resource]
	return fmt.Sprintf(`{"apiVersion":"v1","kind":%q,"metadata":{"name":%q%s},%s}`, kind, o.name, metadata, content)
}

// twoSteps does the first for the sake of the second, which may pass although the
// first was refused.
func twoSteps(first, second way) way {
	return func(ctx context.Context, as kubernetes.Interface, dry []string) error {
		_ = first(ctx, as, dry)
		return second(ctx, as, dry)
	}
}

const (
	otherValue = `"data":{"k":"eA=="}`
	// metadataAlone asks for an answer without what the object holds.
	metadataAlone = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
)

// edits are ways to change what o holds.
func (o object) edits() map[string]way {
	edits := map[string]way{
		"an edit by JSON patch":                   o.patch(types.JSONPatchType, `[{"op":"replace","path":"/data/k","value":"eA=="}]`),
		"an edit by merge patch":                  o.merge("{" + otherValue + "}"),
		"an edit by strategic merge patch":        o.patch(types.StrategicMergePatchType, "{"+otherValue+"}"),
		"an edit by server-side apply":            o.patch(types.ApplyPatchType, o.manifest("", otherValue)),
		"an edit that only metadata come back of": o.patchAnsweredWith(metadataAlone, types.MergePatchType, "{"+otherValue+"}"),
		"an edit with a label of one's own":       o.merge(`{"metadata":{"labels":{"team":"a"}},` + otherValue + `}`),
		"an emptying":                             o.merge(`{"data":null}`),
		"a freezing":                              o.merge(`{"immutable":true}`),
	}
	if o.resource == "configmaps" {
		edits["an edit of binaryData"] = o.merge(`{"binaryData":{"b":"eA=="}}`)
		edits["a key more in binaryData"] = o.merge(`{"binaryData":{"more":"eA=="}}`)
		edits["a move of a value to binaryData"] = o.merge(`{"data":{"k":null},"binaryData":{"k":"dg=="}}`)
	}
	return edits
}

// deletes are ways to have o gone.
func (o object) deletes() map[string]way {
	orphan, foreground, background := metav1.DeletePropagationOrphan, metav1.DeletePropagationForeground, metav1.DeletePropagationBackground
	var now int64
	return map[string]way{
		"a delete that orphans":      o.delete(metav1.DeleteOptions{PropagationPolicy: &orphan}),
		"a delete in the foreground": o.delete(metav1.DeleteOptions{PropagationPolicy: &foreground}),
		"a delete in the background": o.delete(metav1.DeleteOptions{PropagationPolicy: &background}),
		"a delete at once":           o.delete(metav1.DeleteOptions{GracePeriodSeconds: &now}),
		"a delete by the collection": o.deleteOfCollection,
	}
}

// unmarkings are ways to take the label of clones off o, or change it.
func (o object) unmarkings() map[string]way {
	const off = `{"metadata":{"labels":{"headwater.dev/clone":null}}}`
	return map[string]way{
		"an unmarking by JSON patch":                   o.patch(types.JSONPatchType, `[{"op":"remove","path":"/metadata/labels/headwater.dev~1clone"}]`),
		"an unmarking by strategic merge patch":        o.patch(types.StrategicMergePatchType, off),
		"an unmarking by server-side apply":            o.patch(types.ApplyPatchType, o.manifest(`,"labels":{"headwater.dev/clone":"no"}`, `"data":{}`)),
		"an unmarking that only metadata come back of": o.patchAnsweredWith(metadataAlone, types.MergePatchType, off),
		"an unmarking with an edit":                    o.merge(`{"metadata":{"labels":null,"annotations":null},` + otherValue + `}`),
	}
}

// trifles are writes that change nothing that is protected.
func (o object) trifles() map[string]way {
	const label = `{"metadata":{"labels":{"team":"a"}}}`
	return map[string]way{
		"a label by strategic merge patch":        o.patch(types.StrategicMergePatchType, label),
		"a label by server-side apply":            o.patch(types.ApplyPatchType, o.manifest(`,"labels":{"team":"a"}`, `"data":{}`)),
		"a label that only metadata come back of": o.patchAnsweredWith(metadataAlone, types.MergePatchType, label),
		"a word that it is not frozen":            o.merge(`{"immutable":false}`),
	}
}
