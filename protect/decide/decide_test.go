package decide_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/internal/protecttest"
	"github.com/headwater-k8s/headwater/protect/spec"
)

const alice = "alice"

type decideCase struct {
	rule    func(*spec.Rule)
	world   func(*decide.World)
	request decide.Request
	reason  decide.Reason
	refused bool
}

func passes(request decide.Request, reason decide.Reason) decideCase {
	return decideCase{request: request, reason: reason}
}

func refused(request decide.Request, reason decide.Reason) decideCase {
	return decideCase{request: request, reason: reason, refused: true}
}

// denied is refused because a rule protects the object.
func denied(request decide.Request) decideCase { return refused(request, decide.ReasonProtected) }

func (c decideCase) under(rule func(*spec.Rule)) decideCase { c.rule = rule; return c }

func (c decideCase) in(world func(*decide.World)) decideCase { c.world = world; return c }

func runDecide(t *testing.T, cases map[string]decideCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rule := protecttest.BlogRule()
			if tc.rule != nil {
				rule = protecttest.BlogRule(tc.rule)
			}
			world := newWorld()
			if tc.world != nil {
				world = newWorld(tc.world)
			}
			verdict := decide.Decide(tc.request, rules.NewSet(rule), world)
			require.Equal(t, tc.reason, verdict.Reason)
			require.Equal(t, !tc.refused, verdict.Allowed)
			require.NotContains(t, fmt.Sprintf("%+v", verdict), protecttest.Canary, "invariant 11: no value leaves in a verdict")

			dry := decide.Decide(with(tc.request, func(r *decide.Request) { r.DryRun = true }), rules.NewSet(rule), world)
			require.Equal(t, verdict, dry, "a dry run is judged the same")
		})
	}
}

