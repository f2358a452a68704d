package sync

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
)

func testHasher(t *testing.T) *digest.Hasher {
	t.Helper()
	hasher, err := digest.New(make([]byte, digest.KeySize))
	require.NoError(t, err)
	return hasher
}

func testRule(t *testing.T, change func(*Config)) *Rule {
	t.Helper()
	var config Config
	if change != nil {
		change(&config)
	}
	config.Default()
	rule, err := Compile(rules.Base{Name: "blog", Source: rules.Source{Kind: object.Secret, Namespace: "platform", Name: "blogsecret"}}, config, "headwater-system")
	require.NoError(t, err)
	return &rule
}

func testSource(t *testing.T, data map[string]string) *object.Full {
	t.Helper()
	source := &object.Full{
		ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "blogsecret", UID: "source-1"},
		Kind:       object.Secret,
		Content:    object.Content{Type: "Opaque", Data: map[string][]byte{}},
	}
	for key, value := range data {
		source.Content.Data[key] = []byte(value)
	}
	source.Digests = object.Digest(testHasher(t), source.Content)
	return source
}

// cloneOf is what the cache shows after rule's clone of source was written.
func cloneOf(t *testing.T, rule *Rule, source *object.Full, namespace string) *object.Digested {
	t.Helper()
	clone := Desired(*rule, source, namespace).Digested(testHasher(t))
	clone.UID, clone.ResourceVersion = "clone-1", "7"
	return clone
}

