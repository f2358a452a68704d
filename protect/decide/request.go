package decide

import (
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// User is who sent a request.
type User struct {
	Name   string
	Groups []string
}

// Request is one write to a Secret or ConfigMap, or the deletion of a
// namespace.
type Request struct {
	// Operation is Create, Update, Delete, or one that is never protected.
	Operation spec.Operation
	// Kind is empty for a resource that is never protected.
	Kind      object.Kind
	Namespace string
	// Name is empty when a whole collection is deleted: the name is then known
	// from Old alone.
	Name   string
	User   User
	DryRun bool
	// Scope is what is asked about the request.
	Scope Scope
	// Old is the object as it is, New as it would become. They are nil when
	// they were absent or unreadable, and hold metadata only for a namespace.
	Old, New *object.Full
}

// World is what a decision depends on besides the request and the rules. All
// of it is answered from memory.
type World struct {
	// Headwater is the user name of Headwater itself; empty while unknown.
	Headwater string
	// SystemIdentities are user names treated like those of Kubernetes' own
	// controllers.
	SystemIdentities []string
	// Terminating reports whether a namespace is being deleted.
	Terminating func(namespace string) bool
	// HasSource reports whether a source of the rule is there, or may be there.
	HasSource func(rule spec.Rule) bool
	// Bound reports whether a ClusterRole is bound to user cluster-wide.
	Bound func(user User, clusterRole string) bool
	// Holders lists the principals that a ClusterRole is bound to cluster-wide.
	Holders func(clusterRole string) []string
}

// Ref returns the object that request is about, as far as the parts of request
// that name it agree.
func (r Request) Ref() (ref object.Ref, known bool) {
	subject := r.subject()
	if subject == nil || !r.names(subject) || subject.Namespace != r.Namespace {
		return object.Ref{}, false
	}
	return object.Ref{Kind: r.Kind, Namespace: r.Namespace, Name: subject.Name}, true
}

// subject is the object as it is, or as it is made; nil if it is unknown.
func (r Request) subject() *object.Full {
	if r.Operation == spec.Create {
		return r.New
	}
	return r.Old
}

// names reports whether the request may be about an object of full's name. To
// delete a collection, or to have a name generated, it names none.
func (r Request) names(full *object.Full) bool {
	return full.Name != "" && (r.Name == "" || r.Name == full.Name)
}

// fault says what is wrong with request itself, in words for a person.
func (r Request) fault() string {
	switch {
	case r.User.Name == "":
		return "the request names no user"
	case r.Operation == spec.Create:
		return r.faultOfCreated()
	case r.Old == nil:
		return "the object as it is was not sent, or cannot be read"
	case !r.names(r.Old):
		return "the request and the object as it is disagree about the name"
	case r.Kind != spec.KindNamespace && (r.Namespace == "" || r.Old.Namespace != r.Namespace):
		return "the request and the object as it is disagree about the namespace"
	case r.Operation == spec.Update:
		return r.faultOfNew()
	default:
		return ""
	}
}

func (r Request) faultOfCreated() string {
	switch {
	case r.New == nil:
		return "the new object was not sent, or cannot be read"
	case !r.names(r.New):
		return "the request and the new object disagree about the name"
	case r.Namespace == "" || r.New.Namespace != r.Namespace:
		return "the request and the new object disagree about the namespace"
	default:
		return ""
	}
}

func (r Request) faultOfNew() string {
	switch {
	case r.New == nil:
		return "the new object was not sent, or cannot be read"
	case r.New.Name != r.Old.Name || r.New.Namespace != r.Old.Namespace:
		return "the new object is not called as the old one"
	default:
		return ""
	}
}

// Object names what the request is about, as far as it is known.
func (r Request) Object() string {
	name := r.Name
	switch {
	case r.Old != nil:
		name = r.Old.Name
	case r.New != nil:
		name = r.New.Name
	}
	if r.Kind == spec.KindNamespace {
		return string(r.Kind) + " " + name
	}
	return string(r.Kind) + " " + r.Namespace + "/" + name
}

// operation is what request does to sources of the rule, empty if nothing. Where
// it cannot be made out which object it is about, it may be any.
func operation(r *spec.Rule, request *Request) spec.Operation {
	ref, known := request.Ref()
	if !known {
		return request.Operation
	}
	return operationOn(r, ref, request)
}

// operationOn is operation of a request that is about ref. To make an object a
// source is Create, whichever way.
func operationOn(r *spec.Rule, ref object.Ref, request *Request) spec.Operation {
	switch {
	case request.Old != nil && r.Selects(ref, request.Old.Labels):
		return request.Operation
	case request.New != nil && r.Selects(ref, request.New.Labels):
		return spec.Create
	default:
		return ""
	}
}
