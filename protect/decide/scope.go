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
func (s Scope) Path() string {
	return spec.ReviewPath + "/" + strings.Join(append([]string{string(s.About)}, s.Rules...), "/")
}

// ScopeAt is the question that reviews sent to path bring.
func ScopeAt(path string) Scope {
	_, rest, _ := strings.Cut(path, spec.ReviewPath+"/")
	about, names, _ := strings.Cut(rest, "/")
	s := Scope{About: About(about)}
	if names != "" {
		s.Rules = strings.Split(names, "/")
	}
	return s
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
func (s Scope) restrict(all matches) matches {
	var scoped matches
	switch s.About {
	case AboutSources, AboutSelected:
		scoped.sources = s.filter(all.sources, func(rule spec.Rule) bool { return rule.BySelector() == (s.About == AboutSelected) })
	case AboutNamespaces:
		scoped.namespaces = s.filter(all.namespaces, func(spec.Rule) bool { return true })
	case AboutClones:
		scoped.clones = all.clones
	case AboutMarks:
		scoped.marks = all.marks
	case AboutConfiguration: // no rule is about it
	}
	if !scoped.marks && len(scoped.sources)+len(scoped.clones)+len(scoped.namespaces) == 0 {
		return all
	}
	return scoped
}

func (s Scope) filter(rules []spec.Rule, suitable func(spec.Rule) bool) []spec.Rule {
	return slices.DeleteFunc(slices.Clone(rules), func(rule spec.Rule) bool {
		return !suitable(rule) || len(s.Rules) > 0 && !slices.Contains(s.Rules, rule.Name)
	})
}
