package protect

import (
	"context"
	"slices"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/lab"
)

// wayRules are beside engineRules; where a rule allows nobody, it is the unlisted
// who may.
const wayRules = `
- name: eng-frozen
  source: {kind: Secret, namespace: eng-src, name: frozen}
  sync: {namespaces: {include: [eng-a]}}
  protect: {operations: [Update, Delete], clones: Deny, guardNamespace: false}
- name: eng-binary
  source: {kind: ConfigMap, namespace: eng-src, name: binary}
  sync: {namespaces: {include: [eng-a]}}
  protect: {operations: [Update, Delete], clones: Deny, guardNamespace: false}
- name: eng-going
  source: {kind: Secret, namespace: eng-src, name: going}
  protect: {operations: [Update, Delete], guardNamespace: false}
- name: eng-emptied
  source: {kind: Secret, namespace: eng-emptied, name: source}
  protect: {operations: [Update, Delete], guardNamespace: false}
`

const (
	// pinning keeps what is deleted.
	pinning    = "example.org/mine"
	marksOfEng = `,"labels":{"headwater.dev/clone":"true"},"annotations":{"headwater.dev/rule":"eng","headwater.dev/source":"Secret/eng-src/shared"}`
)

// waysWorld makes what wayRules are about: some of it in deletion, and held there
// by a finalizer, and all of a namespace that goes.
func (e *env) waysWorld() {
	e.Helper()
	e.Namespace("eng-emptied")
	e.pinned(lab.Secret("eng-src", "going", map[string]string{"k": "v"}))
	e.pinned(markedBy("eng", "eng-a", "going"))
	e.pinned(markedBy("eng-healed", "eng-a", "going-healed"))
	e.pinned(lab.Secret("eng-emptied", "source", map[string]string{"k": "v"}))
	e.pinned(markedBy("eng", "eng-emptied", "clone"))
	require.NoError(e, e.Admin.CoreV1().Namespaces().Delete(e.Context(), "eng-emptied", metav1.DeleteOptions{}))
	yes := true
	frozen := lab.Secret("eng-src", "frozen", map[string]string{"k": "v"})
	frozen.Immutable = &yes
	e.Create("eng-src", frozen)
	e.Create("eng-src", &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "binary"}, Data: map[string]string{"k": "v"}, BinaryData: map[string][]byte{"b": {0xff}},
	})
}

// markedBy is a Secret that passes for a clone of the rule.
func markedBy(rule, namespace, name string) *corev1.Secret {
	secret := forged(namespace, name)
	secret.Annotations[mark.Rule] = rule
	secret.StringData = map[string]string{"k": "v"}
	return secret
}

// pinned makes a Secret that is in deletion until the test ends.
func (e *env) pinned(secret *corev1.Secret) {
	e.Helper()
	secrets := e.Admin.CoreV1().Secrets(secret.Namespace)
	secret.Finalizers = []string{pinning}
	_, err := secrets.Create(e.Context(), secret, metav1.CreateOptions{})
	require.NoError(e, err)
	require.NoError(e, secrets.Delete(e.Context(), secret.Name, metav1.DeleteOptions{}))
	e.Cleanup(func() {
		letGo := []byte(`{"metadata":{"finalizers":null}}`)
		_, _ = secrets.Patch(context.WithoutCancel(e.Context()), secret.Name, types.MergePatchType, letGo, metav1.PatchOptions{})
	})
	oneMore := []byte(`{"metadata":{"finalizers":["example.org/mine","example.org/pin"]}}`)
	_, err = secrets.Patch(e.Context(), secret.Name, types.MergePatchType, oneMore, metav1.PatchOptions{})
	require.True(e, apierrors.IsInvalid(err), "the API server itself lets nobody pin what is in deletion: %v", err)
}