func TestPlan(t *testing.T) {
	data := map[string]string{"user": "blog", "password": "s3cret"}
	teamA := &Namespace{Name: "team-a"}
	for sentence, test := range map[string]struct {
		rule   func(*Config)
		state  func(*testing.T, *State)
		action Action
		reason Reason
	}{
		"a namespace without the clone gets it":        {action: Create, reason: Missing},
		"a clone that is right needs no write":         {state: inSync, action: Leave, reason: InSync},
		"a terminating namespace is left alone":        {state: func(_ *testing.T, s *State) { s.Namespace = &Namespace{Name: "team-a", Terminating: true} }, action: Leave, reason: NamespaceGone},
		"a namespace that is gone is left alone":       {state: func(_ *testing.T, s *State) { s.Namespace = nil }, action: Leave, reason: NamespaceGone},
		"kube-* is excluded unless the rule says so":   {state: inNamespace("kube-public"), action: Leave, reason: NotSelected},
		"the source namespace never gets a clone":      {state: inNamespace("platform"), action: Leave, reason: NotSelected},
		"Headwater's own namespace never gets a clone": {state: inNamespace("headwater-system"), action: Leave, reason: NotSelected},
		"a rule that is gone leaves its clones":        {state: func(t *testing.T, s *State) { inSync(t, s); s.Rule = nil }, action: Leave, reason: RuleRemoved},
		"a source that is gone leaves its clones":      {state: func(t *testing.T, s *State) { inSync(t, s); s.Source = nil }, action: Leave, reason: SourceDeleted},
		"a source that is gone takes its clones if told": {
			rule:  func(c *Config) { c.OnSourceDeleted = Delete },
			state: func(t *testing.T, s *State) { inSync(t, s); s.Source = nil }, action: Remove, reason: SourceDeleted,
		},
		"a namespace that no longer matches loses its clone": {
			rule:  func(c *Config) { c.Namespaces.Include = []string{"team-b"} },
			state: inSync, action: Remove, reason: NamespaceUnmatched,
		},
		"a namespace that no longer matches keeps its clone if told": {
			rule:  func(c *Config) { c.Namespaces.Include = []string{"team-b"}; c.OnNamespaceUnmatched = Retain },
			state: inSync, action: Leave, reason: NamespaceUnmatched,
		},
		"another rule's clone is not deleted where this rule does not match": {
			rule: func(c *Config) { c.Namespaces.Include = []string{"team-b"} },
			state: func(t *testing.T, s *State) {
				inSync(t, s)
				s.Clone.Annotations[mark.Rule] = "other"
			}, action: Leave, reason: NamespaceUnmatched,
		},
		"an edited value is put right": {
			state: func(t *testing.T, s *State) {
				edited := testSource(t, map[string]string{"user": "mallory", "password": "s3cret"})
				s.Clone = cloneOf(t, s.Rule, edited, "team-a")
			}, action: Update, reason: Outdated,
		},
		"an added key is drift": {
			state: func(t *testing.T, s *State) {
				more := testSource(t, map[string]string{"user": "blog", "password": "s3cret", "extra": "x"})
				s.Clone = cloneOf(t, s.Rule, more, "team-a")
			}, action: Update, reason: Outdated,
		},
		"a lost annotation of ours is drift": {
			state: func(t *testing.T, s *State) {
				inSync(t, s)
				s.Clone.WrittenByUs = true
				delete(s.Clone.Annotations, mark.Source)
			}, action: Update, reason: Outdated,
		},
		"a label that somebody else added is theirs to keep": {
			state:  func(t *testing.T, s *State) { inSync(t, s); s.Clone.Labels["team"] = "a" },
			action: Leave, reason: InSync,
		},
		"a source that was made anew is noted on its clones": {
			state:  func(t *testing.T, s *State) { inSync(t, s); s.Source.UID = "source-2" },
			action: Update, reason: Outdated,
		},
		"an object that is not ours is a conflict": {
			state: func(_ *testing.T, s *State) { s.Taken = true }, action: Refuse, reason: Conflict,
		},
		"a rule that adopts what is equal takes over an equal object": {
			rule: func(c *Config) { c.OnConflict = ConflictAdoptIfEqual },
			state: func(t *testing.T, s *State) {
				s.Taken, s.Found = true, foreign(t, s.Source)
			}, action: Update, reason: TakenOver,
		},
		"a rule that adopts what is equal leaves what differs": {
			rule: func(c *Config) { c.OnConflict = ConflictAdoptIfEqual },
			state: func(t *testing.T, s *State) {
				s.Taken, s.Found = true, foreign(t, testSource(t, map[string]string{"user": "other"}))
			}, action: Refuse, reason: Conflict,
		},
		"a rule that overwrites takes over anything": {
			rule: func(c *Config) { c.OnConflict = ConflictOverwrite },
			state: func(t *testing.T, s *State) {
				s.Taken, s.Found = true, foreign(t, testSource(t, map[string]string{"user": "other"}))
			}, action: Update, reason: TakenOver,
		},
		"a rule that overwrites makes an object of another type anew": {
			rule: func(c *Config) { c.OnConflict = ConflictOverwrite },
			state: func(t *testing.T, s *State) {
				s.Taken, s.Found = true, foreign(t, s.Source)
				s.Found.Type = "kubernetes.io/basic-auth"
			}, action: Recreate, reason: TakenOver,
		},
		"a rule that overwrites waits until it knows what": {
			rule:  func(c *Config) { c.OnConflict = ConflictOverwrite },
			state: func(_ *testing.T, s *State) { s.Taken = true }, action: Refuse, reason: Conflict,
		},
		"a clone that lost its label is known by its field manager": {
			state: func(_ *testing.T, s *State) { s.Taken, s.WrittenByUs = true, true }, action: Update, reason: Unmarked,
		},
		"the label alone does not make an object ours": {
			state: func(t *testing.T, s *State) {
				inSync(t, s)
				s.Clone.Annotations = nil
			}, action: Refuse, reason: Conflict,
		},
		"the first rule in the file wins a target": {
			state: func(_ *testing.T, s *State) { s.Claimant = "earlier" }, action: Refuse, reason: OtherRule,
		},
		"a change of type needs a new object": {
			state:  func(t *testing.T, s *State) { inSync(t, s); s.Source.Content.Type = "kubernetes.io/basic-auth" },
			action: Recreate, reason: TypeChanged,
		},
		"an immutable clone that differs needs a new object": {
			state: func(t *testing.T, s *State) {
				old := testSource(t, map[string]string{"user": "blog"})
				old.Content.Immutable = true
				s.Clone = cloneOf(t, s.Rule, old, "team-a")
			}, action: Recreate, reason: WasImmutable,
		},
		"a mutable clone of a source made immutable is updated": {
			state:  func(t *testing.T, s *State) { inSync(t, s); s.Source.Content.Immutable = true },
			action: Update, reason: Outdated,
		},
		"an emptied source is not propagated": {
			state: func(t *testing.T, s *State) { inSync(t, s); s.Source = testSource(t, nil) }, action: Hold, reason: SourceEmptied,
		},
		"a source being deleted is no longer the truth": {
			state: func(t *testing.T, s *State) {
				s.Source.DeletionTimestamp = &metav1.Time{}
			}, action: Leave, reason: SourceTerminating,
		},
		"a key that the source lacks holds the clone": {
			rule: func(c *Config) { c.Target.Keys = []KeyMapping{{From: "tls.crt"}} }, action: Hold, reason: KeyMissing,
		},
		"a service account token is never cloned": {
			state:  func(_ *testing.T, s *State) { s.Source.Content.Type = "kubernetes.io/service-account-token" },
			action: Refuse, reason: ForbiddenType,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			state := State{Rule: testRule(t, test.rule), Source: testSource(t, data), Namespace: teamA}
			if test.state != nil {
				test.state(t, &state)
			}
			step := Plan(state)
			require.Equal(t, test.action, step.Action)
			require.Equal(t, test.reason, step.Reason)
			require.NotContains(t, step.Message, "s3cret")
		})
	}
}

