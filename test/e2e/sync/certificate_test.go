package sync

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
	"github.com/headwater-k8s/headwater/test/lab"
)

// soon is how far ahead the certificates of these tests become valid, or expire.
const soon = 40 * time.Second

func TestACertificateIsDeliveredAtTheTimeFromWhichItIsValid(t *testing.T) {
	e := newEnv(t)
	plain, kept, staged := newFleet(e, "ahead", 2, ""), newFleet(e, "aheadkept", 2, "history: 3"), newStagedIn(e, "aheadstaged", "", "")
	fleets := []*fleet{plain, kept, staged}
	hourAgo, hourAhead := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	first, rules := lab.Certificate(t, hourAgo, hourAhead), ""
	for _, f := range fleets {
		f.edit(first)
		rules += f.rules + "  validate: [{key: k, is: Certificate, minValidity: 30m}]\n"
	}
	e.StartAlone(rules)
	for _, f := range fleets {
		f.allHave(first)
	}
	for _, f := range fleets[1:] { // a revision is recorded beside the cloning
		f.verdict(1, revisions.Delivered)
	}

	from := time.Now().Add(soon).Truncate(time.Second)
	next, said := lab.Certificate(t, from, from.Add(30*time.Minute)), from.UTC().Format(time.RFC3339) // just enough, at first
	for _, f := range fleets {
		f.edit(next)
	}
	require.Contains(t, e.HasEvent("ahead-src", "shared", "Invalid"), said)
	beforehand := func(condition func(context.Context) error) { // for as long as it is not valid
		t.Helper()
		e.Eventually(func(ctx context.Context) error {
			err := condition(ctx)
			if err != nil && !time.Now().Before(from) {
				e.Inconclusive("it was valid before this was so: %v", err)
			}
			return err
		})
	}
	beforehand(func(ctx context.Context) error {
		status, err := lab.RuleStatus(ctx, plain.RuleStatuses(), "ahead")
		if err != nil {
			return err
		}
		problems := fmt.Sprint(status.Status.Problems)
		return lab.ErrorIf(!strings.Contains(problems, said), "the RuleStatus says %s", problems)
	})
	for _, f := range fleets[1:] {
		beforehand(func(context.Context) error {
			revision := f.Revision(f.prefix, "2")
			if revision == nil {
				return errors.New("there is no revision yet")
			}
			reason := revision.Annotations[mark.Reason]
			return lab.ErrorIf(!strings.Contains(reason, said), "the revision says %s", reason)
		})
	}
	for _, f := range fleets[1:] {
		require.Contains(t, e.HasEvent(f.prefix+"-src", "shared", "DeliveryHeld"), said)
		user := f.approver()
		f.Eventually(func(context.Context) error { // its RuleStatus may come later, if the kind was just installed
			_, problem, exit := f.Command(user, "retry", f.prefix)
			return lab.ErrorIf(time.Now().Before(from) && (exit == 0 || !strings.Contains(problem, said)), "%s", problem)
		})
	}
	for _, f := range fleets {
		f.allHave(next)
		for i := range f.n {
			for _, entry := range f.Get(f.name(i), "shared").ManagedFields {
				require.False(t, entry.Time.Time.Before(from), "%s had it before it was valid", f.name(i))
			}
		}
	}
	for _, f := range fleets[1:] {
		f.verdict(2, revisions.Delivered)
	}
}

func TestWhatExpiresAfterItWasWrittenIsRepairedAndSaid(t *testing.T) {
	f := newFleet(newEnv(t), "expiring", 2, "")
	value := lab.Certificate(t, time.Now().Add(-time.Hour), time.Now().Add(soon))
	f.edit(value)
	h := f.StartAlone(f.rules + "  validate: [{key: k, is: Certificate}]\n")
	f.allHave(value)
	says := func(reason, message string) {
		t.Helper()
		f.Eventually(func(ctx context.Context) error {
			said, err := lab.RuleStatus(ctx, f.RuleStatuses(), "expiring")
			if err != nil {
				return err
			}
			synced := said.Status.Condition(rulestatus.Synced)
			return lab.ErrorIf(synced == nil || synced.Status != metav1.ConditionTrue || synced.Reason != reason || !strings.Contains(synced.Message, message), "it says %v", synced)
		})
	}
	says("Expired", `Secret/expiring-src/shared: key "k" holds a certificate that has expired`)
	f.Namespace("expiring-new", "fleet=expiring")
	f.HasClone("expiring-new", "shared", map[string]string{"k": value})
	require.NoError(t, f.Admin.CoreV1().Secrets(f.name(0)).Delete(t.Context(), "shared", metav1.DeleteOptions{}))
	f.allHave(value)

	h.Stop()
	f.StartAlone(f.rules + "  validate: [{key: k, is: Certificate}]\n")
	says("Expired", "has expired")

	// What had expired when it was written is not delivered.
	f.edit(lab.Certificate(t, time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)))
	require.Contains(t, f.HasEvent("expiring-src", "shared", "Invalid"), "has expired")
	f.Stays(f.keep(2, value))
}
