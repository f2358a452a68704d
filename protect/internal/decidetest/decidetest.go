// Package decidetest holds what tests beyond package decide ask it about.
package decidetest

import (
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/internal/protecttest"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// NewWorld returns a World in which only cluster-admins hold a role, after change.
func NewWorld(change ...func(*decide.World)) decide.World {
	world := decide.World{
		Headwater:   protecttest.HeadwaterUser,
		Terminating: func(string) bool { return false },
		HasSource:   func(spec.Rule) bool { return true },
		Holders:     func(string) []string { return nil },
		Now:         time.Now,
		Bound: func(user decide.User, role string) bool {
			return role == "cluster-admin" && slices.Contains(user.Groups, "system:masters")
		},
	}
	for _, f := range change {
		f(&world)
	}
	return world
}

// ByToken returns a user who has a UID, as the user of a service account's token has.
func ByToken(name string) decide.User { return decide.User{Name: name, UID: "uid"} }

// Update is an update of the source of protecttest.BlogRule.
func Update(user string, before, after *object.Full) decide.Request {
	return decide.Request{
		Operation: spec.Update, Kind: object.Secret, Namespace: "platform", Name: "blogsecret",
		User: ByToken(user), Old: before, New: after,
	}
}

// Remove is a deletion of it.
func Remove(user string) decide.Request {
	return decide.Request{
		Operation: spec.Delete, Kind: object.Secret, Namespace: "platform", Name: "blogsecret",
		User: ByToken(user), Old: protecttest.NewSecret(),
	}
}

// RemoveNamespace is a deletion of a Namespace.
func RemoveNamespace(user, name string) decide.Request {
	return decide.Request{
		Operation: spec.Delete, Kind: spec.KindNamespace, Namespace: name, Name: name,
		User: ByToken(user), Old: protecttest.NewNamespace(name),
	}
}

// With returns request after change.
func With(request decide.Request, change func(*decide.Request)) decide.Request {
	change(&request)
	return request
}
