package reload

import (
	"cmp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/gather"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/optin"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// Clone team/base is of a rule, team/own and its like of none.
func TestWhoWantsWhatDoneAboutAChange(t *testing.T) {
	ignored, matching := ownSecret("ignored", "1"), ownSecret("matching", "1")
	ignored.Annotations = reloadtest.Notes{mark.ReloaderIgnore: "true"}
	matching.Annotations = reloadtest.Notes{mark.ReloaderMatch: "true"}
	foreign := cloneOf("1")
	foreign.Name, foreign.Annotations[mark.Rule] = "cloned", "syncs-alone"
	source := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "base"}, Data: map[string][]byte{"k": []byte("v")}}
	f := newFixture(t, cloneOf("1"), foreign, source, ownSecret("own", "1"), ignored, matching)
	stop := f.lead()
	defer stop()
	require.Eventually(t, func() bool { return len(f.caches.Pending()) == 0 }, soon, 10*time.Millisecond)
	refresh := testRule(t, spec.Refresh)
	picky := ruleFor(t, "base", "base", map[string]string{"app": "other"})

	reloader, wave := reloadtest.Notes{mark.ReloaderAuto: "true"}, reloadtest.Notes{mark.WaveUpdate: "true"}
	tests := map[string]struct {
		says   reloadtest.Notes
		rule   spec.Rule
		name   string
		by     string // rule, then tool
		action spec.Action
		spared spec.Reason
		read   bool
		known  bool
	}{
		"the rule that says Never, over the owner": {
			says: reloadtest.Notes{mark.Reload: "Restart"}, rule: testRule(t, spec.Never), name: "base", by: "base/Headwater", action: spec.None, spared: spec.ReasonNever, known: true,
		},
		"the rule that says Never, over Reloader":    {says: reloader, rule: testRule(t, spec.Never), name: "base", by: "base/Reloader", action: spec.None, spared: spec.ReasonNever, known: true},
		"the owner over the rule that says None":     {says: reloader, rule: testRule(t, spec.None), name: "base", by: "base/Reloader", action: spec.Restart},
		"a rule":                                     {rule: refresh, name: "base", by: "base/", action: spec.Refresh},
		"nobody":                                     {rule: refresh, name: "own", by: "/", action: spec.None},
		"the owner, for what no rule covers":         {says: reloadtest.Notes{mark.Reload: "Auto"}, rule: refresh, name: "own", by: "/Headwater", action: spec.Auto, read: true},
		"the owner over the rule":                    {says: reloadtest.Notes{mark.Reload: "Restart"}, rule: refresh, name: "base", by: "base/Headwater", action: spec.Restart},
		"the rule says how, the owner for what":      {says: reloadtest.Notes{mark.ReloadOn: "Secret/base"}, rule: refresh, name: "base", by: "base/Headwater", action: spec.Refresh},
		"the owner, for what is listed":              {says: reloadtest.Notes{mark.ReloadOn: "Secret/own"}, rule: refresh, name: "own", by: "/Headwater", action: spec.Auto, read: true},
		"not the owner, for what is not listed":      {says: reloadtest.Notes{mark.ReloadOn: "Secret/own"}, rule: refresh, name: "matching", by: "/", action: spec.None},
		"the owner, against all":                     {says: reloadtest.Notes{mark.Reload: "Off"}, rule: refresh, name: "base", by: "base/", action: spec.None},
		"the owner, if the rule does not select it":  {says: reloadtest.Notes{mark.Reload: "Auto"}, rule: picky, name: "base", by: "/Headwater", action: spec.Auto},
		"the owner, for a clone of a rule that only": {says: reloadtest.Notes{mark.Reload: "Auto"}, rule: refresh, name: "cloned", by: "/Headwater", action: spec.Auto},
		"the owner, of other keys alone":             {says: reloadtest.Notes{mark.Reload: "Auto", mark.ReloadKeys: "x"}, rule: refresh, name: "own", by: "/Headwater", action: spec.None, spared: spec.ReasonKeys},
		"Reloader restarts":                          {says: reloader, rule: refresh, name: "own", by: "/Reloader", action: spec.Restart, read: true},
		"Reloader over the rule":                     {says: reloader, rule: refresh, name: "base", by: "base/Reloader", action: spec.Restart},
		"Reloader ignores":                           {says: reloader, rule: refresh, name: "ignored", by: "/", action: spec.None, spared: spec.ReasonIgnored},
		"Reloader excludes": {
			says: reloadtest.Notes{mark.ReloaderAuto: "true", reloadtest.SecretExcludes: "own"}, rule: refresh, name: "own", by: "/", action: spec.None, spared: spec.ReasonExcluded,
		},
		"Reloader excludes, the rule does not": {
			says: reloadtest.Notes{mark.ReloaderAuto: "true", reloadtest.SecretExcludes: "base"}, rule: refresh, name: "base", by: "base/", action: spec.Refresh,
		},
		"Reloader finds what matches":         {says: reloadtest.Notes{mark.ReloaderSearch: "true"}, rule: refresh, name: "matching", by: "/Reloader", action: spec.Restart, read: true},
		"Reloader does not find what doesn't": {says: reloadtest.Notes{mark.ReloaderSearch: "true"}, rule: refresh, name: "own", by: "/", action: spec.None},
		"Wave restarts":                       {says: wave, rule: refresh, name: "own", by: "/Wave", action: spec.Restart, read: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			hasher, err := f.key.Hasher()
			require.NoError(t, err)
			var read []object.Ref
			g := gather.Gatherer{Caches: f.caches, Rules: rules.NewSet(test.rule), Hasher: hasher, Read: func(ref object.Ref, version string) *object.Digested {
				require.Equal(t, "1", version)
				read = append(read, ref)
				return nil
			}}
			theirs := optin.ReadThirdParty(kinds.KindDeployment, "team", test.says, nil)
			of, _ := optin.ReadPreferences(&metav1.ObjectMeta{Namespace: "team", Annotations: test.says}, theirs, reloadtest.BothTools())
			c := g.Input("team", refs.Reference{Kind: object.Secret, Name: test.name, Mode: refs.Volume, Keys: []string{"password"}}, of)
			require.Equal(t, test.by, c.Rule+"/"+string(c.OptIn))
			require.Equal(t, test.action, c.Action)
			require.Equal(t, test.spared, c.SkipReason)
			require.Equal(t, test.read, len(read) == 1)
			require.False(t, c.Absent)
			require.Equal(t, test.known || c.Governed() && !test.read && test.spared == "", c.Exists, "what a cache holds is there, what is being read is not known yet")
			if test.spared != "" {
				require.Equal(t, decide.Outcome{Step: spec.StepNothing, Reason: test.spared}, c.OnChange())
			}
		})
	}
}