func TestDecideWhatIsProtected(t *testing.T) {
	edit := update(alice, protecttest.NewSecret(), protecttest.NewSecret(protecttest.SetData("other")))
	runDecide(t, map[string]decideCase{
		"an edit by a stranger is refused":  denied(edit),
		"a delete by a stranger is refused": denied(remove(alice)),
		"another object of the namespace is free": {
			request: with(edit, func(r *decide.Request) {
				r.Name = "other"
				r.Old = protecttest.NewSecret(func(o *object.Full) { o.Name = "other" })
				r.New = protecttest.NewSecret(protecttest.SetData("x"), func(o *object.Full) { o.Name = "other" })
			}),
			reason: decide.ReasonNotProtected,
		},
		"the same name of another kind is free": passes(with(edit, func(r *decide.Request) { r.Kind = object.ConfigMap }), decide.ReasonNotProtected),
		"the same name in another namespace is free": {
			request: with(edit, func(r *decide.Request) {
				r.Namespace = "other"
				r.Old = protecttest.NewSecret(func(o *object.Full) { o.Namespace = "other" })
				r.New = protecttest.NewSecret(protecttest.SetData("x"), func(o *object.Full) { o.Namespace = "other" })
			}),
			reason: decide.ReasonNotProtected,
		},
		"a resource that is never protected is free":                           passes(with(edit, func(r *decide.Request) { r.Kind = "" }), decide.ReasonNotProtected),
		"an operation that the rule leaves out is free":                        passes(edit, decide.ReasonOperationNotProtected).under(func(r *spec.Rule) { r.Operations = []spec.Operation{spec.Create} }),
		"an edit is free when the rule lists deletes only":                     passes(edit, decide.ReasonNoProtectedChange).under(onlyDelete),
		"but not an owner, because the garbage collector would then delete it": denied(update(alice, protecttest.NewSecret(), protecttest.NewSecret(owned))).under(onlyDelete),
		"nor one let go: of those that stay, none may be there":                denied(update(alice, protecttest.NewSecret(owned), protecttest.NewSecret())).under(onlyDelete),
		"but by the garbage collector, with whatever else is free": {
			rule: onlyDelete, request: update(garbageCollector, protecttest.NewSecret(owned), protecttest.NewSecret(protecttest.SetData("x"))), reason: decide.ReasonGarbageCollection,
		},
		"making it by a stranger is refused":                              denied(create(alice, protecttest.NewSecret())),
		"making it under a name that the API server generates is refused": denied(with(create(alice, protecttest.NewSecret()), func(r *decide.Request) { r.Name = "" })),
		"making another object is free":                                   passes(create(alice, protecttest.NewSecret(func(o *object.Full) { o.Name = "other" })), decide.ReasonNotProtected),
		"making it is free when the rule leaves it out": {
			rule: func(r *spec.Rule) { r.Operations = []spec.Operation{spec.Update, spec.Delete} }, request: create(alice, protecttest.NewSecret()), reason: decide.ReasonOperationNotProtected,
		},
		"making it by Headwater passes": passes(create(protecttest.HeadwaterUser, protecttest.NewSecret()), decide.ReasonByHeadwater),
		"making it by a system controller is refused, even in a namespace in deletion": denied(create(namespaceController, protecttest.NewSecret())).in(terminating("platform")),
		"making it by a user that the rule allows passes":                              passes(create(alice, protecttest.NewSecret()), decide.ReasonExempt).under(func(r *spec.Rule) { r.Allow.Users = []string{alice} }),
		"a delete is free when the rule lists updates only":                            passes(remove(alice), decide.ReasonOperationNotProtected).under(func(r *spec.Rule) { r.Operations = []spec.Operation{spec.Update} }),
		"an operation that is neither update nor delete is free":                       passes(with(edit, func(r *decide.Request) { r.Operation = "" }), decide.ReasonNotProtected),
		"loophole 8: deleting a collection sends no name, and is refused all the same": denied(with(remove(alice), func(r *decide.Request) { r.Name = "" })),
		"loophole 9: an object pinned in deletion by a finalizer cannot be edited":     denied(update(alice, protecttest.NewSecret(inDeletion), protecttest.NewSecret(inDeletion, protecttest.SetData("x")))),
		"loophole 7: a rewrite that changes nothing passes":                            passes(update(alice, protecttest.NewSecret(), protecttest.NewSecret()), decide.ReasonNoProtectedChange),
		"loophole 7: removing a finalizer passes": {
			request: update(alice,
				protecttest.NewSecret(func(o *object.Full) { o.Finalizers = []string{"foregroundDeletion"} }), protecttest.NewSecret()),
			reason: decide.ReasonNoProtectedChange,
		},
		"a label that is copied to every clone": denied(update(alice, protecttest.NewSecret(), protecttest.NewSecret(withLabel("tier", "x")))).under(func(r *spec.Rule) { r.Copied.Labels = []string{"tier*"} }),
		"a label that is not": {
			rule:    func(r *spec.Rule) { r.Copied.Labels = []string{"tier*"} },
			request: update(alice, protecttest.NewSecret(), protecttest.NewSecret(withLabel("team", "x"))), reason: decide.ReasonNoProtectedChange,
		},
		"loophole 10: stripping our marks is refused":                             denied(update(alice, protecttest.NewSecret(func(o *object.Full) { o.Labels = map[string]string{"headwater.dev/clone": "true"} }), protecttest.NewSecret())),
		"threat T6: adding a finalizer is refused":                                denied(update(alice, protecttest.NewSecret(), protecttest.NewSecret(func(o *object.Full) { o.Finalizers = []string{"a/b"} }))),
		"threat T6: freezing by immutable is refused":                             denied(update(alice, protecttest.NewSecret(), protecttest.NewSecret(func(o *object.Full) { o.Content.Immutable = true }))),
		"threat T18: a forced replacement starts with a delete, which is refused": denied(remove(alice)),
	})
}

func onlyDelete(r *spec.Rule) { r.Operations = []spec.Operation{spec.Delete} }

func owned(o *object.Full) { o.OwnerReferences = []metav1.OwnerReference{{UID: "x"}} }

func inDeletion(o *object.Full) {
	now := metav1.Now()
	o.DeletionTimestamp, o.Finalizers = &now, []string{"a/b"}
}

