package inspect

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/leader"
)

// Leadership says whether a replica leads. Its Lease is the heartbeat of all that Headwater
// reports.
type Leadership struct {
	Leads bool `json:"leads"`
	// Doubt is why the leader says that what it reports may be old; empty if it is not.
	Doubt string `json:"doubt,omitempty"`
	// Until is when the last leader renewed its lease, if none leads now. It is nil if
	// there is no lease.
	Until *time.Time `json:"until,omitempty"`
}

// ReadLeadership reads the Lease in own. It fails if that cannot be read.
func ReadLeadership(ctx context.Context, clients *kube.Clients, own string) (*Leadership, error) {
	lease, err := clients.Typed.CoordinationV1().Leases(own).Get(ctx, leader.LeaseName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return &Leadership{}, nil
	case err != nil:
		return nil, fmt.Errorf("whether a replica leads is not shown: %w", err)
	}
	found := LeadershipOf(lease, clients.AnsweredAt())
	return &found, nil
}

// Confirmation says whether anything confirms what the service recorded.
type Confirmation struct {
	// Leader is nil if it is not known whether a replica leads; Unconfirmed is why.
	Leader      *Leadership `json:"leader,omitempty"`
	Unconfirmed string      `json:"unconfirmed,omitempty"`
}

// ReadConfirmation reads the Lease in own.
func ReadConfirmation(ctx context.Context, clients *kube.Clients, own string) (c Confirmation) {
	var err error
	if c.Leader, err = ReadLeadership(ctx, clients, own); err != nil {
		c.Unconfirmed = err.Error()
	}
	return c
}

// Attention lists why nothing does; empty if it is confirmed.
func (c Confirmation) Attention() (all []string) {
	if c.Leader.IsAbsent() {
		all = append(all, "no replica leads")
	}
	if c.Leader != nil && c.Leader.Doubt != "" {
		all = append(all, c.Leader.Doubt)
	}
	if c.Unconfirmed != "" {
		all = append(all, c.Unconfirmed)
	}
	return all
}

// Table writes the same in sentences.
func (c Confirmation) Table(out io.Writer) {
	if c.Leader.IsAbsent() {
		_, _ = fmt.Fprintln(out, c.Leader.Describe()+"\n")
	}
	if c.Leader != nil && c.Leader.Doubt != "" {
		_, _ = fmt.Fprintln(out, "What follows may be old: "+c.Leader.Doubt+"\n")
	}
	if c.Unconfirmed != "" {
		_, _ = fmt.Fprintln(out, c.Unconfirmed+"\n")
	}
}

// LeadershipOf evaluates lease, by the API server's time. A leader that stops releases it,
// so that it has no holder. One that was killed, or does not go on, does not renew it.
func LeadershipOf(lease *coordinationv1.Lease, now time.Time) Leadership {
	spec, until := lease.Spec, renewed(lease)
	switch since := now.Sub(until); {
	case until.IsZero(), since < -durationOf(spec):
		return Leadership{}
	case spec.HolderIdentity != nil && *spec.HolderIdentity != "" && since <= 2*durationOf(spec):
		return Leadership{Leads: true, Doubt: lease.Annotations[leader.DoubtAnnotation]}
	}
	return Leadership{Until: &until}
}

// renewed returns when lease was renewed, as the API server recorded it. What the leader
// wrote counts only if somebody removed that record: its clock may be wrong.
func renewed(lease *coordinationv1.Lease) (at time.Time) {
	for _, entry := range lease.ManagedFields {
		if entry.Time != nil && entry.Time.After(at) && entry.FieldsV1 != nil && strings.Contains(entry.FieldsV1.GetRawString(), `"f:renewTime"`) {
			at = entry.Time.Time
		}
	}
	if at.IsZero() && lease.Spec.RenewTime != nil {
		at = lease.Spec.RenewTime.Time
	}
	return at
}

func durationOf(lease coordinationv1.LeaseSpec) time.Duration {
	if lease.LeaseDurationSeconds == nil {
		return leader.DefaultLeaseDuration
	}
	return time.Duration(*lease.LeaseDurationSeconds) * time.Second
}

// IsAbsent reports whether it is known that no replica leads.
func (l *Leadership) IsAbsent() bool { return l != nil && !l.Leads }

// Describe returns the message for status if no replica leads.
func (l *Leadership) Describe() string {
	if l.Until == nil {
		return "No replica is known to lead: no Lease " + leader.LeaseName + " says when it was renewed, so Headwater never ran here, or runs with --leader-elect=false. Nothing confirms what follows."
	}
	return "No replica leads, since " + ago(*l.Until) + ": what follows is not confirmed since " + l.Until.UTC().Format(time.RFC3339) + ", and Headwater repairs nothing of it."
}
