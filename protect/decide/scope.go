package decide

import (
	"slices"
	"strings"

	"github.com/headwater-k8s/headwater/protect/spec"
)

// Scope is what one webhook checks: one way to violate a rule, and optionally
// for certain rules only. Each webhook excludes the holders of its rules'
// override permission, so a holder of the override for some rules is still
// checked against the others. The zero Scope checks everything.
type Scope struct {
	About About
	// Rules are the names of the rules to check. Empty means all rules.
	Rules []string
}

// About is one way in which a request can violate a rule.
type About string

// The values of About.
const (
	AboutSources    About = "sources"
	AboutSelected   About = "selected"
	AboutNamespaces About = "namespaces"
	AboutClones     About = "clones"
	AboutMarks      About = "marks"
	// AboutReach checks nothing: see Reached.
	AboutReach About = "reach"
)

// Path returns the URL path that the webhook with scope s sends reviews to.
func (s Scope) Path() string {
	return spec.ReviewPath + "/" + strings.Join(append([]string{string(s.About)}, s.Rules...), "/")
}

// ScopeAt returns the scope that is encoded in a URL path; see Scope.Path.
func ScopeAt(path string) Scope {
	_, rest, _ := strings.Cut(path, spec.ReviewPath+"/")
	about, names, _ := strings.Cut(rest, "/")
	s := Scope{About: About(about)}
	if names != "" {
		s.Rules = strings.Split(names, "/")
	}
	return s
}

// matches are the rules that a request may violate.
type matches struct {
	// sources are the rules that the object may be a source of, clones those
	// that it may be a clone of, and namespaces those that guard it.
	sources, clones, namespaces []spec.Rule
	marks                       bool
}

// restrict limits all to scope s. If nothing is left, the webhook was
// registered for other rules than those loaded now. Then all rules are checked
// (fail closed).
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
	case AboutConfiguration, AboutReach: // not decided by rules
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
