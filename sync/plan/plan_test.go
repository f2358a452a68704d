package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync/internal/plantest"
	"github.com/headwater-k8s/headwater/sync/internal/synctest"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/spec"
)

const invalidUser = `key "user" is missing`

var (
	cloneOf = plantest.CloneOf
	stateOf = plantest.StateOf
	unlabel = plantest.Unlabel
)

// emptySource takes every value from the source of s.
func emptySource(t *testing.T, s *plan.State) {
	t.Helper()
	s.Candidates[0].Source = synctest.Source(t, map[string]string{"user": "", "password": ""})
	s.Candidates[0].Emptied = plan.NewWanted(s.Candidates[0].Rule, s.Candidates[0].Source, 0).Lacks.What
	require.NotEmpty(t, s.Candidates[0].Emptied)
}

func TestWhatAnEmptiedSourceLacks(t *testing.T) {
	for sentence, test := range map[string]struct {
		secretType string
		keys       []spec.KeyMapping
		data       map[string]string
		lacks      string
	}{
		"no key":                             {lacks: "no value in any key that is cloned"},
		"empty values alone":                 {data: map[string]string{"a": "", "b": ""}, lacks: "no value in any key that is cloned"},
		"one empty value among others":       {data: map[string]string{"a": "", "b": "x"}},
		"a value in no key that is cloned":   {keys: []spec.KeyMapping{{From: "a"}}, data: map[string]string{"a": "", "b": "x"}, lacks: "no value in any key that is cloned"},
		"a certificate without a value":      {secretType: "kubernetes.io/tls", data: map[string]string{"tls.crt": "", "tls.key": "k"}, lacks: "no value in its key tls.crt, which its type kubernetes.io/tls needs"},
		"a certificate":                      {secretType: "kubernetes.io/tls", data: map[string]string{"tls.crt": "c", "tls.key": "k", "ca.crt": ""}},
		"a certificate of which parts count": {secretType: "kubernetes.io/tls", keys: []spec.KeyMapping{{From: "tls.key"}}, data: map[string]string{"tls.crt": "", "tls.key": "k"}},
		"a login without either":             {secretType: "kubernetes.io/basic-auth", data: map[string]string{"username": "", "realm": "r"}, lacks: "no value in its key username or password, which its type kubernetes.io/basic-auth needs"},
		"a login with one of both":           {secretType: "kubernetes.io/basic-auth", data: map[string]string{"username": "", "password": "p"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			rule := synctest.Rule(t, func(c *spec.Config) { c.Target.Keys = test.keys })
			source := synctest.Source(t, test.data)
			source.Content.Type = test.secretType
			lacks := plan.NewWanted(rule, source, 0).Lacks
			require.Equal(t, test.lacks, lacks.What)
			require.Equal(t, test.lacks == "", lacks.ID == "")
		})
	}
}

