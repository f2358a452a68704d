package sync

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/sync/delivery"
	"github.com/headwater-k8s/headwater/sync/survey"
	"github.com/headwater-k8s/headwater/test/lab"
)

// requestConfigMaps are those that people write, each with the Role that lets them.
var requestConfigMaps = map[string]string{"headwater-approvals": "headwater-approve", "headwater-deliveries": "headwater-deliver"}

// hasRequestConfigMaps waits until the leader has created both.
func (f *fleet) hasRequestConfigMaps() {
	f.Helper()
	for name := range requestConfigMaps {
		f.Eventually(func(ctx context.Context) error {
			_, err := f.Admin.CoreV1().ConfigMaps(lab.Namespace).Get(ctx, name, metav1.GetOptions{})
			return err
		})
	}
}

func TestEachRoleWritesItsOwnRequestsAndNothingElse(t *testing.T) {
	f := newStaged(t, "roles", waitsForApproval, "")
	f.StartAlone(f.rules)
	f.hasRequestConfigMaps()
	for own, role := range requestConfigMaps {
		user := "roles-" + role
		require.NoError(t, lab.BindIn(t.Context(), f.Admin, lab.Namespace, role, user))
		configMaps := f.Client(user).CoreV1().ConfigMaps(lab.Namespace)
		for name := range requestConfigMaps {
			stored := lab.Read(t, f.Admin.CoreV1().ConfigMaps(lab.Namespace).Get, name)
			_, err := configMaps.Update(t.Context(), stored, metav1.UpdateOptions{})
			require.Equal(t, name != own, apierrors.IsForbidden(err), "%s writes %s: %v", role, name, err)
			require.True(t, apierrors.IsForbidden(configMaps.Delete(t.Context(), name, metav1.DeleteOptions{})), "%s deletes %s", role, name)
		}
		for _, forged := range []string{"headwater-removals", "a-revision"} {
			_, err := configMaps.Create(t.Context(), &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: forged, Labels: map[string]string{mark.Revision: "1", mark.Rule: f.prefix}},
			}, metav1.CreateOptions{})
			require.True(t, apierrors.IsForbidden(err), "%s creates %s: %v", role, forged, err)
		}
	}
	f.have("v", "v", "v", "v")
	f.edit("w")
	f.have("w", "w", "v", "v")
	require.NoError(t, lab.Bind(t.Context(), f.Admin, "headwater-view", "roles-headwater-approve"))
	require.NoError(t, lab.Bind(t.Context(), f.Admin, "headwater-view", "roles-headwater-deliver"))
	f.Reported(f.prefix)
	_, problem, exit := f.Command("roles-headwater-approve", "promote", f.prefix)
	require.Equal(t, 1, exit)
	require.Contains(t, problem, `configmaps "headwater-deliveries" is forbidden`)
	f.have("w", "w", "v", "v")
	f.steer("roles-headwater-deliver", "promote")
	f.have("w", "w", "w", "w")
	f.HasNote("roles-src", "shared", "DeliverySteered", `by user "roles-headwater-deliver" (name not verified)`)
}

