package protect

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// canary must never show up in anything that leaves the process.
const canary = "s3cr3t-canary"

const headwaterUser = "system:serviceaccount:headwater:headwater"

func identified() *Identity {
	identity := &Identity{}
	identity.Set(headwaterUser)
	return identity
}

func newRule(name string, kind object.Kind, namespace, source string, change ...func(*spec.Rule)) spec.Rule {
	rule := spec.Rule{Base: rules.Base{Name: name, Source: rules.Source{Kind: kind, Namespace: namespace, Name: source}}}
	for _, f := range change {
		f(&rule)
	}
	rule.Default()
	return rule
}

func blogRule(change ...func(*spec.Rule)) spec.Rule {
	return newRule("blogsecret", object.Secret, "platform", "blogsecret", change...)
}

func newSecret(change ...func(*object.Full)) *object.Full {
	secret := &object.Full{
		ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "blogsecret", UID: "uid-1", ResourceVersion: "1"},
		Kind:       object.Secret,
		Content:    object.Content{Type: "Opaque", Data: map[string][]byte{"password": []byte(canary)}},
	}
	for _, f := range change {
		f(secret)
	}
	return secret
}

func newNamespace(name string) *object.Full {
	return &object.Full{ObjectMeta: metav1.ObjectMeta{Name: name}, Kind: spec.KindNamespace}
}

func setData(value string) func(*object.Full) {
	return func(o *object.Full) { o.Content.Data = map[string][]byte{"password": []byte(value)} }
}

func newWorld(change ...func(*decide.World)) decide.World {
	world := decide.World{
		Headwater:   headwaterUser,
		Terminating: func(string) bool { return false },
		HasSource:   func(spec.Rule) bool { return true },
		Holders:     func(string) []string { return nil },
		Bound: func(user decide.User, role string) bool {
			return role == "cluster-admin" && slices.Contains(user.Groups, "system:masters")
		},
	}
	for _, f := range change {
		f(&world)
	}
	return world
}

func update(user string, before, after *object.Full) decide.Request {
	return decide.Request{
		Operation: spec.Update, Kind: object.Secret, Namespace: "platform", Name: "blogsecret",
		User: decide.User{Name: user}, Old: before, New: after,
	}
}

func remove(user string) decide.Request {
	return decide.Request{
		Operation: spec.Delete, Kind: object.Secret, Namespace: "platform", Name: "blogsecret",
		User: decide.User{Name: user}, Old: newSecret(),
	}
}

func removeNamespace(user, name string) decide.Request {
	return decide.Request{
		Operation: spec.Delete, Kind: spec.KindNamespace, Namespace: name, Name: name,
		User: decide.User{Name: user}, Old: newNamespace(name),
	}
}

// with returns request after change.
func with(request decide.Request, change func(*decide.Request)) decide.Request {
	change(&request)
	return request
}
