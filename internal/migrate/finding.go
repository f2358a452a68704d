package migrate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
	syncspec "github.com/headwater-k8s/headwater/sync/spec"
)

// Tool is where something comes from.
type Tool string

// The tools that are understood.
const (
	Kyverno    Tool = "Kyverno"
	Reflector  Tool = "Reflector"
	Replicator Tool = "kubernetes-replicator"
)

// finding is one thing that a tool was told to do: one of Sync, Protect, Reload
// and Section.
type finding struct {
	Tool Tool
	// From names the policy or object that says so.
	From   string
	Source rules.Source
	// Everywhere says that it is about objects of the source's name in every
	// namespace, of which the source's is not known.
	Everywhere bool

	Sync    *syncPart
	Protect *protectPart
	Reload  *reloadPart
	// Section has neither Source nor Everywhere.
	Section *sectionPart

	// Notes say what is not as it was; Less, that some of it is left out.
	Notes []string
	Less  bool
	// Off is why it must not be in force as it stands; empty: it may.
	Off string
}

// where selects target namespaces. No names are all.
type where struct {
	Names    []string
	Exclude  []string
	Selector *metav1.LabelSelector
}

// nowhere is a place to fill in.
func nowhere() where { return where{Names: []string{"SAY-WHERE-TO"}} }

// wide reports whether it is not limited to names.
func (w where) wide() bool { return len(w.Names) == 0 }

// reachesKube reports whether a name that begins with kube- may be selected.
func (w where) reachesKube() bool {
	const prefix = "kube-"
	return w.wide() || slices.ContainsFunc(w.Names, func(glob string) bool {
		literal := literalStart(glob)
		return strings.HasPrefix(literal, prefix) || literal != glob && strings.HasPrefix(prefix, literal)
	})
}

type syncPart struct {
	Where           where
	TargetName      string
	CopyLabels      bool
	OnSourceDeleted syncspec.OnGone
}

type protectPart struct {
	Operations []protectspec.Operation
	Mode       protectspec.Mode
	Message    string
	Allow      protectspec.Allow
	Clones     protectspec.Clones
}

type reloadPart struct {
	Selector *metav1.LabelSelector
	// Kinds are those of the workloads that the policies restart.
	Kinds []string
	// Off is why the section is a comment; empty: it is in force.
	Off string
}

// note adds what is not as it was.
func (f *finding) note(format string, args ...any) {
	f.Notes = append(f.Notes, fmt.Sprintf(format, args...))
}

// lose adds what is left out.
func (f *finding) lose(format string, args ...any) {
	f.note(format, args...)
	f.Less = true
}

// off leaves the finding as a comment, for this reason unless there was one
// before.
func (f *finding) off(format string, args ...any) {
	if f.Off == "" {
		f.Off = fmt.Sprintf(format, args...)
	}
}

// doubt is a reason why something cannot be said in a rule.
type doubt struct {
	is  bool
	why string
}

// firstOf is the first doubt there is.
func firstOf(doubts ...doubt) error {
	for _, d := range doubts {
		if d.is {
			return errors.New(d.why)
		}
	}
	return nil
}

// systemSource leaves a rule as a comment that would have a source leave
// kube-system.
func (f *finding) systemSource() {
	if f.Sync != nil && f.Source.Namespace == metav1.NamespaceSystem {
		f.Source.AllowSystemNamespace = true
		f.off("the source is in kube-system; take the comment signs away if it is meant to leave it")
	}
}

func sourceNamed(ref object.Ref) rules.Source {
	return rules.Source{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
}