func TestDecideWhoMayEdit(t *testing.T) {
	edit := func(user string, groups ...string) decide.Request {
		request := update(user, protecttest.NewSecret(), protecttest.NewSecret(protecttest.SetData("other")))
		request.User.Groups = groups
		return request
	}
	deployer := func(r *spec.Rule) {
		r.Allow.ServiceAccounts = []spec.ServiceAccount{{Namespace: "ci", Name: "deployer"}}
	}
	runDecide(t, map[string]decideCase{
		"a user of the rule":            passes(edit(alice), decide.ReasonExempt).under(func(r *spec.Rule) { r.Allow.Users = []string{alice} }),
		"a group of the rule":           passes(edit(alice, "dev", "ops"), decide.ReasonExempt).under(func(r *spec.Rule) { r.Allow.Groups = []string{"ops"} }),
		"a service account of the rule": passes(edit("system:serviceaccount:ci:deployer"), decide.ReasonExempt).under(deployer),
		"threat T11: a service account of the same name elsewhere does not count": denied(edit("system:serviceaccount:other:deployer")).under(deployer),
		"threat T11: a name that only begins alike does not count":                denied(edit("system:serviceaccount:ci:deployer2")).under(deployer),
		"a holder of the ClusterRole through a ClusterRoleBinding":                passes(edit(alice, "system:masters"), decide.ReasonExempt),
		"a rule without any exception":                                            denied(edit(alice, "system:masters")).under(func(r *spec.Rule) { r.Allow.ClusterRoles = []string{} }),
		"Headwater itself":                                                        passes(edit("system:serviceaccount:headwater:headwater"), decide.ReasonByHeadwater),
		"nobody passes for Headwater while its name is unknown":                   refused(edit(""), decide.ReasonUnreadable).in(func(w *decide.World) { w.Headwater = "" }),
		"another service account of Headwater's namespace does not pass for it":   denied(edit("system:serviceaccount:headwater:other")),
	})
}

func TestDecideSystemControllers(t *testing.T) {
	ownedBy := func(references ...metav1.OwnerReference) *object.Full {
		return protecttest.NewSecret(func(o *object.Full) { o.OwnerReferences = references })
	}
	yes, no := true, false
	first := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "a", BlockOwnerDeletion: &yes}
	released := first
	released.BlockOwnerDeletion = &no
	renamed := first
	renamed.Name = "b"
	runDecide(t, map[string]decideCase{
		"loophole 5: the namespace controller empties a namespace in deletion": passes(remove(namespaceController), decide.ReasonNamespaceTerminating).in(terminating("platform")),
		"loophole 6: it may have the name of the controller manager":           passes(remove(controllerManager), decide.ReasonNamespaceTerminating).in(terminating("platform")),
		"the garbage collector as well":                                        passes(remove(garbageCollector), decide.ReasonNamespaceTerminating).in(terminating("platform")),
		"an identity from the settings as well": {
			world: func(w *decide.World) {
				terminating("platform")(w)
				w.SystemIdentities = []string{"operator"}
			},
			request: remove("operator"), reason: decide.ReasonNamespaceTerminating,
		},
		"a system controller may not delete while the namespace lives":      denied(remove(namespaceController)),
		"another namespace in deletion does not count":                      denied(remove(namespaceController)).in(terminating("other")),
		"a stranger may not delete in a namespace in deletion":              denied(remove(alice)).in(terminating("platform")),
		"loophole 6: other service accounts of kube-system are strangers":   denied(remove("system:serviceaccount:kube-system:default")).in(terminating("platform")),
		"a system controller may not edit, even in a namespace in deletion": denied(update(namespaceController, protecttest.NewSecret(), protecttest.NewSecret(protecttest.SetData("x")))).in(terminating("platform")),
		"the garbage collector drops an owner":                              passes(update(garbageCollector, ownedBy(first), ownedBy()), decide.ReasonGarbageCollection),
		"the garbage collector ceases to block an owner":                    passes(update(controllerManager, ownedBy(first), ownedBy(released)), decide.ReasonGarbageCollection),
		"the garbage collector may not add an owner":                        denied(update(garbageCollector, ownedBy(), ownedBy(first))),
		"the garbage collector may not change an owner":                     denied(update(garbageCollector, ownedBy(first), ownedBy(renamed))),
		"the garbage collector may not begin to block":                      denied(update(garbageCollector, ownedBy(released), ownedBy(first))),
		"the garbage collector may not change data on the way":              denied(update(garbageCollector, ownedBy(first), protecttest.NewSecret(protecttest.SetData("x")))),
		"an identity from the settings drops an owner as well": {
			world:   func(w *decide.World) { w.SystemIdentities = []string{"operator"} },
			request: update("operator", ownedBy(first), ownedBy()), reason: decide.ReasonGarbageCollection,
		},
		"but may not edit":                 denied(update("operator", protecttest.NewSecret(), protecttest.NewSecret(protecttest.SetData("x")))).in(func(w *decide.World) { w.SystemIdentities = []string{"operator"} }),
		"a stranger may not drop an owner": denied(update(alice, ownedBy(first), ownedBy())),
	})
}

