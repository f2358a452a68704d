package ir

import (
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
	reloadspec "github.com/headwater-k8s/headwater/reload/spec"
	syncspec "github.com/headwater-k8s/headwater/sync/spec"
)

// Join adds the operations of another policy that is the same otherwise.
func (p *ProtectPart) Join(other ProtectPart) bool {
	if p.Mode != other.Mode || p.Message != other.Message || p.Clones != other.Clones || !reflect.DeepEqual(p.Allow, other.Allow) {
		return false
	}
	p.Operations = slices.DeleteFunc(protectspec.Operations(), func(operation protectspec.Operation) bool {
		return !slices.Contains(p.Operations, operation) && !slices.Contains(other.Operations, operation)
	})
	return true
}

// Tool is where something comes from.
type Tool string

// The tools that are understood.
const (
	Kyverno    Tool = "Kyverno"
	Reflector  Tool = "Reflector"
	Replicator Tool = "kubernetes-replicator"
)

// Finding is one thing that a tool was told to do: one of Sync, Protect, Reload
// and Section.
type Finding struct {
	Tool Tool
	// From names the policy or object that says so.
	From   string
	Source rules.Source
	// Everywhere says that it is about objects of the source's name in every
	// namespace, of which the source's is not known.
	Everywhere bool

	Sync    *SyncPart
	Protect *ProtectPart
	Reload  *ReloadPart
	// Section has neither Source nor Everywhere.
	Section *SectionPart

	// Notes say what is not as it was.
	Notes []Reason
	// Off is why it must not be in force as it stands; none: it may.
	Off Reason
}

// Where selects target namespaces. No names are all.
type Where struct {
	Names    []string
	Exclude  []string
	Selector *metav1.LabelSelector
}

// Nowhere is a place to fill in.
func Nowhere() Where { return Where{Names: []string{"say-where-to"}} }

// Wide reports whether it is not limited to names.
func (w Where) Wide() bool { return len(w.Names) == 0 }

// ReachesKube reports whether a name that begins with kube- may be selected.
func (w Where) ReachesKube() bool {
	const prefix = "kube-"
	return w.Wide() || slices.ContainsFunc(w.Names, func(glob string) bool {
		literal := literalStart(glob)
		return strings.HasPrefix(literal, prefix) || literal != glob && strings.HasPrefix(prefix, literal)
	})
}

// SyncPart is the sync section of a rule to be: where its clones go.
type SyncPart struct {
	Where           Where
	TargetName      string
	CopyLabels      bool
	OnSourceDeleted syncspec.OnGone
}

// ProtectPart is the protect section of a rule to be.
type ProtectPart struct {
	Operations []protectspec.Operation
	Mode       protectspec.Mode
	Message    string
	Allow      protectspec.Allow
	Clones     protectspec.Clones
}

// ReloadPart is the reload section of a rule to be.
type ReloadPart struct {
	Selector *metav1.LabelSelector
	// Kinds are those of the workloads that the policies restart.
	Kinds []string
	// Off is why the section is a comment; none: it is in force.
	Off Reason
	// From are the origins of the section.
	From []string
}

// Note adds what is not as it was.
func (f *Finding) Note(cause Cause, values ...string) {
	f.Notes = append(f.Notes, Because(cause, values...))
}

// RecordLoss adds what is left out.
func (f *Finding) RecordLoss(cause Cause, values ...string) {
	reason := Because(cause, values...)
	reason.Loss = true
	f.Notes = append(f.Notes, reason)
}

// Disable leaves the finding as a comment, for this reason unless there was one
// before.
func (f *Finding) Disable(cause Cause, values ...string) { f.DisableFor(Because(cause, values...)) }

// DisableFor is Disable for the Reason that err is. Nil does nothing.
func (f *Finding) DisableFor(err error) {
	if f.Off.None() {
		f.Off = ReasonOf(err)
	}
}

// SystemSource leaves a rule as a comment that would have a source leave
// kube-system.
func (f *Finding) SystemSource() {
	if f.Sync != nil && f.Source.Namespace == metav1.NamespaceSystem {
		f.Source.AllowSystemNamespace = true
		f.Disable(SystemSource)
	}
}

