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
		"taking the label off is refused": {
			request: updateClone(alice, newClone(), newClone(func(o *object.Full) { o.Labels = nil })),
			reason:  decide.ReasonMarksChanged, refused: true,
		},
		"changing the label is refused": {
			request: updateClone(alice, newClone(), newClone(withLabel(mark.CloneLabel, "no"))), reason: decide.ReasonMarksChanged, refused: true,
		},
		"taking the rule's label off is refused": {
			request: updateClone(alice, newClone(), newClone(func(o *object.Full) { o.Labels = map[string]string{mark.CloneLabel: "true"} })),
			reason:  decide.ReasonMarksChanged, refused: true,
		},
		"naming another rule by its label is refused": {
			request: updateClone(alice, newClone(), newClone(withLabel(mark.Rule, "other"))), reason: decide.ReasonMarksChanged, refused: true,
		},
		"the rule's label marks nothing on an object that is no clone": {
			request: updateClone(alice, unmarked(), newClone(func(o *object.Full) { o.Labels, o.Annotations = map[string]string{mark.Rule: "blogsecret"}, nil })),
			reason:  decide.ReasonNotProtected,
		},
		"naming another source is refused": {
			request: updateClone(alice, newClone(), newClone(annotated(mark.Source, "Secret/x/y"))), reason: decide.ReasonMarksChanged, refused: true,
		},
		"adding an annotation of ours is refused": {
			request: updateClone(alice, newClone(), newClone(annotated(mark.OnRuleRemoved, "Delete"))), reason: decide.ReasonMarksChanged, refused: true,
		},
		"forging a report on the consumers of a revision is refused": {
			request: updateClone(alice, newClone(), newClone(annotated(mark.Consumers, "7 Healthy"))), reason: decide.ReasonMarksChanged, refused: true,
		},
		"Headwater may report on them": {
			request: updateClone(protecttest.HeadwaterUser, newClone(), newClone(annotated(mark.Consumers, "7 Healthy"))), reason: decide.ReasonByHeadwater,
		},
		"taking all annotations off is refused": {
			request: updateClone(alice, newClone(), newClone(func(o *object.Full) { o.Annotations = nil })),
			reason:  decide.ReasonMarksChanged, refused: true,
		},
		"threat T4: forging a clone out of an object is refused": {
			request: updateClone(alice, unmarked(), newClone()), reason: decide.ReasonMarksChanged, refused: true,
		},
		"threat T4: creating a forged clone is refused": {
			request: createClone(alice, newClone()), reason: decide.ReasonMarksChanged, refused: true,
		},
		"the label alone is refused": {
			request: createClone(alice, newClone(func(o *object.Full) { o.Annotations = nil })), reason: decide.ReasonMarksChanged, refused: true,
		},
		"those who may change the source may not change marks": {
			request: with(createClone(alice, newClone()), masters), reason: decide.ReasonMarksChanged, refused: true,
		},
		"Headwater may": {request: createClone(protecttest.HeadwaterUser, newClone()), reason: decide.ReasonByHeadwater},
		"nobody passes for Headwater while its name is unknown": {
			world: func(w *decide.World) { w.Headwater = "" }, request: createClone(protecttest.HeadwaterUser, newClone()),
			reason: decide.ReasonMarksChanged, refused: true,
		},
		"a label of one's own passes":      {request: updateClone(alice, newClone(), newClone(withLabel("team", "a"))), reason: decide.ReasonNoProtectedChange},
		"a rewrite without change passes":  {request: updateClone(alice, newClone(), newClone()), reason: decide.ReasonNoProtectedChange},
		"an edit of the data is reverted":  {request: updateClone(alice, newClone(), newClone(protecttest.SetData("x"))), reason: decide.ReasonNoProtectedChange},
		"a delete is healed":               {request: removeClone(alice), reason: decide.ReasonNotProtected},
		"creating what is no clone passes": {request: createClone(alice, unmarked()), reason: decide.ReasonNotProtected},
		"annotations mark nothing without the label": {
			request: createClone(alice, newClone(func(o *object.Full) { o.Labels = nil })), reason: decide.ReasonNotProtected,
		},
		"invariant 10: a new object that cannot be read is refused": {
			request: createClone(alice, nil), reason: decide.ReasonUnreadable, refused: true,
		},
		"invariant 10: a clone created in another namespace than the request says is refused": {
			request: with(createClone(alice, newClone()), func(r *decide.Request) { r.Namespace = "team-b" }), reason: decide.ReasonUnreadable, refused: true,
		},
		"invariant 10: a clone as it was that cannot be read is refused": {
			request: updateClone(alice, nil, newClone()), reason: decide.ReasonUnreadable, refused: true,
		},
		"a kind that is never cloned is free": {
			request: with(createClone(alice, newClone()), func(r *decide.Request) { r.Kind = "" }), reason: decide.ReasonNotProtected,
		},
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
		"an edit is refused":  {rule: deny, request: edit(alice), reason: decide.ReasonProtected, refused: true},
		"a delete is refused": {rule: deny, request: removeClone(alice), reason: decide.ReasonProtected, refused: true},
		"a delete of the whole collection is refused": {
			rule: deny, request: with(removeClone(alice), func(r *decide.Request) { r.Name = "" }), reason: decide.ReasonProtected, refused: true,
		},
		"threat T6: freezing by immutable is refused": {
			rule: deny, request: updateClone(alice, newClone(), newClone(func(o *object.Full) { o.Content.Immutable = true })),
			reason: decide.ReasonProtected, refused: true,
		},
		"an owner, because the garbage collector would then delete it, is refused": {
			rule: deny, request: updateClone(alice, newClone(), newClone(owned)),
			reason: decide.ReasonProtected, refused: true,
		},
		"loophole 7: a rewrite without change passes": {rule: deny, request: updateClone(alice, newClone(), newClone()), reason: decide.ReasonNoProtectedChange},
		"a label of one's own passes": {
			rule: deny, request: updateClone(alice, newClone(), newClone(withLabel("team", "a"))), reason: decide.ReasonNoProtectedChange,
		},
		"so does one that is copied: it may be somebody's own, and else is healed": {
			rule: func(r *spec.Rule) { r.Clones, r.Copied.Labels = spec.Deny, []string{"*"} }, request: updateClone(alice, newClone(), newClone(withLabel("team", "a"))),
			reason: decide.ReasonNoProtectedChange,
		},
		"Headwater may": {rule: deny, request: edit(protecttest.HeadwaterUser), reason: decide.ReasonByHeadwater},
		"those who may change the source may": {
			rule: deny, request: with(edit(alice), func(r *decide.Request) { r.User.Groups = []string{"system:masters"} }), reason: decide.ReasonExempt,
		},
		"but not its marks": {
			rule: deny, request: with(updateClone(alice, newClone(), unmarked()), func(r *decide.Request) { r.User.Groups = []string{"system:masters"} }),
			reason: decide.ReasonMarksChanged, refused: true,
		},
		"an owner is refused where deletions alone are protected": {
			rule: func(r *spec.Rule) { r.Clones, r.Operations = spec.Deny, []spec.Operation{spec.Delete} }, request: updateClone(alice, newClone(), newClone(owned)),
			reason: decide.ReasonProtected, refused: true,
		},
		"an identity from the settings deletes what has no owner": {
			rule: deny, world: func(w *decide.World) { w.SystemIdentities = []string{"operator"} }, request: removeClone("operator"), reason: decide.ReasonGarbageCollection,
		},
		"an operation that the rule leaves out passes": {
			rule:    func(r *spec.Rule) { r.Clones, r.Operations = spec.Deny, []spec.Operation{spec.Update} },
			request: removeClone(alice), reason: decide.ReasonOperationNotProtected,
		},
		"the namespace controller empties a namespace":      {rule: deny, request: removeClone(namespaceController), reason: decide.ReasonGarbageCollection},
		"the garbage collector deletes what has no owner":   {rule: deny, request: removeClone(garbageCollector), reason: decide.ReasonGarbageCollection},
		"so they do under the controller manager's name":    {rule: deny, request: removeClone(controllerManager), reason: decide.ReasonGarbageCollection},
		"a system controller may not edit":                  {rule: deny, request: edit(namespaceController), reason: decide.ReasonProtected, refused: true},
		"an object of the same name that is no clone":       {rule: deny, request: updateClone(alice, unmarked(), unmarked(protecttest.SetData("x"))), reason: decide.ReasonNotProtected},
		"a clone of another rule is reverted":               {rule: deny, request: updateClone(alice, newClone(annotated(mark.Rule, "b")), newClone(annotated(mark.Rule, "b"), protecttest.SetData("x"))), reason: decide.ReasonNoProtectedChange},
		"invariant 10: a clone that cannot be read is kept": {rule: deny, request: with(removeClone(alice), func(r *decide.Request) { r.Old = nil }), reason: decide.ReasonUnreadable, refused: true},
	})
}