func TestDecideNamespace(t *testing.T) {
	unguarded := func(r *spec.Rule) {
		guard := false
		r.GuardNamespace = &guard
	}
	runDecide(t, map[string]decideCase{
		"a namespace that holds a source is kept":                                refused(removeNamespace(alice, "platform"), decide.ReasonNamespaceGuarded),
		"a namespace that holds none may go":                                     passes(removeNamespace(alice, "platform"), decide.ReasonSourceAbsent).in(func(w *decide.World) { w.HasSource = func(spec.Rule) bool { return false } }),
		"another namespace may go":                                               passes(removeNamespace(alice, "other"), decide.ReasonNotProtected),
		"a rule may leave the namespace unguarded":                               passes(removeNamespace(alice, "platform"), decide.ReasonNotProtected).under(unguarded),
		"an unguarded namespace may go even when the request cannot be made out": passes(with(removeNamespace(alice, "platform"), func(r *decide.Request) { r.Old = nil }), decide.ReasonNotProtected).under(unguarded),
		"who may change the source may delete its namespace":                     passes(with(removeNamespace(alice, "platform"), func(r *decide.Request) { r.User.Groups = []string{"system:masters"} }), decide.ReasonExempt),
		"a system controller may not begin the deletion of a namespace":          refused(removeNamespace(namespaceController, "platform"), decide.ReasonNamespaceGuarded).in(terminating("platform")),
		"a namespace in deletion already may be deleted again":                   passes(with(removeNamespace(alice, "platform"), func(r *decide.Request) { inDeletion(r.Old) }), decide.ReasonNamespaceTerminating),
		"an update of a namespace is free":                                       passes(with(removeNamespace(alice, "platform"), func(r *decide.Request) { r.Operation = spec.Update }), decide.ReasonNotProtected),
	})
}

