package main

import (
	"context"
	"strings"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/harness"
)

// requests counts what Headwater asked of the API server.
type requests struct{ writes, reads int }

// since counts from mark on. Leases, which tell the leader, the one Event about
// the whole change, the status of a rule, which is written once in some seconds, reviews, which store nothing, watches, and questions which
// kinds there are, some of them in the first minute, are left out.
func (a *arena) since(ctx context.Context, mark cluster.Mark) (requests, error) {
	var found requests
	_, err := a.cluster.Since(ctx, mark, func(r cluster.Request) bool {
		if r.User != harness.ServiceAccount || r.Resource == "" || r.Resource == "leases" || r.Resource == "events" || r.Resource == "rulestatuses" || strings.HasSuffix(r.Resource, "reviews") {
			return false
		}
		switch {
		case r.IsWrite():
			found.writes++
		case r.Verb != "watch":
			found.reads++
		}
		return false
	})
	return found, err
}
