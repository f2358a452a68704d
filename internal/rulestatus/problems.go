package rulestatus

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/headwater-k8s/headwater/internal/text"
	"github.com/headwater-k8s/headwater/sync/survey"
)

const (
	// maxProblems bounds the groups that a Status lists, maxNamespaces the namespaces
	// of each, and maxMessage the length of its message in bytes.
	maxProblems   = 20
	maxNamespaces = 5
	maxMessage    = 512
	// maxGroups bounds the groups while clones are counted. Further clones share one
	// group for each state.
	maxGroups = 1000
)

// problemKey is what the clones of a group have in common.
type problemKey struct {
	state   survey.Status
	reason  string
	general string // the message without names
}

// group is the clones with one problem.
type group struct {
	clones int
	// first are the first clones by namespace and name, at most maxNamespaces.
	first []string
	// message is that of the first clone.
	message string
}

// problems are groups of clones. Their order does not depend on the order in which
// clones are added.
type problems map[problemKey]*group

func (p problems) add(f survey.CloneStatus) {
	why := f.Why()
	general := why
	for _, name := range []string{f.Source.String(), f.Target.String(), f.Target.Namespace, f.Target.Name, f.Rule} {
		general = text.WithoutWord(general, name)
	}
	key := problemKey{f.Status, string(f.Decision.Reason), general}
	if p[key] == nil && len(p) >= maxGroups {
		key, why = problemKey{state: f.Status}, "various reasons"
	}
	if p[key] == nil {
		p[key] = &group{}
	}
	p[key].add(f.Target.Namespace+"/"+f.Target.Name, why)
}

func (g *group) add(clone, why string) {
	g.clones++
	at, found := slices.BinarySearch(g.first, clone)
	if found || at == maxNamespaces {
		return
	}
	g.first = slices.Insert(g.first, at, clone)
	g.first = g.first[:min(len(g.first), maxNamespaces)]
	if at == 0 {
		g.message = why
	}
}

// ranked returns the first groups, those with the worst state and the most clones
// first, and how many are left out.
func (p problems) ranked() (shown []Problem, hidden int) {
	keys := slices.SortedFunc(maps.Keys(p), func(a, b problemKey) int {
		return cmp.Or(
			cmp.Compare(rank(a.state), rank(b.state)),
			cmp.Compare(p[b].clones, p[a].clones), cmp.Compare(a.reason, b.reason), cmp.Compare(a.general, b.general))
	})
	for _, key := range keys[:min(len(keys), maxProblems)] {
		g := p[key]
		shown = append(shown, Problem{
			State: string(key.state), Reason: key.reason, Message: text.Truncate(g.message, maxMessage), Clones: g.clones, Namespaces: g.namespaces(),
		})
	}
	return shown, len(keys) - len(shown)
}

// rank orders states, those that need attention first.
func rank(state survey.Status) int {
	if at := slices.Index(attention, state); at >= 0 {
		return at
	}
	return len(attention)
}

func (g *group) namespaces() []string {
	var names []string
	for _, clone := range g.first {
		namespace, _, _ := strings.Cut(clone, "/")
		names = append(names, namespace)
	}
	return slices.Compact(names)
}

// attention lists the states that need attention. A failed write may succeed by
// itself, so what needs a person goes before it.
var attention = []survey.Status{survey.Conflicting, survey.Refused, survey.Held, survey.Fighting, survey.Failed}