// Invariant 10.
func TestDecideRefusesWhatItCannotMakeOut(t *testing.T) {
	edit := update(alice, protecttest.NewSecret(), protecttest.NewSecret())
	unreadable := func(request decide.Request, change func(*decide.Request)) decideCase {
		return decideCase{request: with(request, change), reason: decide.ReasonUnreadable, refused: true}
	}
	runDecide(t, map[string]decideCase{
		"the old object is missing":             unreadable(edit, func(r *decide.Request) { r.Old = nil }),
		"the old object is missing, and a name": unreadable(edit, func(r *decide.Request) { r.Old, r.Name = nil, "" }),
		"nothing names the object":              unreadable(edit, func(r *decide.Request) { r.Old, r.Name, r.Namespace = nil, "", "" }),
		"the request names another object":      unreadable(edit, func(r *decide.Request) { r.Name = "other" }),
		"the old object has no name":            unreadable(edit, func(r *decide.Request) { r.Old = protecttest.NewSecret(func(o *object.Full) { o.Name = "" }) }),
		"the request names another namespace":   unreadable(edit, func(r *decide.Request) { r.Namespace = "other" }),
		"the new object is missing":             unreadable(edit, func(r *decide.Request) { r.New = nil }),
		"the new object has another name":       unreadable(edit, func(r *decide.Request) { r.New = protecttest.NewSecret(func(o *object.Full) { o.Name = "other" }) }),
		"nobody asks":                           unreadable(edit, func(r *decide.Request) { r.User.Name = "" }),
		"nobody asks to delete":                 unreadable(remove(alice), func(r *decide.Request) { r.User.Name = "" }),
		"an exempt requester of an unreadable request": unreadable(edit, func(r *decide.Request) {
			r.Old, r.User.Groups = nil, []string{"system:masters"}
		}),
		"the namespace is missing":                                                 unreadable(removeNamespace(alice, "platform"), func(r *decide.Request) { r.Old = nil }),
		"the namespace is called two names":                                        unreadable(removeNamespace(alice, "platform"), func(r *decide.Request) { r.Name = "other" }),
		"an unreadable object of another namespace, which may be a clone":          unreadable(edit, func(r *decide.Request) { r.Old, r.Namespace = nil, "other" }),
		"an unreadable object of another namespace may be deleted, as a clone may": passes(with(remove(alice), func(r *decide.Request) { r.Old, r.Namespace = nil, "other" }), decide.ReasonNotProtected),
	})
}

func TestDecideModes(t *testing.T) {
	edit := update(alice, protecttest.NewSecret(), protecttest.NewSecret(protecttest.SetData("other")))
	decideIn := func(mode spec.Mode, message string) decide.Verdict {
		return decide.Decide(edit, rules.NewSet(protecttest.BlogRule(func(r *spec.Rule) { r.Mode, r.Message = mode, message })), newWorld())
	}
	t.Run("Enforce refuses and names the object, the rule and who may edit", func(t *testing.T) {
		verdict := decideIn(spec.Enforce, "")
		require.False(t, verdict.Allowed)
		require.Equal(t, `headwater: Secret platform/blogsecret is protected by rule "blogsecret": ClusterRole cluster-admin (through a ClusterRoleBinding) may change it`, verdict.Message)
		require.Equal(t, decide.OutcomeDenied, verdict.Outcome())
		require.Equal(t, []string{"data"}, verdict.Changed)
	})
	t.Run("a message of the rule replaces the default", func(t *testing.T) {
		require.Equal(t, "ask #platform", decideIn(spec.Enforce, "ask #platform").Message)
	})
	t.Run("Warn lets pass with a warning that fits a header", func(t *testing.T) {
		verdict := decideIn(spec.Warn, "ask\n#platform")
		require.True(t, verdict.Allowed)
		require.Equal(t, "ask #platform", verdict.Warning)
		require.Equal(t, decide.OutcomeWarned, verdict.Outcome())
	})
	t.Run("Audit lets pass with a note for the audit log", func(t *testing.T) {
		verdict := decideIn(spec.Audit, "")
		require.True(t, verdict.Allowed)
		require.Empty(t, verdict.Warning)
		require.Contains(t, verdict.Audit["violation"], "is protected by rule")
		require.Equal(t, decide.OutcomeAudited, verdict.Outcome())
	})
	t.Run("a mode that nobody knows enforces", func(t *testing.T) {
		require.False(t, decideIn("Sometimes", "").Allowed)
	})
	t.Run("an exempt requester is told of nothing, and the audit log by which grant", func(t *testing.T) {
		request := with(edit, func(r *decide.Request) { r.User.Groups = []string{"system:masters"} })
		verdict := decide.Decide(request, rules.NewSet(protecttest.BlogRule(func(r *spec.Rule) { r.Mode = spec.Warn })), newWorld())
		require.Empty(t, verdict.Warning)
		require.Equal(t, "ClusterRole cluster-admin", verdict.Audit["allowed-by"])
		require.Equal(t, decide.OutcomeAllowed, verdict.Outcome())
	})
}