func TestPlan(t *testing.T) {
	data := map[string]string{"user": "blog", "password": "s3cret"}
	teamA := &plan.Namespace{Name: "team-a"}
	for sentence, test := range map[string]struct {
		rule   func(*spec.Config)
		state  func(*testing.T, *plan.State)
		action plan.Action
		reason plan.Reason
	}{
		"a namespace without the clone gets it":                         {action: plan.Create, reason: plan.Missing},
		"a clone that is right needs no write":                          {state: inSync, action: plan.Leave, reason: plan.InSync},
		"another version of the source is no reason":                    {state: ofAnotherVersion, action: plan.Leave, reason: plan.InSync},
		"a suspended rule creates nothing":                              {state: suspended(func(*testing.T, *plan.State) {}), action: plan.Leave, reason: plan.Suspended},
		"a suspended rule deletes nothing for its source":               {rule: func(c *spec.Config) { c.OnSourceDeleted = spec.Delete }, state: suspended(withoutSource), action: plan.Leave, reason: plan.Suspended},
		"a suspended rule deletes nothing for a namespace":              {rule: func(c *spec.Config) { c.Namespaces.Include = []string{"team-b"} }, state: suspended(inSync), action: plan.Leave, reason: plan.Suspended},
		"a clone of a suspended rule that is right is right":            {state: suspended(inSync), action: plan.Leave, reason: plan.InSync},
		"a suspended rule that is gone is suspended no more":            {rule: func(c *spec.Config) { c.OnRuleRemoved = spec.Delete }, state: suspended(withoutRule), action: plan.Remove, reason: plan.RuleRemoved},
		"a terminating namespace is left alone":                         {state: func(_ *testing.T, s *plan.State) { s.Namespace = &plan.Namespace{Name: "team-a", Terminating: true} }, action: plan.Leave, reason: plan.NamespaceGone},
		"a namespace that is gone is left alone":                        {state: func(_ *testing.T, s *plan.State) { s.Namespace = nil }, action: plan.Leave, reason: plan.NamespaceGone},
		"kube-* is excluded unless the rule says so":                    {state: inNamespace("kube-public"), action: plan.Leave, reason: plan.NotSelected},
		"the source namespace never gets a clone":                       {state: inNamespace("platform"), action: plan.Leave, reason: plan.NotSelected},
		"Headwater's own namespace never gets a clone":                  {state: inNamespace("headwater-system"), action: plan.Leave, reason: plan.NotSelected},
		"a rule that is gone leaves its clones":                         {state: withoutRule, action: plan.Leave, reason: plan.RuleRemoved},
		"a rule that is gone takes its clones if it said so":            {rule: func(c *spec.Config) { c.OnRuleRemoved = spec.Delete }, state: withoutRule, action: plan.Remove, reason: plan.RuleRemoved},
		"a rule that names another source leaves its old clones":        {state: withoutClaim(anotherSource), action: plan.Leave, reason: plan.RuleChanged},
		"a rule that names another source takes its old clones if told": {rule: func(c *spec.Config) { c.OnRuleRemoved = spec.Delete }, state: withoutClaim(anotherSource), action: plan.Remove, reason: plan.RuleChanged},
		"a rule that names its clones otherwise takes its old clones if told": {
			rule:  func(c *spec.Config) { c.OnRuleRemoved = spec.Delete },
			state: withoutClaim(func(r *spec.Rule) { r.Target.Name = "other" }), action: plan.Remove, reason: plan.RuleChanged,
		},
		"a source that lost its label takes its clones if told": {rule: func(c *spec.Config) { c.OnSourceDeleted = spec.Delete }, state: withoutClaim(bySelector), action: plan.Remove, reason: plan.SourceDeleted},
		"a source that lost its label leaves its clones":        {state: withoutClaim(bySelector), action: plan.Leave, reason: plan.SourceDeleted},
		"a source that is gone leaves its clones":               {state: withoutSource, action: plan.Leave, reason: plan.SourceDeleted},
		"a source that never was calls for nothing":             {state: func(_ *testing.T, s *plan.State) { s.Candidates[0].Source = nil }, action: plan.Leave, reason: plan.SourceDeleted},
		"a source that is gone takes its clones if told":        {rule: func(c *spec.Config) { c.OnSourceDeleted = spec.Delete }, state: withoutSource, action: plan.Remove, reason: plan.SourceDeleted},
		"a rule that is gone takes its clone from another whose source is not there": {
			rule: func(c *spec.Config) { c.OnRuleRemoved = spec.Delete }, state: behindAnother(withoutRule), action: plan.Remove, reason: plan.RuleRemoved,
		},
		"a source that is gone takes its clone from another rule whose source is not there": {
			rule: func(c *spec.Config) { c.OnSourceDeleted = spec.Delete }, state: behindAnother(withoutSource), action: plan.Remove, reason: plan.SourceDeleted,
		},
		"a clone stays for as long as the rule that has its place lacks a source": {
			rule: func(c *spec.Config) {
				c.OnSourceDeleted, c.OnRuleRemoved, c.OnNamespaceUnmatched = spec.Delete, spec.Delete, spec.Delete
			},
			state: behindAnother(inSync), action: plan.Leave, reason: plan.OtherRule,
		},
		"a namespace that no longer matches loses its clone": {rule: func(c *spec.Config) { c.Namespaces.Include = []string{"team-b"} }, state: inSync, action: plan.Remove, reason: plan.NamespaceUnmatched},
		"a namespace that no longer matches keeps its clone if told": {
			rule:  func(c *spec.Config) { c.Namespaces.Include = []string{"team-b"}; c.OnNamespaceUnmatched = spec.Retain },
			state: inSync, action: plan.Leave, reason: plan.NamespaceUnmatched,
		},
		"another rule's clone is not deleted where this rule does not match": {
			rule: func(c *spec.Config) { c.Namespaces.Include = []string{"team-b"} },
			state: synced(func(s *plan.State) {
				s.Clone.Annotations[mark.Rule] = "other"
				s.Former = nil
			}), action: plan.Leave, reason: plan.RuleRemoved,
		},
		"an edited value is put right": {
			state: func(t *testing.T, s *plan.State) {
				edited := synctest.Source(t, map[string]string{"user": "mallory", "password": "s3cret"})
				s.Clone = cloneOf(t, s.Candidates[0].Rule, edited, "team-a")
			}, action: plan.Update, reason: plan.Outdated,
		},
		"an added key is drift": {
			state: func(t *testing.T, s *plan.State) {
				more := synctest.Source(t, map[string]string{"user": "blog", "password": "s3cret", "extra": "x"})
				s.Clone = cloneOf(t, s.Candidates[0].Rule, more, "team-a")
			}, action: plan.Update, reason: plan.Outdated,
		},
		"a lost annotation of ours is drift": {
			state: synced(func(s *plan.State) {
				s.Clone.MadeByUs = true
				delete(s.Clone.Annotations, mark.Source)
			}), action: plan.Update, reason: plan.Unmarked,
		},
		"a clone from before the label of its rule gets it":  {state: synced(func(s *plan.State) { delete(s.Clone.Labels, mark.Rule) }), action: plan.Update, reason: plan.Outdated},
		"a label that names another rule is drift":           {state: synced(func(s *plan.State) { s.Clone.Labels[mark.Rule] = "other" }), action: plan.Update, reason: plan.Outdated},
		"a label that somebody else added is theirs to keep": {state: synced(func(s *plan.State) { s.Clone.Labels["team"] = "a" }), action: plan.Leave, reason: plan.InSync},
		"a source that was recreated is noted on its clones": {state: synced(func(s *plan.State) { s.Candidates[0].Source.UID = "source-2" }), action: plan.Update, reason: plan.Outdated},
		"an object that is not ours is a conflict":           {state: func(_ *testing.T, s *plan.State) { s.Taken = true }, action: plan.Refuse, reason: plan.Conflict},
		"a rule that adopts what is equal takes over an equal object": {
			rule: func(c *spec.Config) { c.OnConflict = spec.ConflictAdoptIfEqual },
			state: func(t *testing.T, s *plan.State) {
				s.Taken, s.Found = true, foreign(t, s.Candidates[0].Source)
			}, action: plan.Update, reason: plan.TakenOver,
		},
		"a rule that adopts what is equal leaves what differs": {
			rule: func(c *spec.Config) { c.OnConflict = spec.ConflictAdoptIfEqual },
			state: func(t *testing.T, s *plan.State) {
				s.Taken, s.Found = true, foreign(t, synctest.Source(t, map[string]string{"user": "other"}))
			}, action: plan.Refuse, reason: plan.Conflict,
		},
		"a rule that overwrites takes over anything": {
			rule: func(c *spec.Config) { c.OnConflict = spec.ConflictOverwrite },
			state: func(t *testing.T, s *plan.State) {
				s.Taken, s.Found = true, foreign(t, synctest.Source(t, map[string]string{"user": "other"}))
			}, action: plan.Update, reason: plan.TakenOver,
		},
		"a rule that overwrites recreates an object of another type": {
			rule: func(c *spec.Config) { c.OnConflict = spec.ConflictOverwrite },
			state: func(t *testing.T, s *plan.State) {
				s.Taken, s.Found = true, foreign(t, s.Candidates[0].Source)
				s.Found.Type = "kubernetes.io/basic-auth"
			}, action: plan.Recreate, reason: plan.TakenOver,
		},
		"a rule that overwrites waits until it knows what": {
			rule:  func(c *spec.Config) { c.OnConflict = spec.ConflictOverwrite },
			state: func(_ *testing.T, s *plan.State) { s.Taken = true }, action: plan.Refuse, reason: plan.Conflict,
		},
		"a clone that lost its label is known by its field manager":                         {state: func(_ *testing.T, s *plan.State) { s.Taken, s.MadeByUs = true, true }, action: plan.Update, reason: plan.Unmarked},
		"a clone that lost its label is put right":                                          {state: synced(func(s *plan.State) { unlabel(s); s.Found.Digests = nil }), action: plan.Update, reason: plan.Unmarked},
		"what only its field manager says is ours is not deleted, to change what cannot be": {state: synced(func(s *plan.State) { unlabel(s); s.Found.Immutable = true }), action: plan.Refuse, reason: plan.Conflict},
		"what only its field manager says is ours is not deleted, to change its type":       {state: synced(func(s *plan.State) { unlabel(s); s.Found.Type = "example.org/own" }), action: plan.Refuse, reason: plan.Conflict},
		"nor is it with the label and without readable marks": {
			state: func(t *testing.T, s *plan.State) {
				inSync(t, s)
				s.Clone.MadeByUs, s.Clone.Type, s.Clone.Annotations = true, "example.org/own", nil
			}, action: plan.Refuse, reason: plan.Conflict,
		},
		"a rule that overwrites recreates it": {
			rule:  func(c *spec.Config) { c.OnConflict = spec.ConflictOverwrite },
			state: synced(func(s *plan.State) { unlabel(s); s.Found.Immutable = true }), action: plan.Recreate, reason: plan.TakenOver,
		},
		"a rule whose name cannot be marks nothing": {state: synced(func(s *plan.State) { s.Clone.Annotations[mark.Rule] = "not a rule's name" }), action: plan.Refuse, reason: plan.Conflict},
		"a clone is no source": {
			state: func(t *testing.T, s *plan.State) {
				mark.Stamp(&s.Candidates[0].Source.ObjectMeta, mark.Clone{Rule: "other", Source: object.Ref{Kind: object.Secret, Namespace: "platform", Name: "first"}})
			}, action: plan.Refuse, reason: plan.SourceIsClone,
		},
		"a clone of another source, in the place of ours, is written over": {
			state: func(t *testing.T, s *plan.State) {
				inSync(t, s)
				s.Clone.Annotations[mark.Source], s.Clone.Annotations[mark.SourceUID] = "Secret/platform/other", "other-1"
			}, action: plan.Update, reason: plan.Outdated,
		},
		"a clone that lost its label and got it back needs no write": {state: synced(func(s *plan.State) { s.Found, s.Clone, s.Taken, s.MadeByUs = s.Clone, nil, true, true }), action: plan.Leave, reason: plan.InSync},
		"an object that was taken over, and that the cache still shows without the label, needs no write": {
			rule: func(c *spec.Config) { c.OnConflict = spec.ConflictOverwrite },
			state: func(t *testing.T, s *plan.State) {
				inSync(t, s)
				s.Found, s.Clone, s.Taken = s.Clone, nil, true
			}, action: plan.Leave, reason: plan.InSync,
		},
		"a clone that lost its label is not emptied with its source": {
			state: func(t *testing.T, s *plan.State) {
				inSync(t, s)
				unlabel(s)
				emptySource(t, s)
			}, action: plan.Hold, reason: plan.SourceEmptied,
		},
		"the label alone does not make an object ours":                 {state: synced(func(s *plan.State) { s.Clone.Annotations = nil }), action: plan.Refuse, reason: plan.Conflict},
		"the first rule in the file wins a place from another's clone": {state: synced(func(s *plan.State) { s.Clone.Annotations[mark.Rule] = "later" }), action: plan.Update, reason: plan.Outdated},
		"a label that the rule no longer adds goes":                    {state: synced(func(s *plan.State) { s.Clone.Labels["once"], s.Clone.LabelsByUs = "added", []string{"once"} }), action: plan.Update, reason: plan.Outdated},
		"a clone that does not name its place needs no write":          {state: synced(func(s *plan.State) { s.Clone.Place = object.NoPlace }), action: plan.Leave, reason: plan.InSync},
		"a clone that does not name its place is left where no rule wants it": {
			rule:  func(c *spec.Config) { c.Namespaces.Include = []string{"team-b"} },
			state: synced(func(s *plan.State) { s.Clone.Place = object.NoPlace }), action: plan.Leave, reason: plan.PlaceUnknown,
		},
		"a clone that does not name its place is deleted where no rule wants it if a user asks for that": {
			rule:  func(c *spec.Config) { c.Namespaces.Include = []string{"team-b"} },
			state: synced(func(s *plan.State) { s.Clone.Place, s.Requested = object.NoPlace, plan.PruneClones }), action: plan.Remove, reason: plan.Pruned,
		},
		"a clone that does not name its place stays when its rule is gone": {
			rule: func(c *spec.Config) { c.OnRuleRemoved = spec.Delete },
			state: func(t *testing.T, s *plan.State) {
				withoutRule(t, s)
				s.Clone.Place = object.NoPlace
			}, action: plan.Leave, reason: plan.PlaceUnknown,
		},
		"a copy of another clone is a conflict, also if its field manager is ours": {state: synced(func(s *plan.State) { s.Clone.Place, s.Clone.MadeByUs = object.Elsewhere, false }), action: plan.Refuse, reason: plan.Conflict},
		"a mark that no longer applies goes":                                       {state: synced(func(s *plan.State) { s.Clone.Annotations[mark.OnRuleRemoved] = "Delete" }), action: plan.Update, reason: plan.Outdated},
		"a clone that is being deleted is recreated afterwards":                    {state: synced(func(s *plan.State) { plantest.Terminate(s) }), action: plan.Leave, reason: plan.CloneTerminating},
		"a change of type needs a new object":                                      {state: synced(func(s *plan.State) { s.Candidates[0].Source.Content.Type = "kubernetes.io/basic-auth" }), action: plan.Recreate, reason: plan.TypeChanged},
		"an immutable clone that differs needs a new object": {
			state: func(t *testing.T, s *plan.State) {
				old := synctest.Source(t, map[string]string{"user": "blog"})
				old.Content.Immutable = true
				s.Clone = cloneOf(t, s.Candidates[0].Rule, old, "team-a")
			}, action: plan.Recreate, reason: plan.WasImmutable,
		},
		"a mutable clone of a source made immutable is updated": {state: synced(func(s *plan.State) { s.Candidates[0].Source.Content.Immutable = true }), action: plan.Update, reason: plan.Outdated},
		"an emptied source is not propagated": {
			state: func(t *testing.T, s *plan.State) { inSync(t, s); emptySource(t, s) }, action: plan.Hold, reason: plan.SourceEmptied,
		},
		"an emptied source makes no clone": {state: emptySource, action: plan.Hold, reason: plan.SourceEmptied},
		"a clone that is as empty as its source gets what else the rule says": {
			state: func(t *testing.T, s *plan.State) {
				emptySource(t, s)
				inSync(t, s)
				s.Clone.Annotations[mark.Rule] = "former"
			}, action: plan.Update, reason: plan.Outdated,
		},
		"an emptied source is propagated once that is approved": {
			state: func(t *testing.T, s *plan.State) {
				inSync(t, s)
				emptySource(t, s)
				s.Candidates[0].Emptied = ""
			}, action: plan.Update, reason: plan.Outdated,
		},
		"a source being deleted is no longer the truth": {state: func(t *testing.T, s *plan.State) { s.Candidates[0].Source.DeletionTimestamp = &metav1.Time{} }, action: plan.Leave, reason: plan.SourceTerminating},
		"a key that the source lacks holds the clone":   {rule: func(c *spec.Config) { c.Target.Keys = []spec.KeyMapping{{From: "tls.crt"}} }, action: plan.Hold, reason: plan.KeyMissing},
		"invalid content reaches no clone": {
			state: func(t *testing.T, s *plan.State) {
				inSync(t, s)
				s.Candidates[0].Source, s.Candidates[0].Invalid = synctest.Source(t, map[string]string{"user": "other"}), invalidUser
			}, action: plan.Hold, reason: plan.Invalid,
		},
		"invalid content reaches no namespace without a clone": {state: func(_ *testing.T, s *plan.State) { s.Candidates[0].Invalid = invalidUser }, action: plan.Hold, reason: plan.Invalid},
		"what an emptied source has may be invalid, too": {
			state: func(t *testing.T, s *plan.State) {
				inSync(t, s)
				emptySource(t, s)
				s.Candidates[0].Invalid = invalidUser
			}, action: plan.Hold, reason: plan.Invalid,
		},
		"a clone that has the invalid content already is in sync": {state: synced(func(s *plan.State) { s.Candidates[0].Invalid = invalidUser }), action: plan.Leave, reason: plan.InSync},
		"a clone that has the invalid content already follows the metadata": {
			state: synced(func(s *plan.State) {
				s.Clone.Annotations[mark.Rule] = "former"
				s.Candidates[0].Invalid = invalidUser
			}), action: plan.Update, reason: plan.Outdated,
		},
		"a terminating namespace needs no valid source": {
			state: synced(func(s *plan.State) {
				s.Namespace = &plan.Namespace{Name: s.Namespace.Name, Terminating: true}
				s.Candidates[0].Invalid = invalidUser
			}), action: plan.Leave, reason: plan.NamespaceGone,
		},
		"a service account token is never cloned": {
			state: func(_ *testing.T, s *plan.State) {
				s.Candidates[0].Source.Content.Type = "kubernetes.io/service-account-token"
			},
			action: plan.Refuse, reason: plan.ForbiddenType,
		},
		"a source in kube-system stays there": {state: func(_ *testing.T, s *plan.State) { s.Candidates[0].Source.Namespace = "kube-system" }, action: plan.Refuse, reason: plan.SystemNamespace},
		"a source in Headwater's own namespace stays there": {
			state: func(t *testing.T, s *plan.State) {
				t.Helper()
				base := s.Candidates[0].Rule.Base
				base.Source.Namespace = "headwater-system"
				own, err := spec.Compile(base, s.Candidates[0].Rule.Config, "headwater-system")
				require.NoError(t, err)
				s.Candidates[0].Rule = &own
			},
			action: plan.Refuse, reason: plan.OwnNamespace,
		},
		"a source in kube-system leaves it if told": {
			state: func(_ *testing.T, s *plan.State) {
				s.Candidates[0].Source.Namespace = "kube-system"
				s.Candidates[0].Rule.Source.AllowSystemNamespace = true
			}, action: plan.Create, reason: plan.Missing,
		},
		"more annotations than the API server stores are refused": {rule: func(c *spec.Config) { c.Target.Annotations = map[string]string{"a": strings.Repeat("x", 256<<10)} }, action: plan.Refuse, reason: plan.TooLarge},
		"annotations that leave no room for the clone's place are refused": {
			rule:   func(c *spec.Config) { c.Target.Annotations = map[string]string{"a": strings.Repeat("x", 256<<10-180)} },
			action: plan.Refuse, reason: plan.TooLarge,
		},
		"what the API server just stores is cloned": {rule: func(c *spec.Config) { c.Target.Annotations = map[string]string{"a": strings.Repeat("x", 255<<10)} }, action: plan.Create, reason: plan.Missing},
	} {
		t.Run(sentence, func(t *testing.T) {
			state := stateOf(synctest.Rule(t, test.rule), synctest.Source(t, data), teamA)
			if test.state != nil {
				test.state(t, &state)
			}
			plantest.AsRead(&state)
			if len(state.Candidates) > 0 && state.Namespace != nil && !state.Candidates[0].Rule.Namespaces.Matches(state.Namespace.Name, nil) {
				state.Candidates = nil
			}
			decision := plan.Plan(state)
			require.Equal(t, test.action, decision.Action)
			require.Equal(t, test.reason, decision.Reason)
			require.NotContains(t, decision.Message, "s3cret")
		})
	}
}