// foreign is somebody else's object with the payload of source.
func foreign(t *testing.T, source *object.Full) *object.Digested {
	t.Helper()
	found := source.Digested(testHasher(t))
	found.UID, found.ResourceVersion = "theirs", "3"
	return found
}

func inSync(t *testing.T, s *State) {
	t.Helper()
	s.Clone = cloneOf(t, s.Rule, s.Source, s.Namespace.Name)
}

func inNamespace(name string) func(*testing.T, *State) {
	return func(_ *testing.T, s *State) { s.Namespace = &Namespace{Name: name} }
}

func TestDesiredSelectsAndRenamesKeys(t *testing.T) {
	rule := testRule(t, func(c *Config) {
		c.Target.Name = "blog"
		c.Target.Keys = []KeyMapping{{From: "user"}, {From: "password", To: "PASSWORD"}}
	})
	desired := Desired(*rule, testSource(t, map[string]string{"user": "blog", "password": "s3cret", "other": "x"}), "team-a")
	require.Equal(t, "blog", desired.Name)
	require.Equal(t, map[string][]byte{"user": []byte("blog"), "PASSWORD": []byte("s3cret")}, desired.Content.Data)
	require.Equal(t, object.Digest(testHasher(t), desired.Content), desired.Digests)
}

func TestDesiredCopiesOnlyAllowedMetadata(t *testing.T) {
	source := testSource(t, map[string]string{"user": "blog"})
	source.Labels = map[string]string{"team": "platform", "tier.example.org/x": "1", "app.kubernetes.io/instance": "argo", "secret": "no"}
	source.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{s3cret}", "example.org/owner": "us"}
	rule := testRule(t, func(c *Config) {
		c.Target.CopyLabels = []string{"team", "tier.*", "app.*"}
		c.Target.CopyAnnotations = []string{"*"}
		c.Target.Labels = map[string]string{"added": "yes"}
	})
	desired := Desired(*rule, source, "team-a")
	require.Equal(t, map[string]string{
		"team": "platform", "tier.example.org/x": "1", "added": "yes", mark.CloneLabel: "true",
	}, desired.Labels)
	require.Equal(t, map[string]string{
		"example.org/owner": "us",
		mark.Rule:           "blog", mark.Source: "Secret/platform/blogsecret", mark.SourceUID: "source-1",
	}, desired.Annotations)
	require.Len(t, source.Labels, 4, "the source in the cache must not be modified")
}

func TestCarryingOutAStepLeavesNothingToDo(t *testing.T) {
	rule := testRule(t, nil)
	source := testSource(t, map[string]string{"user": "blog"})
	state := State{Rule: rule, Source: source, Namespace: &Namespace{Name: "team-a"}}
	require.Equal(t, Create, Plan(state).Action)
	state.Clone = cloneOf(t, rule, source, "team-a")
	require.False(t, Plan(state).Writes())
}
