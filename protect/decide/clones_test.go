package decide_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/internal/protecttest"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// newClone is a clone of blogsecret in team-a.
func newClone(change ...func(*object.Full)) *object.Full {
	return protecttest.NewSecret(append([]func(*object.Full){func(o *object.Full) {
		o.Namespace = "team-a"
		mark.Stamp(&o.ObjectMeta, mark.Clone{Rule: "blogsecret", Source: protecttest.BlogRule().Source.Ref(), SourceUID: "uid-1"})
	}}, change...)...)
}

// unmarked is an object with the name of a clone, without its marks.
func unmarked(change ...func(*object.Full)) *object.Full {
	return newClone(append(change, func(o *object.Full) { o.Labels, o.Annotations = nil, nil })...)
}

func annotated(key, value string) func(*object.Full) {
	return func(o *object.Full) { o.Annotations = object.Merged(o.Annotations, map[string]string{key: value}) }
}

func withLabel(key, value string) func(*object.Full) {
	return func(o *object.Full) { o.Labels = object.Merged(o.Labels, map[string]string{key: value}) }
}

func inTeam(request decide.Request) decide.Request {
	request.Namespace = "team-a"
	return request
}

func updateClone(user string, before, after *object.Full) decide.Request {
	return inTeam(update(user, before, after))
}

func createClone(user string, created *object.Full) decide.Request {
	request := updateClone(user, nil, created)
	request.Operation = spec.Create
	return request
}

func removeClone(user string) decide.Request {
	return inTeam(with(remove(user), func(r *decide.Request) { r.Old = newClone() }))
}