func withoutRule(t *testing.T, s *plan.State) {
	t.Helper()
	inSync(t, s)
	s.Candidates, s.Former = nil, nil
}

// suspended suspends every rule of the state that change makes.
func suspended(change func(*testing.T, *plan.State)) func(*testing.T, *plan.State) {
	return func(t *testing.T, s *plan.State) {
		t.Helper()
		change(t, s)
		for _, candidate := range s.Candidates {
			candidate.Rule.Suspended = true
		}
		if s.Former != nil {
			s.Former.Suspended = true
		}
	}
}

func withoutSource(t *testing.T, s *plan.State) {
	t.Helper()
	inSync(t, s)
	s.Candidates[0].Source = nil
}

// withoutClaim changes the rule after the clone was written, so that it no
// longer claims the place.
func withoutClaim(change func(*spec.Rule)) func(*testing.T, *plan.State) {
	return func(t *testing.T, s *plan.State) {
		t.Helper()
		inSync(t, s)
		changed := *s.Candidates[0].Rule
		change(&changed)
		s.Candidates, s.Former = nil, &changed
	}
}

// behindAnother lets a rule whose source is not there come first, whatever its
// policies say.
func behindAnother(change func(*testing.T, *plan.State)) func(*testing.T, *plan.State) {
	return func(t *testing.T, s *plan.State) {
		t.Helper()
		s.Former = s.Candidates[0].Rule
		change(t, s)
		first := synctest.Rule(t, func(c *spec.Config) { c.OnSourceDeleted = spec.Retain })
		first.Name, first.Source.Name, first.Target.Name = "first", "other", "blogsecret"
		s.Candidates = append([]plan.Candidate{{Rule: first, Ref: first.Source.Ref()}}, s.Candidates...)
	}
}

