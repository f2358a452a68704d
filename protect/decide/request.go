package decide

import (
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// User is the authenticated sender of a request.
type User struct {
	Name   string
	Groups []string
	// UID is empty for a request that impersonates a service account, unless the
	// sender may impersonate UIDs too.
	UID string
}

// Request is a write to a Secret or ConfigMap, or the deletion of a namespace.
type Request struct {
	// Operation is Create, Update or Delete. It is empty for any other
	// operation, which no rule protects against.
	Operation spec.Operation
	// Kind is empty for a resource that no rule protects.
	Kind      object.Kind
	Namespace string
	// Name is empty for each object of a deletecollection request. Old then has
	// the name.
	Name   string
	User   User
	DryRun bool
	// Scope limits the decision to what the calling webhook is registered for.
	Scope Scope
	// Old is the current object, New the object after the request. Each is nil
	// if it is missing or unreadable. For a namespace they contain only
	// metadata. They have neither managed fields nor a time of creation.
	Old, New *object.Full
}

// World is the cluster state that a decision needs. All functions answer from
// memory.
type World struct {
	// Headwater is Headwater's own user name. It is empty until it is known.
	Headwater string
	// SystemIdentities are user names that get the same exemptions as
	// Kubernetes' own controllers.
	SystemIdentities []string
	// Terminating reports whether a namespace is being deleted.
	Terminating func(namespace string) bool
	// HasSource reports whether a source of rule exists. It also returns true
	// while that is unknown.
	HasSource func(rule spec.Rule) bool
	// Bound reports whether a ClusterRoleBinding binds clusterRole to user.
	Bound func(user User, clusterRole string) bool
	// Now returns the time, for the validity of certificates.
	Now func() time.Time
	// Holders lists the principals that ClusterRoleBindings bind clusterRole
	// to.
	Holders func(clusterRole string) []string
}

// Ref returns the object of the request. known is false if the object is
// unreadable, or if the request and the object disagree about its name or
// namespace.
func (r Request) Ref() (ref object.Ref, known bool) {
	subject := r.subject()
	if subject == nil || !r.names(subject) || subject.Namespace != r.Namespace {
		return object.Ref{}, false
	}
	return object.Ref{Kind: r.Kind, Namespace: r.Namespace, Name: subject.Name}, true
}

// subject returns the current object, or the new one for Create. It is nil if
// unreadable.
func (r Request) subject() *object.Full {
	if r.Operation == spec.Create {
		return r.New
	}
	return r.Old
}

// names reports whether the request can be about an object with full's name. A
// request without a name (deletecollection, generateName) matches any name.
func (r Request) names(full *object.Full) bool {
	return full.Name != "" && (r.Name == "" || r.Name == full.Name)
}

// fault describes what is wrong with the request itself. It is empty if nothing
// is.
func (r Request) fault() string {
	switch {
	case r.User.Name == "":
		return "the request names no user"
	case r.Operation == spec.Create:
		return r.faultOfCreated()
	case r.Old == nil:
		return "the current object is missing or unreadable"
	case !r.names(r.Old):
		return "the request and the current object have different names"
	case r.Kind != spec.KindNamespace && (r.Namespace == "" || r.Old.Namespace != r.Namespace):
		return "the request and the current object have different namespaces"
	case r.Operation == spec.Update:
		return r.faultOfNew()
	default:
		return ""
	}
}

func (r Request) faultOfCreated() string {
	switch {
	case r.New == nil:
		return "the new object is missing or unreadable"
	case !r.names(r.New):
		return "the request and the new object have different names"
	case r.Namespace == "" || r.New.Namespace != r.Namespace:
		return "the request and the new object have different namespaces"
	default:
		return ""
	}
}

func (r Request) faultOfNew() string {
	switch {
	case r.New == nil:
		return "the new object is missing or unreadable"
	case r.New.Name != r.Old.Name || r.New.Namespace != r.Old.Namespace:
		return "the current and the new object have different names or namespaces"
	default:
		return ""
	}
}

// Object describes the object of the request, for messages. The name can be
// missing.
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

// operation returns what request does to a source of r, or "" if nothing. If
// the object is unknown, it returns the operation of the request.
func operation(r *spec.Rule, request *Request) spec.Operation {
	ref, known := request.Ref()
	if !known {
		return request.Operation
	}
	return operationOn(r, ref, request)
}

// operationOn returns what request, which is about ref, does to a source of r.
// Any request that makes an object a source counts as Create.
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
