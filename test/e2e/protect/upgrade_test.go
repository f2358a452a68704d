package protect

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/protect/spec"
	"github.com/headwater-k8s/headwater/test/lab"
)

// An earlier version registered the webhook by paths without a segment. While it leads,
// a new replica answers at these; then it registers its own.
func TestTheUpgradeFromPathsWithoutASegment(t *testing.T) {
	e := newEnv(t)
	e.Sections = byTheWebhookAlone
	r, owner, mallory := e.behindTheService("upgrade")
	before := r.launch()
	r.ready()
	e.protectedByWebhook(mallory, "upgrade-src", "shared")
	before.Kill() // its lease and its webhook stay
	r.service.Remove(before)
	segment := e.asOfAnEarlierVersion()

	fresh := r.launch()
	r.ready()
	e.protected(mallory, "upgrade-src", "shared")
	load := e.newTraffic("upgrade-src", "shared", "other", owner, mallory)
	e.Holds(lab.Settle, func(ctx context.Context) error { return e.pathsHave(ctx, "") })
	require.NoError(t, e.Admin.CoordinationV1().Leases(lab.Namespace).Delete(t.Context(), "headwater", metav1.DeleteOptions{}))
	e.Eventually(func(ctx context.Context) error { return e.pathsHave(ctx, segment) })
	e.proven(fresh, "upgrade")
	load.ends(e)
}

// asOfAnEarlierVersion takes the segments off the paths, and keeps the lease for a replica
// that does not exist. It returns the segment.
func (e *env) asOfAnEarlierVersion() (segment string) {
	e.Helper()
	leases := e.Admin.CoordinationV1().Leases(lab.Namespace)
	holder, lasts, now := "earlier", int32(3600), metav1.NewMicroTime(time.Now())
	e.Eventually(func(ctx context.Context) error { // the last write of who was killed may be on its way
		lease, err := leases.Get(ctx, "headwater", metav1.GetOptions{})
		if err != nil {
			return err
		}
		lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &lasts, AcquireTime: &now, RenewTime: &now}
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
		return err
	})
	webhooks := e.Admin.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	found := lab.Read(e, webhooks.Get, spec.ConfigurationName)
	for _, webhook := range found.Webhooks {
		path := webhook.ClientConfig.Service.Path
		rest := strings.TrimPrefix(*path, spec.ReviewPath+"/")
		segment, rest, _ = strings.Cut(rest, "/")
		*path = spec.ReviewPath + "/" + rest
	}
	_, err := webhooks.Update(e.Context(), found, metav1.UpdateOptions{})
	require.NoError(e, err)
	require.True(e, spec.IsSegment(segment))
	return segment
}

// pathsHave is nil if all paths of the webhook have this segment, or none if it is empty.
func (e *env) pathsHave(ctx context.Context, segment string) error {
	found, err := e.Admin.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, spec.ConfigurationName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, webhook := range found.Webhooks {
		path := *webhook.ClientConfig.Service.Path
		first, _, _ := strings.Cut(strings.TrimPrefix(path, spec.ReviewPath+"/"), "/")
		if segment == "" && spec.IsSegment(first) || segment != "" && first != segment {
			return errors.New("another path: " + path)
		}
	}
	return nil
}
