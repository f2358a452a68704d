package inspect

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/kube/leader"
)

// clockSkew is how far the clock here may be ahead of the leader's.
const clockSkew = time.Minute

// Leadership says whether a replica leads.
type Leadership struct {
	Leads bool `json:"leads"`
	// Until is when the last leader renewed its lease, if none leads now.
	Until *time.Time `json:"until,omitempty"`
}

// lease reads the Lease. The note says why it could not.
func (i *Inspector) lease(ctx context.Context) (lease *coordinationv1.Lease, note string) {
	lease, err := i.clients.Typed.CoordinationV1().Leases(i.options.Namespace).Get(ctx, leader.LeaseName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, "there is no Lease " + i.options.Namespace + "/" + leader.LeaseName +
			": Headwater never ran here, or it runs with --leader-elect=false"
	case err != nil:
		return nil, "whether a replica leads is not shown: " + err.Error()
	}
	return lease, ""
}

// leadershipOf evaluates lease. A leader that stops releases it, so that it has no
// holder; the lease of a killed leader expires.
func leadershipOf(lease *coordinationv1.Lease, now time.Time) Leadership {
	spec := lease.Spec
	if spec.RenewTime == nil {
		return Leadership{}
	}
	until := spec.RenewTime.Time
	if spec.HolderIdentity != nil && *spec.HolderIdentity != "" && now.Sub(until) < leader.LeaseDuration+clockSkew {
		return Leadership{Leads: true}
	}
	return Leadership{Until: &until}
}

// noLeader reports whether it is known that no replica leads.
func (l *Leadership) noLeader() bool { return l != nil && !l.Leads }

// describe returns the message for status if no replica leads.
func (l *Leadership) describe() string {
	text := "No replica leads"
	if l.Until != nil {
		text += ", since " + ago(*l.Until)
	}
	return text + ": Headwater repairs nothing of the following."
}
