package webhook

import (
	"errors"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// review is an AdmissionReview as the API server sends it.
type review struct {
	metav1.TypeMeta

	Request *reviewRequest `json:"request"`
}

// reviewRequest is an AdmissionRequest. Its own fields replace those of the same
// name: objects are decoded later, and what no decision needs is not decoded.
type reviewRequest struct {
	admissionv1.AdmissionRequest

	Object      rawObject `json:"object"`
	OldObject   rawObject `json:"oldObject"`
	Kind        unread    `json:"kind"`
	RequestKind unread    `json:"requestKind"`
	RequestFor  unread    `json:"requestResource"`
	Options     unread    `json:"options"`
	UserInfo    userInfo  `json:"userInfo"`
}

type userInfo struct {
	authenticationv1.UserInfo

	Extra unread `json:"extra"`
}

// rawObject is the JSON of an object. It is a part of the review's body, not a copy.
type rawObject []byte

// UnmarshalJSON keeps text.
func (r *rawObject) UnmarshalJSON(text []byte) error {
	*r = text
	return nil
}

// unread is the place of a field that is not decoded. A second one of the same name is
// still an error.
type unread struct{}

// UnmarshalJSON ignores the value, which is valid JSON.
func (*unread) UnmarshalJSON([]byte) error { return nil }

// parseReview parses an AdmissionReview. The result refers to body. Its errors never
// quote the body.
func parseReview(body []byte) (*reviewRequest, error) {
	var review review
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
func toRequest(in *reviewRequest) decide.Request {
	request := decide.Request{
		Kind:      kindOf(in),
		Namespace: in.Namespace,
		Name:      in.Name,
		User:      decide.User{Name: in.UserInfo.Username, Groups: in.UserInfo.Groups, UID: in.UserInfo.UID},
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

func kindOf(in *reviewRequest) object.Kind {
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
func readObject(kind object.Kind, raw rawObject) *object.Full {
	var in reviewed
	switch kind {
	case object.Secret:
		in = &secret{}
	case object.ConfigMap:
		in = &configMap{}
	default:
		in = &namespace{}
	}
	if !decode(raw, in) {
		return nil
	}
	full := in.full()
	if full == nil || full.Kind != kind {
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
