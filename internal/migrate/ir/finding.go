package ir

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
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

	// Notes say what is not as it was; Less, that some of it is left out.
	Notes []string
	Less  bool
	// Off is why it must not be in force as it stands; empty: it may.
	Off string
}

// Where selects target namespaces. No names are all.
type Where struct {
	Names    []string
	Exclude  []string
	Selector *metav1.LabelSelector
}

// Nowhere is a place to fill in.
func Nowhere() Where { return Where{Names: []string{"SAY-WHERE-TO"}} }

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
	// Off is why the section is a comment; empty: it is in force.
	Off string
}

// Note adds what is not as it was.
func (f *Finding) Note(format string, args ...any) {
	f.Notes = append(f.Notes, fmt.Sprintf(format, args...))
}

// RecordLoss adds what is left out.
func (f *Finding) RecordLoss(format string, args ...any) {
	f.Note(format, args...)
	f.Less = true
}

// Disable leaves the finding as a comment, for this reason unless there was one
// before.
func (f *Finding) Disable(format string, args ...any) {
	if f.Off == "" {
		f.Off = fmt.Sprintf(format, args...)
	}
}

// Doubt is a reason why something cannot be said in a rule.
type Doubt struct {
	Is  bool
	Why string
}

// FirstOf is the first doubt there is.
func FirstOf(doubts ...Doubt) error {
	for _, d := range doubts {
		if d.Is {
			return errors.New(d.Why)
		}
	}
	return nil
}

// SystemSource leaves a rule as a comment that would have a source leave
// kube-system.
func (f *Finding) SystemSource() {
	if f.Sync != nil && f.Source.Namespace == metav1.NamespaceSystem {
		f.Source.AllowSystemNamespace = true
		f.Disable("the source is in kube-system; take the comment signs away if it is meant to leave it")
	}
}

// SourceNamed is the source that ref names.
func SourceNamed(ref object.Ref) rules.Source {
	return rules.Source{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
}

// Object is a Secret or ConfigMap without what it holds.
type Object struct {
	object.Ref
	Labels      map[string]string
	Annotations map[string]string
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
func RestartsNo(kinds []string) string {
	var missing []string
	for _, kind := range Rolled {
		if !slices.Contains(kinds, kind) {
			missing = append(missing, kind)
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return fmt.Sprintf("the policy restarts no %s, and this would, if one consumes the object; to be in force, "+
		"take the comment signs away, and keep those that must not restart out by reload.workloads.selector or their "+
		"annotation %s: \"Off\"", strings.Join(missing, " and no "), mark.Reload)
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
			return metav1.FormatLabelSelector(other.Selector) == metav1.FormatLabelSelector(w.Selector) && slices.Equal(other.Exclude, w.Exclude)
		})
		switch {
		case same < 0:
			joined = append(joined, w)
		case joined[same].Wide() || w.Wide():
			joined[same].Names = nil
		default:
			joined[same].Names = Distinct(joined[same].Names, w.Names)
		}
	}
	return joined
}

// Distinct joins lists, each text once.
func Distinct(lists ...[]string) []string {
	var all []string
	for _, text := range slices.Concat(lists...) {
		if !slices.Contains(all, text) {
			all = append(all, text)
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
type Left struct{ From, Why string }