func TestRequestConfigMapsThatSomebodyMakesImmutableAreRecreated(t *testing.T) {
	f := newStaged(t, "immutable-requests", waitsForApproval, "")
	user := f.approver()
	f.StartAlone(f.rules)
	f.hasRequestConfigMaps()
	for name := range requestConfigMaps {
		_, err := f.Admin.CoreV1().ConfigMaps(lab.Namespace).Patch(t.Context(), name, types.MergePatchType, []byte(`{"immutable":true,"data":{"x":"{}"}}`), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	f.Eventually(func(ctx context.Context) error {
		for name := range requestConfigMaps {
			found, err := f.Admin.CoreV1().ConfigMaps(lab.Namespace).Get(ctx, name, metav1.GetOptions{})
			if err = errors.Join(err, lab.ErrorIf(found.Immutable != nil, "%s is still immutable", name)); err != nil {
				return err
			}
		}
		return nil
	})
	f.edit("w")
	f.have("w", "w", "v", "v")
	f.steer(user, "promote")
	f.have("w", "w", "w", "w")
}

func TestTheLeaderRestoresTheRequestConfigMaps(t *testing.T) {
	f := newStaged(t, "kept-requests", waitsForApproval, "")
	user := f.approver()
	f.StartAlone(f.rules)
	f.hasRequestConfigMaps()
	for name := range requestConfigMaps {
		require.NoError(t, f.Admin.CoreV1().ConfigMaps(lab.Namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
	f.hasRequestConfigMaps()
	f.edit("w")
	f.have("w", "w", "v", "v")
	f.steer(user, "promote")
	f.have("w", "w", "w", "w")
}

// stored is an approval with a request about the delivery of f's source, as releases
// before the ConfigMap of requests stored it.
func (f *fleet) storedBefore(request string) {
	f.Helper()
	configMaps := f.Admin.CoreV1().ConfigMaps(lab.Namespace)
	now := time.Now().UTC().Format(time.RFC3339Nano)
	request = strings.Replace(request, "now", now, 1)
	text := fmt.Sprintf(`{"at":%q,"by":"olga","deliveries":{"Secret/%s-src/shared":%s}}`, now, f.prefix, request)
	f.Eventually(func(ctx context.Context) error {
		approvals, err := configMaps.Get(ctx, survey.ApprovalsName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		approvals.Data = map[string]string{f.prefix: text}
		_, err = configMaps.Update(ctx, approvals, metav1.UpdateOptions{})
		return err
	})
}

func TestARequestThatWaitsAtTheUpgradeIsDoneAndNoLaterOneOfThatKind(t *testing.T) {
	f := newStaged(t, "upgraded", waitsForApproval, "")
	h := f.StartAlone(f.rules)
	f.hasRequestConfigMaps()
	f.delivered(1, "v")
	f.edit("w")
	f.have("w", "w", "v", "v")
	h.Kill()
	f.storedBefore(`{"verb":"promote","revision":2,"by":"olga","at":"now"}`)
	require.NoError(t, f.Admin.CoreV1().ConfigMaps(lab.Namespace).Delete(t.Context(), survey.DeliveriesName, metav1.DeleteOptions{}))
	f.StartAlone(f.rules)
	f.have("w", "w", "w", "w")
	f.usedUp()

	f.edit("x")
	f.have("x", "x", "w", "w")
	f.storedBefore(`{"verb":"promote","revision":3,"by":"olga","at":"now"}`)
	f.Stays(func(context.Context) error {
		if is := f.Revision(f.prefix, "3").Annotations[mark.Verdict]; is != string(revisions.Delivering) {
			return fmt.Errorf("a user who may only approve made revision 3 %s", is)
		}
		return nil
	})
}

func TestRequestsAtTheSameTimeAreAllStored(t *testing.T) {
	e := newEnv(t)
	f := newFleet(e, "crowd", 1, "")
	configMaps := f.Admin.CoreV1().ConfigMaps(lab.Namespace)
	_, err := configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: survey.DeliveriesName}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	const people, rounds = 3, 20
	for round := range rounds {
		errs := make([]error, people)
		var asking sync.WaitGroup
		for i := range people {
			asking.Go(func() {
				errs[i] = survey.ChangeRequests(t.Context(), f.Admin, lab.Namespace, "crowd", func(stored survey.Requests) {
					stored[fmt.Sprintf("Secret/crowd-src/%d", i)] = delivery.Request{Verb: delivery.Pause, Revision: round, At: time.Unix(1_800_000_000, 0)}
				})
			})
		}
		asking.Wait()
		require.NoError(t, errors.Join(errs...))
		all := 0
		require.NoError(t, survey.ChangeRequests(t.Context(), f.Admin, lab.Namespace, "crowd", func(stored survey.Requests) {
			all = len(stored)
			clear(stored)
		}))
		require.Equal(t, people, all, "round %d", round)
	}
}

func TestRecordsThatSomebodyElseWroteAboutRulesAreRemoved(t *testing.T) {
	f := newFleet(newEnv(t), "forged", 2, "")
	f.StartAlone(f.rules)
	f.hasRequestConfigMaps()
	f.allHave("v")
	const hold = `{"heldSince":"2026-11-25T10:00:00Z","of":2}`
	forged := map[string]map[string]string{
		survey.RemovalsName:   {"forged": hold, "no-such-rule": hold},
		survey.ApprovalsName:  {"no-such-rule": `{"at":"2026-11-25T10:00:00Z"}`},
		survey.DeliveriesName: {"no-such-rule": `{"Secret/a/b":{"verb":"promote","revision":1,"at":"2026-11-25T10:00:00Z"}}`},
	}
	configMaps := f.Admin.CoreV1().ConfigMaps(lab.Namespace)
	for name, data := range forged {
		f.Eventually(func(ctx context.Context) error {
			found, err := configMaps.Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				_, err = configMaps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}, metav1.CreateOptions{})
				return err
			}
			if err != nil {
				return err
			}
			found.Data = data
			_, err = configMaps.Update(ctx, found, metav1.UpdateOptions{})
			return err
		})
	}
	for name := range forged {
		f.Eventually(func(ctx context.Context) error {
			found, err := configMaps.Get(ctx, name, metav1.GetOptions{})
			return errors.Join(err, lab.ErrorIf(len(found.Data) > 0, "%s still has %v", name, found.Data))
		})
	}
}
