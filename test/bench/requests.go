package main

import (
	"context"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

// requests counts what Headwater asked of the API server.
type requests struct{ writes, reads int }

// since counts from mark on what lab.Works does. The status of a rule, which is written once in
// some seconds, and watches are left out.
func (a *arena) since(ctx context.Context, mark cluster.Mark) (requests, error) {
	var found requests
	_, err := a.Cluster.Since(ctx, mark, func(r cluster.Request) bool {
		switch {
		case !lab.Works(r) || r.Resource == "rulestatuses":
		case r.IsWrite():
			found.writes++
		case r.Verb != "watch":
			found.reads++
		}
		return false
	})
	return found, err
}
