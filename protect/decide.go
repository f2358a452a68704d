package protect

import (
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
)

// KindNamespace is the kind of a Request about a namespace itself.
const KindNamespace object.Kind = "Namespace"

// User is who sent a request.
type User struct {
	Name   string
	Groups []string
}

// Request is one write to a Secret or ConfigMap, or the deletion of a
// namespace.
type Request struct {
	// Operation is Create, Update, Delete, or one that is never protected.
	Operation Operation
	// Kind is empty for a resource that is never protected.
	Kind      object.Kind
	Namespace string
	// Name is empty when a whole collection is deleted: the name is then known
	// from Old alone.
	Name   string
	User   User
	DryRun bool
	// Question is what is asked about the request.
	Question Question
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
	// Holds reports whether a source of the rule is there, or may be there.
	Holds func(rule Rule) bool
	// Bound reports whether a ClusterRole is bound to user cluster-wide.
	Bound func(user User, clusterRole string) bool
	// Holders lists the principals that a ClusterRole is bound to cluster-wide.
	Holders func(clusterRole string) []string
}

// Decide says whether request may pass. It refuses whatever it cannot make out
// and that may touch a protected object.
func Decide(request Request, set *rules.Set[Rule], world World) Verdict {
	verdict := Verdict{Allowed: true, Reason: ReasonNotProtected}
	touched := request.Question.of(touchedBy(request, set))
	for _, rule := range touched.sources {
		verdict = stricter(verdict, judge(request, operation(&rule, &request), rule, world))
	}
	for _, rule := range touched.namespaces {
		verdict = stricter(verdict, guard(request, rule, world))
	}
	for _, rule := range touched.clones {
		verdict = stricter(verdict, judgeClone(request, rule, world))
	}
	if touched.marks {
		verdict = stricter(verdict, judgeMarks(request, set, world))
	}
	return verdict
}

func touchedBy(request Request, set *rules.Set[Rule]) concern {
	switch {
	case request.Kind == KindNamespace:
		return concern{namespaces: guarding(request, set)}
	case request.Operation == Create:
		return concern{sources: protecting(request, set), marks: true}
	default:
		return concern{sources: protecting(request, set), clones: denying(request, set), marks: true}
	}
}

// judge is the verdict of one rule about a request that may do operation to what
// it protects. An update that cannot be made out may make a source as well.
func judge(request Request, operation Operation, rule Rule, world World) Verdict {
	fault := request.fault()
	switch {
	case !rule.covers(operation) && (fault == "" || request.Operation != Update):
		return Verdict{Allowed: true, Reason: ReasonOperationNotProtected, Rule: rule.Name}
	case fault != "":
		return refuse(rule, ReasonUnreadable, unreadableMessage(rule, fault))
	}
	if reason, by := mayChange(request, rule, world); reason != "" {
		return allow(rule, reason, by)
	}
	changed := edits(rule, request, operation)
	switch {
	case request.Operation != Update:
	case len(changed) == 0:
		return allow(rule, ReasonNoProtectedChange, "")
	case releasesOwners(request, changed, world):
		return allow(rule, ReasonGarbageCollection, request.User.Name)
	}
	verdict := refuse(rule, ReasonProtected, protectedMessage(rule, operation, request.object()))
	verdict.Changed = changed
	return verdict
}

// protecting returns the rules that protect what request is about, by what it
// is before the request, so that a label that is taken off protects to the last,
// and by what it becomes. A request that cannot be made out is held to be about
// any object it may be about.
func protecting(request Request, set *rules.Set[Rule]) []Rule {
	ref, known := request.ref()
	unsure := !known || request.Operation == Update && request.New == nil
	var found []Rule
	all := set.All()
	for i := range all { // without a copy of each
		rule := &all[i]
		if unsure && suspects(&request, rule) || !unsure && operationOn(rule, ref, &request) != "" {
			found = append(found, *rule)
		}
	}
	return found
}

// suspects reports whether request may be about a source of rule, as far as it
// says where that is.
func suspects(request *Request, rule *Rule) bool {
	subject := request.subject()
	here := request.Namespace == "" || rule.Source.Namespace == request.Namespace ||
		subject != nil && rule.Source.Namespace == subject.Namespace
	return rule.Source.Kind == request.Kind && here
}

// guarding returns the rules that guard the namespace that request is about, or
// may be about.
func guarding(request Request, set *rules.Set[Rule]) []Rule {
	if request.Operation != Delete {
		return nil
	}
	old := request.Old
	unknown := old == nil || old.Name == "" || request.Name != "" && request.Name != old.Name
	var found []Rule
	for _, rule := range set.All() {
		if rule.guards() && (unknown || rule.Source.Namespace == old.Name) {
			found = append(found, rule)
		}
	}
	return found
}

func guard(request Request, rule Rule, world World) Verdict {
	if fault := request.fault(); fault != "" {
		return refuse(rule, ReasonUnreadable, unreadableMessage(rule, fault))
	}
	if request.Old.DeletionTimestamp != nil {
		return allow(rule, ReasonNamespaceTerminating, "")
	}
	if !world.Holds(rule) {
		return allow(rule, ReasonSourceAbsent, "")
	}
	if reason, by := mayChange(request, rule, world); reason != "" {
		return allow(rule, reason, by)
	}
	return refuse(rule, ReasonNamespaceGuarded, guardedMessage(rule))
}

// mayChange returns why the requester may do to the rule's source whatever
// they like, and by which grant; an empty reason means that they may not.
func mayChange(request Request, rule Rule, world World) (reason Reason, by string) {
	if isHeadwater(request.User, world) {
		return ReasonByHeadwater, ""
	}
	if request.Kind != KindNamespace && request.Operation == Delete &&
		isSystem(request.User.Name, world) && world.Terminating(request.Namespace) {
		return ReasonNamespaceTerminating, request.User.Name
	}
	if by := grant(request.User, rule.Allow, world.Bound); by != "" {
		return ReasonExempt, by
	}
	return "", ""
}

// ref returns the object that request is about, as far as the parts of request
// that name it agree.
func (r Request) ref() (ref object.Ref, known bool) {
	subject := r.subject()
	if subject == nil || !r.names(subject) || subject.Namespace != r.Namespace {
		return object.Ref{}, false
	}
	return object.Ref{Kind: r.Kind, Namespace: r.Namespace, Name: subject.Name}, true
}

// subject is the object as it is, or as it is made; nil if it is unknown.
func (r Request) subject() *object.Full {
	if r.Operation == Create {
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
	case r.Operation == Create:
		return r.faultOfCreated()
	case r.Old == nil:
		return "the object as it is was not sent, or cannot be read"
	case !r.names(r.Old):
		return "the request and the object as it is disagree about the name"
	case r.Kind != KindNamespace && (r.Namespace == "" || r.Old.Namespace != r.Namespace):
		return "the request and the object as it is disagree about the namespace"
	case r.Operation == Update:
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