// SourceNamed is the source that ref names.
func SourceNamed(ref object.Ref) rules.Source {
	return rules.Source{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
}

// Object is a Secret or ConfigMap without what it holds.
type Object struct {
	object.Ref
	// Maker names what gives it its annotations, such as a Certificate; empty: itself.
	Maker       string
	Labels      map[string]string
	Annotations map[string]string
}

// String names the object, and what makes it.
func (o Object) String() string {
	name := strings.Replace(o.Ref.String(), "//", "/", 1) // a file need not say the namespace
	if o.Maker != "" {
		return o.Maker + " (" + name + ")"
	}
	return name
}

// NewObject takes what is needed of an object's metadata.
func NewObject(kind object.Kind, meta metav1.ObjectMeta) Object {
	return Object{
		Ref:    object.Ref{Kind: kind, Namespace: meta.Namespace, Name: meta.Name},
		Labels: meta.Labels, Annotations: meta.Annotations,
	}
}

// IsTrue reports whether the value of an annotation says true, as the tools read it.
func IsTrue(annotation string) bool { return strings.EqualFold(strings.TrimSpace(annotation), "true") }

// Rolled are the kinds of workload that a rule of Headwater restarts.
var Rolled = []string{"Deployment", "StatefulSet", "DaemonSet"}

// RestartsNo is why a section stays a comment for policies that restart these
// kinds alone.
func RestartsNo(kinds []string) Reason {
	var missing []string
	for _, kind := range Rolled {
		if !slices.Contains(kinds, kind) {
			missing = append(missing, kind)
		}
	}
	if len(missing) == 0 {
		return Reason{}
	}
	return Because(KindsNotRestarted, strings.Join(missing, " and no "))
}

// Join adds the kinds of another policy that is the same otherwise.
func (r *ReloadPart) Join(other ReloadPart) bool {
	if metav1.FormatLabelSelector(r.Selector) != metav1.FormatLabelSelector(other.Selector) {
		return false
	}
	r.Kinds = Distinct(r.Kinds, other.Kinds)
	r.Off = RestartsNo(r.Kinds)
	return true
}

// JoinNames makes one of alternatives that differ in their names alone.
func JoinNames(all []Where) []Where {
	var joined []Where
	for _, w := range all {
		same := slices.IndexFunc(joined, func(other Where) bool {
			return metav1.FormatLabelSelector(other.Selector) == metav1.FormatLabelSelector(w.Selector) && other.keeps(w) && w.keeps(other)
		})
		switch {
		case same < 0:
			joined = append(joined, w)
		case joined[same].Wide() || w.Wide():
			joined[same].Names = nil
		default:
			joined[same].Names = Distinct(joined[same].Names, w.Names)
			joined[same].Exclude = Distinct(joined[same].Exclude, w.Exclude)
		}
	}
	return joined
}

// keeps reports whether what w excludes, and other does not, is nothing that other
// selects.
func (w Where) keeps(other Where) bool {
	return !slices.ContainsFunc(w.Exclude, func(glob string) bool {
		return !slices.Contains(other.Exclude, glob) &&
			(w.Wide() || other.Wide() || slices.ContainsFunc(other.Names, func(name string) bool { return !Disjoint(name, glob) }))
	})
}

// Selects reports whether a namespace of that name is selected whatever its labels.
func (w Where) Selects(name string) bool {
	matches := func(globs []string) bool {
		return slices.ContainsFunc(globs, func(glob string) bool { return globMatches(glob, name) })
	}
	return w.Selector == nil && (w.Wide() || matches(w.Names)) && !matches(w.Exclude)
}

// Distinct joins lists, each element once.
func Distinct[T comparable](lists ...[]T) []T {
	var all []T
	for _, element := range slices.Concat(lists...) {
		if !slices.Contains(all, element) {
			all = append(all, element)
		}
	}
	return all
}

// SectionPart is a section of reload.namespaces.
type SectionPart struct {
	Where     Where
	Action    reloadspec.Action
	Workloads *metav1.LabelSelector
	Kinds     []object.Kind
	Names     []string
	Objects   *metav1.LabelSelector
}

// Left is something that is not carried over, and why.
type Left struct {
	From string
	Why  Reason
}

// Unread is what could not be read, at FILE:LINE, and why.
type Unread struct{ At, Why string }