func anotherSource(r *spec.Rule) { r.Source.Name = "other" }

func bySelector(r *spec.Rule) {
	source := rules.Source{
		Kind: object.Secret, Namespace: "platform", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"share": "yes"}},
	}
	r.Base, _ = rules.NewBase(r.Name, source)
}

// foreign is somebody else's object with the payload of source.
func foreign(t *testing.T, source *object.Full) *object.Digested {
	t.Helper()
	found := source.Digested(synctest.Hasher(t))
	found.UID, found.ResourceVersion = "theirs", "3"
	return found
}

func inSync(t *testing.T, s *plan.State) {
	t.Helper()
	plantest.InSync(t, s)
}

// synced has the clone in place, and then the change made.
func synced(change func(*plan.State)) func(*testing.T, *plan.State) {
	return func(t *testing.T, s *plan.State) {
		t.Helper()
		inSync(t, s)
		change(s)
	}
}

func ofAnotherVersion(t *testing.T, s *plan.State) {
	t.Helper()
	inSync(t, s)
	source := *s.Candidates[0].Source
	source.ResourceVersion = "12"
	s.Candidates[0].Source = &source
}

func inNamespace(name string) func(*testing.T, *plan.State) {
	return func(_ *testing.T, s *plan.State) { s.Namespace = &plan.Namespace{Name: name} }
}