func TestDecideMarksAreHeadwatersAlone(t *testing.T) {
	masters := func(r *decide.Request) { r.User.Groups = []string{"system:masters"} }
	runDecide(t, map[string]decideCase{
		"taking the label off is refused":             refused(updateClone(alice, newClone(), newClone(func(o *object.Full) { o.Labels = nil })), decide.ReasonMarksChanged),
		"changing the label is refused":               refused(updateClone(alice, newClone(), newClone(withLabel(mark.CloneLabel, "no"))), decide.ReasonMarksChanged),
		"taking the rule's label off is refused":      refused(updateClone(alice, newClone(), newClone(func(o *object.Full) { o.Labels = map[string]string{mark.CloneLabel: "true"} })), decide.ReasonMarksChanged),
		"naming another rule by its label is refused": refused(updateClone(alice, newClone(), newClone(withLabel(mark.Rule, "other"))), decide.ReasonMarksChanged),
		"the rule's label marks nothing on an object that is no clone": {
			request: updateClone(alice, unmarked(), newClone(func(o *object.Full) { o.Labels, o.Annotations = map[string]string{mark.Rule: "blogsecret"}, nil })),
			reason:  decide.ReasonNotProtected,
		},
		"naming another source is refused":                           refused(updateClone(alice, newClone(), newClone(annotated(mark.Source, "Secret/x/y"))), decide.ReasonMarksChanged),
		"adding an annotation of ours is refused":                    refused(updateClone(alice, newClone(), newClone(annotated(mark.OnRuleRemoved, "Delete"))), decide.ReasonMarksChanged),
		"forging a report on the consumers of a revision is refused": refused(updateClone(alice, newClone(), newClone(annotated(mark.Consumers, "7 Healthy"))), decide.ReasonMarksChanged),
		"Headwater may report on them":                               passes(updateClone(protecttest.HeadwaterUser, newClone(), newClone(annotated(mark.Consumers, "7 Healthy"))), decide.ReasonByHeadwater),
		"taking all annotations off is refused":                      refused(updateClone(alice, newClone(), newClone(func(o *object.Full) { o.Annotations = nil })), decide.ReasonMarksChanged),
		"threat T4: forging a clone out of an object is refused":     refused(updateClone(alice, unmarked(), newClone()), decide.ReasonMarksChanged),
		"threat T4: creating a forged clone is refused":              refused(createClone(alice, newClone()), decide.ReasonMarksChanged),
		"creating one without its place is refused":                  refused(createClone(alice, newClone(func(o *object.Full) { delete(o.Annotations, mark.Target) })), decide.ReasonMarksChanged),
		"a copy of the label alone passes":                           passes(createClone(alice, newClone(func(o *object.Full) { o.Annotations = nil })), decide.ReasonNotProtected),
		"a copy at another place passes":                             passes(createClone(alice, newClone(annotated(mark.Target, "other/place"))), decide.ReasonNotProtected),
		"the owner of a copy may change its marks":                   passes(updateClone(alice, newClone(annotated(mark.Target, "other/place")), newClone(annotated(mark.Target, "other/place"), annotated(mark.Rule, "x"))), decide.ReasonNotProtected),
		"making a clone of a copy is refused":                        refused(updateClone(alice, newClone(annotated(mark.Target, "other/place")), newClone()), decide.ReasonMarksChanged),
		"sending a clone elsewhere is refused":                       refused(updateClone(alice, newClone(), newClone(annotated(mark.Target, "other/place"))), decide.ReasonMarksChanged),
		"taking the place off a clone is refused":                    refused(updateClone(alice, newClone(), newClone(func(o *object.Full) { delete(o.Annotations, mark.Target) })), decide.ReasonMarksChanged),
		"those who may change the source may not change marks":       refused(with(createClone(alice, newClone()), masters), decide.ReasonMarksChanged),
		"Headwater may": passes(createClone(protecttest.HeadwaterUser, newClone()), decide.ReasonByHeadwater),
		"who impersonates Headwater has no UID, and may not": refused(with(createClone(protecttest.HeadwaterUser, newClone()), func(r *decide.Request) { r.User.UID = "" }), decide.ReasonMarksChanged),
		"a user that is no service account has none either, and goes by name": {
			world:   func(w *decide.World) { w.Headwater = "headwater" },
			request: with(createClone("headwater", newClone()), func(r *decide.Request) { r.User.UID = "" }), reason: decide.ReasonByHeadwater,
		},
		"nobody passes for Headwater while its name is unknown":                               refused(createClone(protecttest.HeadwaterUser, newClone()), decide.ReasonMarksChanged).in(func(w *decide.World) { w.Headwater = "" }),
		"a label of one's own passes":                                                         passes(updateClone(alice, newClone(), newClone(withLabel("team", "a"))), decide.ReasonNoProtectedChange),
		"a rewrite without change passes":                                                     passes(updateClone(alice, newClone(), newClone()), decide.ReasonNoProtectedChange),
		"an edit of the data is reverted":                                                     passes(updateClone(alice, newClone(), newClone(protecttest.SetData("x"))), decide.ReasonNoProtectedChange),
		"a delete is healed":                                                                  passes(removeClone(alice), decide.ReasonNotProtected),
		"creating what is no clone passes":                                                    passes(createClone(alice, unmarked()), decide.ReasonNotProtected),
		"annotations mark nothing without the label":                                          passes(createClone(alice, newClone(func(o *object.Full) { o.Labels = nil })), decide.ReasonNotProtected),
		"invariant 10: a new object that cannot be read is refused":                           refused(createClone(alice, nil), decide.ReasonUnreadable),
		"invariant 10: a clone created in another namespace than the request says is refused": refused(with(createClone(alice, newClone()), func(r *decide.Request) { r.Namespace = "team-b" }), decide.ReasonUnreadable),
		"invariant 10: a clone as it was that cannot be read is refused":                      refused(updateClone(alice, nil, newClone()), decide.ReasonUnreadable),
		"a kind that is never cloned is free":                                                 passes(with(createClone(alice, newClone()), func(r *decide.Request) { r.Kind = "" }), decide.ReasonNotProtected),
	})
	t.Run("a trial run that only audits refuses no marks", func(t *testing.T) {
		verdict := decide.Decide(createClone(alice, newClone()), rules.NewSet(protecttest.BlogRule(func(r *spec.Rule) { r.Mode = spec.Audit })), newWorld())
		require.True(t, verdict.Allowed)
		require.Equal(t, decide.OutcomeAudited, verdict.Outcome())
		require.Equal(t, "blogsecret", verdict.Rule)
	})
	t.Run("a rule that the file does not have is not named", func(t *testing.T) {
		verdict := decide.Decide(createClone(alice, newClone(annotated(mark.Rule, "made-up"))), rules.NewSet(protecttest.BlogRule()), newWorld())
		require.Empty(t, verdict.Rule)
		require.Contains(t, verdict.Message, "headwater: Secret team-a/blogsecret carries the label or annotations of a clone")
	})
}

