package property

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	syncspec "github.com/headwater-k8s/headwater/sync/spec"
)

var ruleNames = []string{"prop-1", "prop-2", "prop-3", "prop-4"}

// file is the rules section: JSON is YAML.
func (w *world) file() string {
	text, err := json.Marshal(w.rules)
	require.NoError(w, err)
	return "  " + string(text) + "\n"
}

// changeRules removes a rule, makes one another, adds one, or puts them in
// another order.
func (w *world) changeRules() {
	switch {
	case w.oneIn(4):
		w.Shuffle(len(w.rules), func(i, j int) { w.rules[i], w.rules[j] = w.rules[j], w.rules[i] })
	case w.oneIn(3):
		name := pick(w, ruleNames)
		w.rules = slices.DeleteFunc(w.rules, func(r config.Rule) bool { return r.Name == name })
	default:
		w.addRule()
	}
	w.noteTakeable()
	w.Logf("rules: %s", w.file())
	w.ConfigFile(w.file())
}

// addRule adds a rule, or puts it in the place of the one of its name.
func (w *world) addRule() {
	rule := w.randomRule()
	at := slices.IndexFunc(w.rules, func(r config.Rule) bool { return r.Name == rule.Name })
	if at >= 0 {
		w.rules[at] = rule
		return
	}
	w.rules = slices.Insert(w.rules, w.IntN(len(w.rules)+1), rule)
}

func (w *world) randomRule() config.Rule {
	source := w.randomSource()
	rule := config.Rule{
		Name:   pick(w, ruleNames),
		Source: rules.Source{Kind: source.Kind, Namespace: source.Namespace, Name: source.Name},
		Sync: &syncspec.Config{
			Namespaces: rules.Namespaces{
				Include: pick(w, [][]string{{"prop-*"}, {"prop-?1", "prop-b?"}, {"prop-a*"}}),
				Exclude: pick(w, [][]string{{}, {"prop-src?"}, {"prop-b2"}}),
			},
			Target:     w.randomTarget(),
			OnConflict: pick(w, []syncspec.OnConflict{syncspec.ConflictSkip, syncspec.ConflictSkip, syncspec.ConflictSkip, syncspec.ConflictAdoptIfEqual, syncspec.ConflictOverwrite}),
		},
	}
	// A source namespace is nobody's target here: clones of clones have no end.
	rule.Sync.Namespaces.Exclude = append(slices.Clone(rule.Sync.Namespaces.Exclude), sourceNamespaces...)
	if w.oneIn(3) {
		rule.Sync.Namespaces.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": pick(w, tiers)}}
	}
	switch w.IntN(3) {
	case 0:
		rule.Source.Name, rule.Source.Selector = "", &metav1.LabelSelector{MatchLabels: map[string]string{"share": "yes"}}
	case 1:
		rule.Sync.Target.Name = pick(w, cloneNames)
	}
	for _, policy := range []*syncspec.OnGone{&rule.Sync.OnSourceDeleted, &rule.Sync.OnRuleRemoved, &rule.Sync.OnNamespaceUnmatched} {
		if *policy = syncspec.Retain; w.oneIn(2) && !w.gentle {
			*policy = syncspec.Delete
		}
	}
	rule.Sync.RemoveAfter = &metav1.Duration{Duration: pick(w, []time.Duration{0, 0, time.Second})}
	return rule
}

func (w *world) randomTarget() syncspec.Target {
	return syncspec.Target{
		Keys: pick(w, [][]syncspec.KeyMapping{
			nil, nil, {{From: "k1"}}, {{From: "k1", To: "renamed"}}, {{From: "k2", To: "k1"}, {From: "k1", To: "k2"}},
		}),
		Labels:          pick(w, []map[string]string{nil, {"team": "x"}, {"team": "y", "color": "ours"}}),
		Annotations:     pick(w, []map[string]string{nil, {"why": "x"}}),
		CopyLabels:      pick(w, [][]string{nil, {"color"}, {"s*"}, {"*"}}),
		CopyAnnotations: pick(w, [][]string{nil, {"n*"}}),
	}
}

// noteTakeable remembers for which names a rule may take over what is there.
func (w *world) noteTakeable() {
	for _, rule := range w.rules {
		if rule.Sync.OnConflict == syncspec.ConflictSkip {
			continue
		}
		for _, name := range cloneNames {
			if _, reaches := sourceOf(rule, object.Ref{Kind: rule.Source.Kind, Name: name}); reaches {
				w.takeable[object.Ref{Kind: rule.Source.Kind, Name: name}] = true
			}
		}
	}
}
