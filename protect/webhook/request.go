package webhook

import (
	"bytes"
	"errors"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/json"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// The only supported version of reviews.
const (
	reviewVersion = "admission.k8s.io/v1"
	reviewKind    = "AdmissionReview"
)

// parseReview parses an AdmissionReview. Its errors never quote the body.
func parseReview(body []byte) (*admissionv1.AdmissionRequest, error) {
	var review admissionv1.AdmissionReview
	if !decode(body, &review) {
		return nil, errors.New("body is not the JSON of an AdmissionReview")
	}
	switch {
	case review.APIVersion != reviewVersion || review.Kind != reviewKind:
		return nil, errors.New("body is not an AdmissionReview of admission.k8s.io/v1")
	case review.Request == nil:
		return nil, errors.New("the review holds no request")
	case review.Request.UID == "":
		return nil, errors.New("the request has no uid")
	}
	switch review.Request.Operation {
	case admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect:
		return review.Request, nil
	default:
		return nil, errors.New("the request has no known operation")
	}
}

// toRequest converts a review. It leaves unreadable parts empty; decide.Decide
// denies the request if they matter.
func toRequest(in *admissionv1.AdmissionRequest) decide.Request {
	request := decide.Request{
		Kind:      kindOf(in),
		Namespace: in.Namespace,
		Name:      in.Name,
		User:      decide.User{Name: in.UserInfo.Username, Groups: in.UserInfo.Groups},
		DryRun:    in.DryRun != nil && *in.DryRun,
	}
	switch in.Operation {
	case admissionv1.Create:
		request.Operation = spec.Create
	case admissionv1.Update:
		request.Operation = spec.Update
	case admissionv1.Delete:
		request.Operation = spec.Delete
	default: // never protected
	}
	if request.Kind != "" && request.Operation != "" {
		if request.Operation != spec.Create {
			request.Old = readObject(request.Kind, in.OldObject)
		}
		if request.Operation != spec.Delete {
			request.New = readObject(request.Kind, in.Object)
		}
	}
	return request
}

func kindOf(in *admissionv1.AdmissionRequest) object.Kind {
	if in.Resource.Group != "" {
		return ""
	}
	for _, kind := range object.Kinds {
		if in.Resource.Resource == kind.Resource() {
			return kind
		}
	}
	if in.Resource.Resource == "namespaces" && in.SubResource == "" {
		return spec.KindNamespace
	}
	return ""
}

// readObject returns nil unless raw is a complete object of kind.
func readObject(kind object.Kind, raw runtime.RawExtension) *object.Full {
	if len(raw.Raw) == 0 {
		return nil
	}
	var target runtime.Object
	switch kind {
	case object.Secret:
		target = &corev1.Secret{}
	case object.ConfigMap:
		target = &corev1.ConfigMap{}
	default:
		target = &corev1.Namespace{}
	}
	if !decode(raw.Raw, target) {
		return nil
	}
	if got := target.GetObjectKind().GroupVersionKind(); got.Group != "" || got.Version != "v1" || got.Kind != string(kind) {
		return nil
	}
	return toFull(target)
}

func toFull(obj runtime.Object) *object.Full {
	switch typed := obj.(type) {
	case *corev1.Namespace:
		return &object.Full{ObjectMeta: typed.ObjectMeta, Kind: spec.KindNamespace}
	case *corev1.Secret:
		if len(typed.StringData) > 0 { // the API server moves it to data before it sends a review
			return nil
		}
	}
	full, err := object.FromAPI(obj)
	if err != nil {
		return nil
	}
	return full
}

// decode is as strict as the API server: keys are case-sensitive and must be
// unique, so that both read the same bytes alike.
func decode(data []byte, into any) bool {
	strict, err := json.UnmarshalStrict(data, into, json.DisallowDuplicateFields)
	return err == nil && len(strict) == 0
}

// countElements counts the objects, lists and their entries in a JSON text. A
// few bytes of JSON can need a lot of memory for these.
func countElements(text []byte) int {
	count := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[', ',':
			count++
		case '"':
			i += stringLength(text[i+1:])
		}
	}
	return count
}

// stringLength returns the length of the JSON string that text starts in, with
// the closing quotation mark.
func stringLength(text []byte) int {
	for at := 0; ; at++ {
		next := bytes.IndexAny(text[at:], `"\\`)
		if next < 0 {
			return len(text)
		}
		if at += next; text[at] == '"' {
			return at + 1
		}
		at++ // skip the escaped character
		if at >= len(text) {
			return len(text)
		}
	}
}