func TestDecideTakesTheStrictestRule(t *testing.T) {
	warn := protecttest.BlogRule(func(r *spec.Rule) { r.Mode = spec.Warn })
	enforce := protecttest.NewRule("other", object.Secret, "platform", "other")
	for name, set := range map[string]*rules.Set[spec.Rule]{
		"the strict rule first": rules.NewSet(enforce, warn),
		"the strict rule last":  rules.NewSet(warn, enforce),
	} {
		t.Run(name, func(t *testing.T) {
			unknown := with(update(alice, nil, nil), func(r *decide.Request) { r.Name = "" })
			verdict := decide.Decide(unknown, set, newWorld())
			require.False(t, verdict.Allowed)
			require.Equal(t, "other", verdict.Rule)

			verdict = decide.Decide(removeNamespace(alice, "platform"), set, newWorld())
			require.False(t, verdict.Allowed)
			require.Equal(t, "other", verdict.Rule)
			require.Contains(t, verdict.Message, `headwater: Namespace platform holds Secret platform/other`)
		})
	}
	t.Run("an exemption from one rule of a namespace is none from another", func(t *testing.T) {
		mine := protecttest.BlogRule(func(r *spec.Rule) { r.Allow.Users = []string{alice} })
		verdict := decide.Decide(removeNamespace(alice, "platform"), rules.NewSet(mine, enforce), newWorld())
		require.False(t, verdict.Allowed)
		require.Equal(t, "other", verdict.Rule)
	})
}

func TestDecideSourcesBySelector(t *testing.T) {
	shared := labelled(map[string]string{"share": "yes", "team": "a"})
	edited := func(change ...func(*object.Full)) decide.Request {
		return update(alice, protecttest.NewSecret(shared), protecttest.NewSecret(append([]func(*object.Full){shared}, change...)...))
	}
	for sentence, test := range map[string]struct {
		request decide.Request
		reason  decide.Reason
		refused bool
	}{
		"an edit of what is selected is refused":   {edited(protecttest.SetData("x")), decide.ReasonProtected, true},
		"a delete of what is selected is refused":  {with(remove(alice), func(r *decide.Request) { shared(r.Old) }), decide.ReasonProtected, true},
		"what is not selected is free":             {update(alice, protecttest.NewSecret(), protecttest.NewSecret(protecttest.SetData("x"))), decide.ReasonNotProtected, false},
		"loophole 10: taking the label off first":  {edited(labelled(nil)), decide.ReasonProtected, true},
		"loophole 10: with the edit":               {edited(labelled(nil), protecttest.SetData("x")), decide.ReasonProtected, true},
		"loophole 10: changing the label":          {edited(labelled(map[string]string{"share": "no"})), decide.ReasonProtected, true},
		"a label that the rule does not select by": {edited(labelled(map[string]string{"share": "yes"})), decide.ReasonNoProtectedChange, false},
		"making an object a source is refused":     {update(alice, protecttest.NewSecret(), protecttest.NewSecret(shared)), decide.ReasonProtected, true},
		"as is making it with the label":           {create(alice, protecttest.NewSecret(shared)), decide.ReasonProtected, true},
		"making it without the label is free":      {create(alice, protecttest.NewSecret()), decide.ReasonNotProtected, false},
		"a new object that cannot be read is held to be selected": {
			with(create(alice, protecttest.NewSecret()), func(r *decide.Request) { r.New = nil }), decide.ReasonUnreadable, true,
		},
		"as is what an object becomes that cannot be read": {
			with(update(alice, protecttest.NewSecret(), nil), func(*decide.Request) {}), decide.ReasonUnreadable, true,
		},
		"an object that cannot be read is held to be selected": {
			with(edited(), func(r *decide.Request) { r.Old = nil }), decide.ReasonUnreadable, true,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			verdict := decide.Decide(test.request, rules.NewSet(protecttest.SelectingRule()), newWorld())
			require.Equal(t, test.reason, verdict.Reason)
			require.Equal(t, !test.refused, verdict.Allowed)
		})
	}
	t.Run("the namespace is guarded while it holds any, and the message says what", func(t *testing.T) {
		verdict := decide.Decide(removeNamespace(alice, "platform"), rules.NewSet(protecttest.SelectingRule()), newWorld())
		require.Contains(t, verdict.Message, `Namespace platform holds a Secret selected by share=yes, which is protected by rule "shared"`)
	})
	t.Run("a rule that leaves creation out lets objects be made a source", func(t *testing.T) {
		set := rules.NewSet(protecttest.SelectingRule(func(r *spec.Rule) { r.Operations = []spec.Operation{spec.Update, spec.Delete} }))
		for _, request := range []decide.Request{update(alice, protecttest.NewSecret(), protecttest.NewSecret(shared)), create(alice, protecttest.NewSecret(shared))} {
			require.Equal(t, decide.ReasonOperationNotProtected, decide.Decide(request, set, newWorld()).Reason)
		}
	})
	t.Run("where deletions alone are protected, taking off the label is one", func(t *testing.T) {
		set := rules.NewSet(protecttest.SelectingRule(onlyDelete))
		require.False(t, decide.Decide(edited(labelled(nil)), set, newWorld()).Allowed)
		require.True(t, decide.Decide(edited(protecttest.SetData("x"), withLabel("team", "b")), set, newWorld()).Allowed)
	})
	t.Run("a denial says who may make it", func(t *testing.T) {
		require.Equal(t, `headwater: Secret platform/blogsecret would be a source of rule "shared", which protects it: `+
			`ClusterRole cluster-admin (through a ClusterRoleBinding) may make it`,
			decide.Decide(update(alice, protecttest.NewSecret(), protecttest.NewSecret(shared)), rules.NewSet(protecttest.SelectingRule()), newWorld()).Message)
	})
	t.Run("a denial names the object", func(t *testing.T) {
		require.Contains(t, decide.Decide(edited(protecttest.SetData("x")), rules.NewSet(protecttest.SelectingRule()), newWorld()).Message, `headwater: Secret platform/blogsecret is protected by rule "shared"`)
	})
}

