package plan

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/spec"
)

// The API server's limits in bytes: TotalAnnotationSizeLimitB of apimachinery's
// validation, MaxSecretSize of k8s.io/api, and etcd's default request size, minus
// a tenth for the fields that the API server adds.
const (
	maxAnnotationBytes = 256 << 10
	maxPayloadBytes    = 1 << 20
	maxObjectBytes     = 1536 << 10 * 9 / 10
)

// forbidden returns a refusal if the source must never be cloned, else nil.
func forbidden(rule *spec.Rule, source *object.Full) *Decision {
	if rule.OwnSource {
		return refuse(OwnNamespace, "the source is in Headwater's own namespace, whose keys and certificates must not leave it; move the source to another namespace")
	}
	if source.Namespace == metav1.NamespaceSystem && !rule.Source.AllowSystemNamespace {
		return refuse(SystemNamespace, "the source is in kube-system; to clone it from there, set allowSystemNamespace: true in the rule's source")
	}
	if marks, marked := mark.Of(source); marked {
		return refuse(SourceIsClone, fmt.Sprintf("the source is itself a clone, of %s by rule %q; set the rule's source to that object, "+
			"or recreate this object without its headwater.dev labels and annotations", marks.Source, marks.Rule))
	}
	if why := forbiddenType(source.Content.Type); why != "" {
		return refuse(ForbiddenType, why)
	}
	return nil
}

// Forbidden reports whether the source must never be cloned.
func Forbidden(rule *spec.Rule, source *object.Full) bool { return forbidden(rule, source) != nil }

func forbiddenType(secretType string) string {
	switch secretType {
	case "kubernetes.io/service-account-token":
		return "a service account's token must not leave its namespace"
	case "bootstrap.kubernetes.io/token":
		return "a bootstrap token must not leave kube-system"
	case "helm.sh/release.v1":
		return "a Helm release's state belongs to its namespace alone"
	default:
		return ""
	}
}

// oversize returns a refusal if a clone of that name can exceed a size limit of the API
// server, else nil. Its meta lacks its place, which is as long as its namespace.
func oversize(meta metav1.ObjectMeta, name string, content object.Content) *Decision {
	annotations := sizeOf(meta.Annotations) + len(mark.Target) + validation.DNS1123LabelMaxLength + len("/") + len(name)
	payload := 0
	names := 0
	for _, data := range []map[string][]byte{content.Data, content.BinaryData} {
		for key, value := range data {
			names += len(key)
			payload += len(value)
		}
	}
	for _, limit := range []struct {
		what       string
		bytes, max int
	}{
		{"annotations", annotations, maxAnnotationBytes},
		{"data", payload, maxPayloadBytes},
		{"content", annotations + sizeOf(meta.Labels) + names + payload, maxObjectBytes},
	} {
		if limit.bytes > limit.max {
			return refuse(TooLarge, fmt.Sprintf("with the metadata that Headwater and the rule add, a clone could have %d bytes of %s; the API server "+
				"stores at most %d; clone fewer keys or copy less metadata", limit.bytes, limit.what, limit.max))
		}
	}
	return nil
}

func sizeOf(m map[string]string) int {
	size := 0
	for key, value := range m {
		size += len(key) + len(value)
	}
	return size
}

// Outranked returns the refusal for the rule loser: the rule winner comes before
// it in the file and clones to the same target.
func Outranked(loser, winner string) Decision {
	return *refuse(OtherRule, fmt.Sprintf(
		"rule %q wants to clone here, but rule %q comes first in the file and clones to the same name", loser, winner))
}