// Clone team/base is of a rule, the Secrets team/own and its like of none.
func TestWhatASectionForNamespacesIsAbout(t *testing.T) {
	labelled, ignored := ownSecret("labelled", "1"), ownSecret("ignored", "1")
	labelled.Labels = map[string]string{"watch": "true"}
	ignored.Annotations = reloadtest.Notes{mark.ReloaderIgnore: "true"}
	cloned := cloneOf("1")
	cloned.Name, cloned.Annotations[mark.Rule] = "cloned", "syncs-alone"
	f := newFixture(t, cloneOf("1"), cloned, ownSecret("own", "1"), labelled, ignored)
	stop := f.lead()
	defer stop()
	require.Eventually(t, func() bool { return len(f.caches.Pending()) == 0 }, soon, 10*time.Millisecond)
	refresh := testRule(t, spec.Refresh)
	picky := ruleFor(t, "base", "base", map[string]string{"app": "other"})
	teams := func(change ...func(*spec.NamespaceSection)) []spec.NamespaceSection {
		section := spec.NamespaceSection{Action: spec.Restart}
		for _, c := range change {
			c(&section)
		}
		section.Default()
		return []spec.NamespaceSection{section}
	}
	watched := func(s *spec.NamespaceSection) {
		s.Objects.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"watch": "true"}}
	}

	for sentence, test := range map[string]struct {
		sections []spec.NamespaceSection
		in       string // the namespace; empty: team
		says     reloadtest.Notes
		optIn    bool
		rule     spec.Rule
		mode     refs.Mode
		name     string
		by       string // rule, then who asks
		action   spec.Action
		spared   spec.Reason
		read     bool
	}{
		"what no rule governs":                    {sections: teams(), rule: refresh, name: "own", by: "/Namespaces", action: spec.Restart, read: true},
		"what a rule clones that reloads nothing": {sections: teams(), rule: refresh, name: "cloned", by: "/Namespaces", action: spec.Restart},
		"nothing that a rule governs":             {sections: teams(), rule: refresh, name: "base", by: "base/", action: spec.Refresh},
		"what a rule governs for other workloads": {sections: teams(), rule: picky, name: "base", by: "/Namespaces", action: spec.Restart},
		"nothing where an owner says Off":         {sections: teams(), says: reloadtest.Notes{mark.Reload: "Off"}, optIn: true, rule: refresh, name: "own", by: "/", spared: spec.ReasonOff, action: spec.None},
		"the owner says how": {
			sections: teams(), says: reloadtest.Notes{mark.Reload: "Refresh"}, optIn: true, rule: refresh, name: "own", by: "/Headwater", action: spec.Refresh, read: true,
		},
		"the owner says how where none may opt in": {
			sections: teams(), says: reloadtest.Notes{mark.Reload: "Refresh"}, rule: refresh, name: "own", by: "/Namespaces", action: spec.Refresh, read: true,
		},
		"what the owner's list leaves out": {
			sections: teams(), says: reloadtest.Notes{mark.ReloadOn: "Secret/other"}, optIn: true, rule: refresh, name: "own", by: "/Namespaces", action: spec.Restart, read: true,
		},
		"nothing that is listed and not consumed": {sections: teams(), rule: refresh, mode: refs.Listed, name: "own", by: "/", action: spec.None},
		"no other namespace": {
			sections: teams(func(s *spec.NamespaceSection) { s.Include = []string{"crew-*"} }), rule: refresh, name: "own", by: "/", action: spec.None,
		},
		"no system namespace": {sections: teams(), in: "kube-system", rule: refresh, name: "own", by: "/", action: spec.None},
		"no namespace with other labels": {
			sections: teams(func(s *spec.NamespaceSection) {
				s.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": "test"}}
			}),
			rule: refresh, name: "own", by: "/", action: spec.None,
		},
		"no workload with other labels": {
			sections: teams(func(s *spec.NamespaceSection) {
				s.Workloads.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
			}),
			rule: refresh, name: "own", by: "/", action: spec.None,
		},
		"no other kind": {
			sections: teams(func(s *spec.NamespaceSection) { s.Objects.Kinds = []object.Kind{object.ConfigMap} }), rule: refresh, name: "own", by: "/", action: spec.None,
		},
		"no other name": {
			sections: teams(func(s *spec.NamespaceSection) { s.Objects.Exclude = []string{"o*"} }), rule: refresh, name: "own", by: "/", action: spec.None,
		},
		"what another section is about": {
			sections: append(teams(func(s *spec.NamespaceSection) { s.Objects.Include = []string{"x"} }), teams(func(s *spec.NamespaceSection) { s.Action = spec.Refresh })...),
			rule:     refresh, name: "own", by: "/Namespaces", action: spec.Refresh, read: true,
		},
		"what has the labels":           {sections: teams(watched), rule: refresh, name: "labelled", by: "/Namespaces", action: spec.Restart, read: true},
		"nothing without the labels":    {sections: teams(watched), rule: refresh, name: "own", by: "/", action: spec.None, read: true},
		"no clone without the labels":   {sections: teams(watched), rule: refresh, name: "cloned", by: "/", action: spec.None},
		"nothing that Reloader ignores": {sections: teams(), optIn: true, rule: refresh, name: "ignored", by: "/", action: spec.None, spared: spec.ReasonIgnored},
		"nothing that the owner excludes": {
			sections: teams(), says: reloadtest.Notes{reloadtest.SecretExcludes: "own"}, optIn: true, rule: refresh, name: "own", by: "/", action: spec.None, spared: spec.ReasonExcluded,
		},
		"nothing where Reloader's auto is false": {
			sections: teams(), says: reloadtest.Notes{mark.ReloaderAuto: "false"}, optIn: true, rule: refresh, name: "own", by: "/", action: spec.None,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			hasher, err := f.key.Hasher()
			require.NoError(t, err)
			reads := 0
			g := gather.Gatherer{Caches: f.caches, Rules: rules.NewSet(test.rule), Hasher: hasher, Read: func(ref object.Ref, _ string) *object.Digested {
				reads++
				found := object.NewDigested(object.NewMeta(ref), object.Common{})
				if ref.Name == "labelled" {
					found.Labels = labelled.Labels
				}
				return found
			}}
			settings := spec.Settings{}
			if test.optIn {
				settings = reloadtest.BothTools()
			}
			namespace := cmp.Or(test.in, "team")
			theirs := optin.ReadThirdParty(kinds.KindDeployment, namespace, test.says, nil)
			of, _ := optin.ReadPreferences(&metav1.ObjectMeta{Namespace: namespace, Annotations: test.says}, theirs, settings)
			of = of.GovernedBy(spec.CompileSections(test.sections), namespace, map[string]string{"env": "prod"})
			c := g.Input("team", refs.Reference{Kind: object.Secret, Name: test.name, Mode: cmp.Or(test.mode, refs.Volume)}, of)
			require.Equal(t, test.by, c.Rule+"/"+string(c.OptIn))
			require.Equal(t, test.action, c.Action)
			require.Equal(t, test.spared, c.SkipReason)
			require.Equal(t, test.read, reads == 1)
		})
	}
}