func desired(rule *spec.Rule, source *object.Full) *object.Full {
	return plan.Candidate{Rule: rule, Ref: source.Ref(), Source: source}.Desired("team-a")
}

func TestDesiredSelectsAndRenamesKeys(t *testing.T) {
	rule := synctest.Rule(t, func(c *spec.Config) {
		c.Target.Name = "blog"
		c.Target.Keys = []spec.KeyMapping{{From: "user"}, {From: "password", To: "PASSWORD"}}
	})
	clone := desired(rule, synctest.Source(t, map[string]string{"user": "blog", "password": "s3cret", "other": "x"}))
	require.Equal(t, "blog", clone.Name)
	require.Equal(t, map[string][]byte{"user": []byte("blog"), "PASSWORD": []byte("s3cret")}, clone.Content.Data)
	require.Equal(t, object.Digest(synctest.Hasher(t), clone.Content), clone.Digests)
}

func TestATypeStaysForAsLongAsTheSelectedKeysFulfilIt(t *testing.T) {
	for sentence, test := range map[string]struct {
		source corev1.SecretType
		keys   []spec.KeyMapping
		want   corev1.SecretType
	}{
		"every key of a certificate":       {corev1.SecretTypeTLS, []spec.KeyMapping{{From: "tls.crt"}, {From: "tls.key"}}, corev1.SecretTypeTLS},
		"one key of a certificate":         {corev1.SecretTypeTLS, []spec.KeyMapping{{From: "tls.crt"}}, corev1.SecretTypeOpaque},
		"a key of a certificate, renamed":  {corev1.SecretTypeTLS, []spec.KeyMapping{{From: "tls.crt", To: "cert.pem"}, {From: "tls.key"}}, corev1.SecretTypeOpaque},
		"other keys under the names":       {corev1.SecretTypeTLS, []spec.KeyMapping{{From: "old.crt", To: "tls.crt"}, {From: "tls.key"}}, corev1.SecretTypeTLS},
		"one of the two that would do":     {corev1.SecretTypeBasicAuth, []spec.KeyMapping{{From: "username"}}, corev1.SecretTypeBasicAuth},
		"neither of the two that would do": {corev1.SecretTypeBasicAuth, []spec.KeyMapping{{From: "username", To: "user"}}, corev1.SecretTypeOpaque},
		"pull credentials, renamed":        {corev1.SecretTypeDockerConfigJson, []spec.KeyMapping{{From: ".dockerconfigjson", To: "config.json"}}, corev1.SecretTypeOpaque},
		"old pull credentials, renamed":    {corev1.SecretTypeDockercfg, []spec.KeyMapping{{From: ".dockercfg", To: "config.json"}}, corev1.SecretTypeOpaque},
		"an SSH key, renamed":              {corev1.SecretTypeSSHAuth, []spec.KeyMapping{{From: "ssh-privatekey", To: "id"}}, corev1.SecretTypeOpaque},
		"a type that asks for nothing":     {"example.org/own", []spec.KeyMapping{{From: "username"}}, "example.org/own"},
	} {
		t.Run(sentence, func(t *testing.T) {
			source := synctest.Source(t, map[string]string{
				"tls.crt": "c", "tls.key": "k", "old.crt": "o", "username": "u", "password": "p",
				".dockerconfigjson": "{}", ".dockercfg": "{}", "ssh-privatekey": "s",
			})
			source.Content.Type = string(test.source)
			rule := synctest.Rule(t, func(c *spec.Config) { c.Target.Keys = test.keys })
			require.Equal(t, string(test.want), desired(rule, source).Content.Type)
		})
	}
}

