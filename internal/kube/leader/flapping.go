package leader

import (
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/headwater-k8s/headwater/internal/mark"
)

// The leader flaps if the Lease was acquired more than oftenest times within FlapsWithin. A
// new version, which replaces every replica, and a node that ends make fewer.
const (
	FlapsWithin = 30 * time.Minute
	oftenest    = 3
	// mostAcquired bounds what the annotation says.
	mostAcquired = 20
)

// AcquiredAnnotation is the annotation of the Lease with when it was acquired in the
// FlapsWithin before its last acquisition, that one included: times of RFC 3339 with commas
// between, the oldest first.
const AcquiredAnnotation = mark.Domain + "acquired"

// noteAcquired notes an acquisition on the Lease that is about to be written, and returns how
// many there were in the FlapsWithin before it, itself included. It is 0 if nobody holds the
// Lease. A renewal is none.
func noteAcquired(lease *coordinationv1.Lease) int {
	if ptr.Deref(lease.Spec.HolderIdentity, "") == "" || lease.Spec.AcquireTime == nil {
		return 0
	}
	last := lease.Spec.AcquireTime.UTC().Truncate(time.Microsecond)
	var times []string
	for before := range strings.SplitSeq(lease.Annotations[AcquiredAnnotation], ",") {
		if at, err := time.Parse(time.RFC3339Nano, before); err == nil && at.Before(last) && last.Sub(at) < FlapsWithin {
			times = append(times, before)
		}
	}
	times = append(times[max(0, len(times)-mostAcquired+1):], last.Format(time.RFC3339Nano))
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, AcquiredAnnotation, strings.Join(times, ","))
	return len(times)
}

// Ref is the Lease, as the object of an Event.
func Ref(namespace string) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: namespace, Name: LeaseName}
}

// Flapping returns how many times the Lease was acquired in the FlapsWithin before this
// replica acquired it, that time included; 0 if that is not often.
func (l *Leader) Flapping() int {
	if n := int(l.acquired.Load()); n > oftenest {
		return n
	}
	return 0
}