func TestDecideAsksEveryRuleThatProtectsAnObject(t *testing.T) {
	edit := update(alice, protecttest.NewSecret(labelled(map[string]string{"share": "yes"})), protecttest.NewSecret(labelled(map[string]string{"share": "yes"}), protecttest.SetData("x")))
	named, selecting := protecttest.BlogRule(func(r *spec.Rule) { r.Allow.Users = []string{alice} }), protecttest.SelectingRule()
	for _, set := range []*rules.Set[spec.Rule]{rules.NewSet(named, selecting), rules.NewSet(selecting, named)} {
		verdict := decide.Decide(edit, set, newWorld())
		require.False(t, verdict.Allowed)
		require.Equal(t, "shared", verdict.Rule)
	}
}

func TestMessageNamesWhoMayEdit(t *testing.T) {
	many := make([]string, 12)
	for i := range many {
		many[i] = fmt.Sprintf("user%d", i)
	}
	for name, tc := range map[string]struct {
		allow spec.Allow
		want  string
	}{
		"nobody": {spec.Allow{}, "only a holder of the override permission"},
		"some of each": {
			spec.Allow{
				ClusterRoles: []string{"a"}, Users: []string{"b"}, Groups: []string{"c"},
				ServiceAccounts: []spec.ServiceAccount{{Namespace: "ci", Name: "d"}},
			},
			"ClusterRole a (through a ClusterRoleBinding), user b, group c or service account ci/d",
		},
		"too many to list": {
			spec.Allow{Users: many}, "user " + strings.Join(many[:8], ", user ") + " or 4 more",
		},
	} {
		t.Run(name, func(t *testing.T) {
			rule := protecttest.BlogRule()
			rule.Allow = tc.allow
			require.Equal(t, `headwater: Secret a/b is protected by rule "blogsecret": `+tc.want+" may change it", decide.ProtectedMessage(rule, spec.Update, "Secret a/b"))
		})
	}
}