// requestsInDeletion are about what is in deletion, as dry runs.
func requestsInDeletion() map[string]request {
	all := requests{}
	for what, going := range map[string]struct {
		object             object
		mayEdit, mayDelete []string
	}{
		"a source in deletion":                      {object{"secrets", "eng-src", "going"}, unlisted, unlisted},
		"a denied clone in deletion":                {object{"secrets", "eng-a", "going"}, exempt, slices.Concat(exempt, deleters)},
		"a healed clone in deletion":                {object{"secrets", "eng-a", "going-healed"}, everybody, everybody},
		"a source in a namespace in deletion":       {object{"secrets", "eng-emptied", "source"}, unlisted, slices.Concat(unlisted, deleters)},
		"a denied clone in a namespace in deletion": {object{"secrets", "eng-emptied", "clone"}, exempt, slices.Concat(exempt, deleters)},
	} {
		all.add("an edit of "+what, going.object.merge("{"+otherValue+"}"), dry(), going.mayEdit)
		all.add("a delete of "+what, going.object.delete(metav1.DeleteOptions{}), dry(), going.mayDelete)
		all.add("a delete by the collection of "+what, going.object.deleteOfCollection, dry(), going.mayDelete)
		all.add("a letting go of "+what, going.object.merge(`{"metadata":{"finalizers":null}}`), dry(), everybody)
		all.add("a letting go, with an edit, of "+what, going.object.merge(`{"metadata":{"finalizers":null},`+otherValue+`}`), dry(), going.mayEdit)
	}
	return all
}

// wayRequests are dry runs, or with no dry for real.
func wayRequests(dry []string) map[string]request {
	all := requests{}
	each := func(of string, ways map[string]way, may []string) {
		for sentence, try := range ways {
			all.add(sentence+" of "+of, try, dry, may)
		}
	}
	source := object{"secrets", "eng-src", "shared"}
	each("a source", source.edits(), exempt)
	each("a source", source.deletes(), exempt)
	each("a source", source.trifles(), everybody)
	all.add("a replacement by force of a source", source.replacement("", otherValue), dry, exempt)
	selected := object{"configmaps", "eng-src", "selected"}
	all.add("an edit of what was selected before", twoSteps(
		selected.merge(`{"metadata":{"labels":{"share":null}}}`), selected.edits()["an edit by merge patch"],
	), dry, unlisted)

	denied, mayDelete := object{"secrets", "eng-a", "shared"}, slices.Concat(exempt, deleters)
	each("a denied clone", denied.edits(), exempt)
	each("a denied clone", denied.deletes(), mayDelete)
	each("a denied clone", denied.trifles(), everybody)
	each("a denied clone", denied.unmarkings(), unlisted)
	all.add("a replacement by force of a denied clone", denied.replacement("", otherValue), dry, mayDelete)
	all.add("a replacement by force of a denied clone, with its marks", denied.replacement(marksOfEng, otherValue), dry, unlisted)
	all.add("an edit of a clone once unmarked", twoSteps(
		denied.unmarkings()["an unmarking by JSON patch"], denied.edits()["an edit by merge patch"],
	), dry, exempt)
	healed := object{"secrets", "eng-a", "healed"}
	each("a healed clone", healed.edits(), everybody)
	each("a healed clone", healed.deletes(), everybody)
	each("a healed clone", healed.unmarkings(), unlisted)
	all.add("a replacement by force of a healed clone", healed.replacement("", otherValue), dry, everybody)
	all.add("a replacement by force of a healed clone, with its marks", healed.replacement(marksOfEng, otherValue), dry, unlisted)

	binary, binaryClone := object{"configmaps", "eng-src", "binary"}, object{"configmaps", "eng-a", "binary"}
	mayDelete = slices.Concat(unlisted, deleters)
	each("a ConfigMap", binary.edits(), unlisted)
	each("a ConfigMap", binary.deletes(), unlisted)
	each("a ConfigMap", binary.trifles(), everybody)
	each("a cloned ConfigMap", binaryClone.edits(), unlisted)
	each("a cloned ConfigMap", binaryClone.deletes(), mayDelete)
	frozen, frozenClone := object{"secrets", "eng-src", "frozen"}, object{"secrets", "eng-a", "frozen"}
	const thawed = `"immutable":false,` + otherValue
	all.add("a delete of a frozen source", frozen.delete(metav1.DeleteOptions{}), dry, unlisted)
	all.add("a thawing of a source, by a replacement", frozen.replacement("", thawed), dry, unlisted)
	all.add("a delete of a frozen clone", frozenClone.delete(metav1.DeleteOptions{}), dry, mayDelete)
	all.add("a thawing of a clone, by a replacement", frozenClone.replacement("", thawed), dry, mayDelete)
	return all
}

type requests map[string]request

func (r requests) add(sentence string, try way, dry, may []string) {
	r[sentence] = request{func(ctx context.Context, as kubernetes.Interface) error { return try(ctx, as, dry) }, may}
}
