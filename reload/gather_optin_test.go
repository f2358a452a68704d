package reload

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
)

// Clone team/base is of a rule, team/own and its like of none.
func TestWhoWantsWhatDoneAboutAChange(t *testing.T) {
	ignored, matching := ownSecret("ignored", "1"), ownSecret("matching", "1")
	ignored.Annotations = notes{mark.ReloaderIgnore: "true"}
	matching.Annotations = notes{mark.ReloaderMatch: "true"}
	foreign := cloneOf("1")
	foreign.Name, foreign.Annotations[mark.Rule] = "cloned", "syncs-alone"
	source := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "base"}, Data: map[string][]byte{"k": []byte("v")}}
	f := newFixture(t, cloneOf("1"), foreign, source, ownSecret("own", "1"), ignored, matching)
	stop := f.lead()
	defer stop()
	require.Eventually(t, func() bool { return len(f.caches.Pending()) == 0 }, soon, 10*time.Millisecond)
	refresh := testRule(t, Refresh)
	picky := ruleFor(t, "base", "base", map[string]string{"app": "other"})

	reloader, wave := notes{mark.ReloaderAuto: "true"}, notes{mark.WaveUpdate: "true"}
	tests := map[string]struct {
		says   notes
		rule   Rule
		name   string
		by     string // rule, then tool
		action Action
		spared Reason
		read   bool
	}{
		"a rule":                                     {rule: refresh, name: "base", by: "base/", action: Refresh},
		"nobody":                                     {rule: refresh, name: "own", by: "/", action: None},
		"the owner, for what no rule covers":         {says: notes{mark.Reload: "Auto"}, rule: refresh, name: "own", by: "/Headwater", action: Auto, read: true},
		"the owner over the rule":                    {says: notes{mark.Reload: "Restart"}, rule: refresh, name: "base", by: "base/Headwater", action: Restart},
		"the rule says how, the owner for what":      {says: notes{mark.ReloadOn: "Secret/base"}, rule: refresh, name: "base", by: "base/Headwater", action: Refresh},
		"the owner, for what is listed":              {says: notes{mark.ReloadOn: "Secret/own"}, rule: refresh, name: "own", by: "/Headwater", action: Auto, read: true},
		"not the owner, for what is not listed":      {says: notes{mark.ReloadOn: "Secret/own"}, rule: refresh, name: "matching", by: "/", action: None},
		"the owner, against all":                     {says: notes{mark.Reload: "Off"}, rule: refresh, name: "base", by: "base/", action: None},
		"the owner, whom the rule does not select":   {says: notes{mark.Reload: "Auto"}, rule: picky, name: "base", by: "/Headwater", action: Auto},
		"the owner, for a clone of a rule that only": {says: notes{mark.Reload: "Auto"}, rule: refresh, name: "cloned", by: "/Headwater", action: Auto},
		"the owner, of other keys alone":             {says: notes{mark.Reload: "Auto", mark.ReloadKeys: "x"}, rule: refresh, name: "own", by: "/Headwater", action: None, spared: ReasonKeys},
		"Reloader restarts":                          {says: reloader, rule: refresh, name: "own", by: "/Reloader", action: Restart, read: true},
		"Reloader over the rule":                     {says: reloader, rule: refresh, name: "base", by: "base/Reloader", action: Restart},
		"Reloader ignores":                           {says: reloader, rule: refresh, name: "ignored", by: "/", action: None, spared: ReasonIgnored},
		"Reloader excludes": {
			says: notes{mark.ReloaderAuto: "true", secretExcludes: "own"}, rule: refresh, name: "own", by: "/", action: None, spared: ReasonExcluded,
		},
		"Reloader excludes, the rule does not": {
			says: notes{mark.ReloaderAuto: "true", secretExcludes: "base"}, rule: refresh, name: "base", by: "base/", action: Refresh,
		},
		"Reloader finds what matches":         {says: notes{mark.ReloaderSearch: "true"}, rule: refresh, name: "matching", by: "/Reloader", action: Restart, read: true},
		"Reloader does not find what doesn't": {says: notes{mark.ReloaderSearch: "true"}, rule: refresh, name: "own", by: "/", action: None},
		"Wave restarts":                       {says: wave, rule: refresh, name: "own", by: "/Wave", action: Restart, read: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			hasher, err := f.key.Hasher()
			require.NoError(t, err)
			var read []object.Ref
			g := gatherer{caches: f.caches, rules: rules.NewSet(test.rule), hasher: hasher, read: func(ref object.Ref, version string) *object.Digested {
				require.Equal(t, "1", version)
				read = append(read, ref)
				return nil
			}}
			theirs := readForeign(KindDeployment, "team", test.says, nil)
			of, _ := wishesOf(&metav1.ObjectMeta{Namespace: "team", Annotations: test.says}, theirs, bothTools())
			c := g.consumed("team", Reference{Kind: object.Secret, Name: test.name, Mode: Volume, Keys: []string{"password"}}, of)
			require.Equal(t, test.by, c.Rule+"/"+string(c.OptIn))
			require.Equal(t, test.action, c.Action)
			require.Equal(t, test.spared, c.Spared)
			require.Equal(t, test.read, len(read) == 1)
			require.False(t, c.Absent)
			require.Equal(t, c.governed() && !test.read && test.spared == "", c.Exists, "what a cache holds is there, what is being read is not known yet")
			if test.spared != "" {
				require.Equal(t, Outcome{StepNothing, test.spared}, c.onChange())
			}
		})
	}
}