func TestDecideDeniedClones(t *testing.T) {
	deny := func(r *spec.Rule) { r.Clones = spec.Deny }
	edit := func(user string) decide.Request {
		return updateClone(user, newClone(), newClone(protecttest.SetData("x")))
	}
	runDecide(t, map[string]decideCase{
		"an edit is refused":                                                       denied(edit(alice)).under(deny),
		"a delete is refused":                                                      denied(removeClone(alice)).under(deny),
		"a delete of the whole collection is refused":                              denied(with(removeClone(alice), func(r *decide.Request) { r.Name = "" })).under(deny),
		"threat T6: freezing by immutable is refused":                              denied(updateClone(alice, newClone(), newClone(func(o *object.Full) { o.Content.Immutable = true }))).under(deny),
		"loophole 7: a rewrite without change passes":                              passes(updateClone(alice, newClone(), newClone()), decide.ReasonNoProtectedChange).under(deny),
		"a label of one's own passes":                                              passes(updateClone(alice, newClone(), newClone(withLabel("team", "a"))), decide.ReasonNoProtectedChange).under(deny),
		"an owner, because the garbage collector would then delete it, is refused": denied(updateClone(alice, newClone(), newClone(owned))).under(deny),
		"so does one that is copied: it may be somebody's own, and else is healed": passes(updateClone(alice, newClone(), newClone(withLabel("team", "a"))), decide.ReasonNoProtectedChange).under(func(r *spec.Rule) { r.Clones, r.Copied.Labels = spec.Deny, []string{"*"} }),
		"Headwater may":                       passes(edit(protecttest.HeadwaterUser), decide.ReasonByHeadwater).under(deny),
		"those who may change the source may": passes(with(edit(alice), func(r *decide.Request) { r.User.Groups = []string{"system:masters"} }), decide.ReasonExempt).under(deny),
		"but not its marks":                   refused(with(updateClone(alice, newClone(), unmarked()), func(r *decide.Request) { r.User.Groups = []string{"system:masters"} }), decide.ReasonMarksChanged).under(deny),
		"an owner is refused where deletions alone are protected": denied(updateClone(alice, newClone(), newClone(owned))).under(func(r *spec.Rule) { r.Clones, r.Operations = spec.Deny, []spec.Operation{spec.Delete} }),
		"an identity from the settings deletes what has no owner": passes(removeClone("operator"), decide.ReasonGarbageCollection).under(deny).in(func(w *decide.World) { w.SystemIdentities = []string{"operator"} }),
		"an operation that the rule leaves out passes":            passes(removeClone(alice), decide.ReasonOperationNotProtected).under(func(r *spec.Rule) { r.Clones, r.Operations = spec.Deny, []spec.Operation{spec.Update} }),
		"the namespace controller empties a namespace":            passes(removeClone(namespaceController), decide.ReasonGarbageCollection).under(deny),
		"the garbage collector deletes what has no owner":         passes(removeClone(garbageCollector), decide.ReasonGarbageCollection).under(deny),
		"so they do under the controller manager's name":          passes(removeClone(controllerManager), decide.ReasonGarbageCollection).under(deny),
		"a system controller may not edit":                        denied(edit(namespaceController)).under(deny),
		"an object of the same name that is no clone":             passes(updateClone(alice, unmarked(), unmarked(protecttest.SetData("x"))), decide.ReasonNotProtected).under(deny),
		"a clone of another rule is reverted":                     passes(updateClone(alice, newClone(annotated(mark.Rule, "b")), newClone(annotated(mark.Rule, "b"), protecttest.SetData("x"))), decide.ReasonNoProtectedChange).under(deny),
		"invariant 10: a clone that cannot be read is kept":       refused(with(removeClone(alice), func(r *decide.Request) { r.Old = nil }), decide.ReasonUnreadable).under(deny),
	})
}