func TestDesiredCopiesOnlyAllowedMetadata(t *testing.T) {
	source := synctest.Source(t, map[string]string{"user": "blog"})
	source.ResourceVersion = "12"
	source.Labels = map[string]string{"team": "platform", "tier.example.org/x": "1", "app.kubernetes.io/instance": "argo", "secret": "no"}
	source.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{s3cret}", "example.org/owner": "us"}
	rule := synctest.Rule(t, func(c *spec.Config) {
		c.Target.CopyLabels = []string{"team", "tier.*", "app.*"}
		c.Target.CopyAnnotations = []string{"*"}
		c.Target.Labels = map[string]string{"added": "yes"}
	})
	clone := desired(rule, source)
	require.Equal(t, map[string]string{
		"team": "platform", "tier.example.org/x": "1", "added": "yes", mark.CloneLabel: "true", mark.Rule: "blog",
	}, clone.Labels)
	require.Equal(t, map[string]string{
		"example.org/owner": "us",
		mark.Rule:           "blog", mark.Source: "Secret/platform/blogsecret", mark.SourceUID: "source-1", mark.SourceVersion: "12", mark.Target: "team-a/blogsecret",
	}, clone.Annotations)
	require.Len(t, source.Labels, 4, "the source in the cache must not be modified")
}

func TestCarryingOutAStepLeavesNothingToDo(t *testing.T) {
	rule := synctest.Rule(t, nil)
	source := synctest.Source(t, map[string]string{"user": "blog"})
	state := stateOf(rule, source, &plan.Namespace{Name: "team-a"})
	require.Equal(t, plan.Create, plan.Plan(state).Action)
	state.Clone = cloneOf(t, rule, source, "team-a")
	require.False(t, plan.Plan(state).Writes())
}

// A count reads each clone twice, and a watch may take it away in between.
func TestACloneThatIsGoneSinceItWasListedGoes(t *testing.T) {
	require.Equal(t, plan.Goes, plan.State{Namespace: &plan.Namespace{Name: "team-a"}}.Fate())
}
