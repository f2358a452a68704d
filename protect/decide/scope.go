package decide

import (
	"slices"
	"strings"

	"github.com/headwater-k8s/headwater/protect/spec"
)

// Scope is what a webhook asks: in which way a request may be refused, and,
// where several rules refuse in that way, by which. A holder of the override for
// some rules is so asked about the others alone. The zero Scope is about
// everything.
type Scope struct {
	About About
	// Rules are all where there are none.
	Rules []string
}

// About is one way of refusing.
type About string

// The ways.
const (
	AboutSources    About = "sources"
	AboutSelected   About = "selected"
	AboutNamespaces About = "namespaces"
	AboutClones     About = "clones"
	AboutMarks      About = "marks"
)

// Path is where the webhook of the question sends reviews.
func (q Scope) Path() string {
	return spec.ReviewPath + "/" + strings.Join(append([]string{string(q.About)}, q.Rules...), "/")
}

// ScopeAt is the question that reviews sent to path bring.
func ScopeAt(path string) Scope {
	_, question, _ := strings.Cut(path, spec.ReviewPath+"/")
	about, names, _ := strings.Cut(question, "/")
	q := Scope{About: About(about)}
	if names != "" {
		q.Rules = strings.Split(names, "/")
	}
	return q
}

// matches is what a request may touch.
type matches struct {
	// sources are the rules of which it may be a source, clones those of which
	// it may be a clone, namespaces those that guard it.
	sources, clones, namespaces []spec.Rule
	marks                       bool
}

// restrict leaves of all what is asked about. Where that is nothing, the rules are no
// longer those that the webhook was registered for: then all count.
func (q Scope) restrict(all matches) matches {
	var asked matches
	switch q.About {
	case AboutSources, AboutSelected:
		asked.sources = q.among(all.sources, func(rule spec.Rule) bool { return rule.BySelector() == (q.About == AboutSelected) })
	case AboutNamespaces:
		asked.namespaces = q.among(all.namespaces, func(spec.Rule) bool { return true })
	case AboutClones:
		asked.clones = all.clones
	case AboutMarks:
		asked.marks = all.marks
	case AboutConfiguration: // no rule is about it
	}
	if !asked.marks && len(asked.sources)+len(asked.clones)+len(asked.namespaces) == 0 {
		return all
	}
	return asked
}

func (q Scope) among(rules []spec.Rule, suitable func(spec.Rule) bool) []spec.Rule {
	return slices.DeleteFunc(slices.Clone(rules), func(rule spec.Rule) bool {
		return !suitable(rule) || len(q.Rules) > 0 && !slices.Contains(q.Rules, rule.Name)
	})
}
