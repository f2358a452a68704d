package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/headwater-k8s/headwater/internal/kube/leader"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

// isWork reports whether r is a write that only the leader may make: to objects
// of others, and not an Event.
func isWork(r cluster.Request) bool {
	return r.User == lab.ServiceAccount && r.IsWrite() && r.Namespace != lab.Namespace && r.Namespace != "" &&
		!slices.Contains([]string{"events", "subjectaccessreviews", "selfsubjectaccessreviews"}, r.Resource)
}

// isLease reports whether r made its sender the leader, or kept it so.
func isLease(r cluster.Request) bool {
	return r.Resource == "leases" && r.Name == leader.LeaseName && r.Namespace == lab.Namespace && r.IsWrite() && r.Code < 300
}

// isTheft reports whether r is a successful write to the protected source by a user
// that the rule does not allow.
func isTheft(r cluster.Request) bool {
	return r.IsWrite() && r.Code < 300 && r.Namespace == sourceNamespace && r.Name == shared &&
		slices.Contains([]string{mallory, stranger}, r.User) && !strings.Contains(r.URI, "dryRun")
}

// judgeHistory reads from the audit log what must not have been at any moment.
func (s *storm) judgeHistory(ctx context.Context) error {
	requests, err := s.cluster.Requests(ctx, func(r cluster.Request) bool { return isWork(r) || isLease(r) || isTheft(r) })
	if err != nil {
		return err
	}
	for _, r := range requests {
		if isTheft(r) {
			s.report.violate("%s changed the protected source at %s", r.User, r.Time)
		}
		if isWork(r) {
			s.report.writes++
		}
	}
	names := map[string]string{}
	for _, one := range s.fleet.replicas {
		names[one.Address] = one.Name
	}
	s.report.staged = len(s.world.stages.passed)
	changes, wrong := judgeLeaders(requests, names)
	s.report.leaders = changes
	for _, each := range wrong {
		s.report.violate("%s", each)
	}
	return nil
}

// judgeLeaders says which writes arrived after another replica had taken the
// lease, and how often it was taken.
func judgeLeaders(requests []cluster.Request, names map[string]string) (changes int, wrong []string) {
	requests = slices.SortedStableFunc(slices.Values(requests), func(a, b cluster.Request) int { return a.Time.Compare(b.Time) })
	leader := ""
	for _, r := range requests {
		switch {
		case isLease(r) && r.Source != leader:
			leader = r.Source
			changes++
		case isWork(r) && r.Source != leader:
			wrong = append(wrong, fmt.Sprintf("two leaders: %s of %s %s/%s by %s at %s (answered %d), when %s led",
				r.Verb, r.Resource, r.Namespace, r.Name, names[r.Source], r.Time.Format("15:04:05.000"), r.Code, names[leader]))
		}
	}
	return changes, wrong
}
