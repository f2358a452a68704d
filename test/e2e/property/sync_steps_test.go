package property

import (
	"fmt"
	"maps"
	"strings"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

func (w *world) randomSource() object.Ref {
	return object.Ref{Kind: pick(w, object.Kinds), Namespace: pick(w, sourceNamespaces), Name: pick(w, sourceNames)}
}

// putSource makes a source, or makes it another.
func (w *world) putSource() {
	ref := w.randomSource()
	source := &object.Full{ObjectMeta: object.NewMeta(ref), Kind: ref.Kind, Content: w.randomContent(ref.Kind)}
	source.Labels = map[string]string{"share": pick(w, []string{"yes", "yes", "no"}), "color": pick(w, []string{"red", "blue"})}
	source.Annotations = map[string]string{"note": pick(w, []string{"a", "b"})}
	if w.oneIn(2) {
		source.Labels["shape"] = "round"
	}
	w.Logf("source %s: %v %v", ref, source.Labels, payload(source.Content))
	if before := w.find(ref); before != nil && (before.Content.Immutable || before.Content.Type != source.Content.Type) {
		w.remove(ref)
	} else if before != nil {
		source.UID, source.ResourceVersion = before.UID, before.ResourceVersion
	}
	_, err := w.put(source)
	require.NoError(w, err)
}

func (w *world) randomContent(kind object.Kind) object.Content {
	content := object.Content{Data: map[string][]byte{}}
	if !w.oneIn(15) {
		content.Data["k1"] = w.value()
		if w.oneIn(2) {
			content.Data["k2"] = w.value()
		}
	}
	content.Immutable = w.oneIn(6) && !w.gentle
	if kind == object.Secret {
		content.Type = string(corev1.SecretTypeOpaque)
		if w.oneIn(4) && !w.gentle {
			content.Type = "example.org/other"
		}
	}
	return content
}

func (w *world) value() []byte { return fmt.Appendf(nil, "v%d", w.IntN(3)) }

func payload(c object.Content) string {
	var words []string
	for key, value := range c.Data {
		words = append(words, key+"="+string(value))
	}
	return fmt.Sprint(c.Type, words, c.Immutable)
}

func (w *world) deleteSource() {
	ref := w.randomSource()
	w.Logf("delete source %s", ref)
	w.remove(ref)
}

func (w *world) relabelNamespace() {
	name, tier := pick(w, targetNamespaces), pick(w, tiers)
	if !w.alive[name] {
		return
	}
	w.Logf("namespace %s: tier %s", name, tier)
	_, err := w.Admin.CoreV1().Namespaces().Patch(w.Context(), name, types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"labels":{"tier":%q}}}`, tier), metav1.PatchOptions{})
	require.NoError(w, err)
}

func (w *world) deleteNamespace() {
	name := pick(w, targetNamespaces)
	if !w.alive[name] {
		return
	}
	w.Logf("delete namespace %s", name)
	require.NoError(w, w.Admin.CoreV1().Namespaces().Delete(w.Context(), name, metav1.DeleteOptions{}))
	delete(w.alive, name)
	maps.DeleteFunc(w.strangers, func(ref object.Ref, _ version) bool { return ref.Namespace == name })
}

// createNamespace does so once the one of that name is gone for good.
func (w *world) createNamespace() {
	name, tier := pick(w, targetNamespaces), pick(w, tiers)
	_, err := w.Admin.CoreV1().Namespaces().Create(w.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"tier": tier}},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return
	}
	require.NoError(w, err)
	w.Logf("namespace %s: created, tier %s", name, tier)
	w.alive[name] = true
}

// touch is what people do to an object where a clone may be: they make one of
// their own, or change what is there.
func (w *world) touch() {
	ref := object.Ref{Kind: pick(w, object.Kinds), Namespace: pick(w, targetNamespaces), Name: pick(w, cloneNames)}
	create, how, value := w.oneIn(2), w.IntN(10), w.value()
	if !w.alive[ref.Namespace] {
		return
	}
	touched := w.find(ref)
	switch {
	case touched == nil && !create:
		return
	case touched == nil:
		touched = &object.Full{ObjectMeta: object.NewMeta(ref), Kind: ref.Kind}
		touched.Content.Data = map[string][]byte{"k1": value}
	case how == 0:
		w.Logf("delete %s", ref)
		w.remove(ref)
		delete(w.strangers, ref)
		return
	default:
		w.change(touched, how, value)
	}
	w.Logf("touch %s (%d): %s", ref, how, payload(touched.Content))
	written, err := w.put(touched)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) || apierrors.IsInvalid(err) {
		return // Headwater was faster, or the object is immutable
	}
	require.NoError(w, err)
	// An object without any of what Headwater wrote is a stranger's.
	if _, marked := mark.Of(written); marked || mark.MadeByUs(written.ManagedFields) {
		delete(w.strangers, ref)
	} else {
		w.strangers[ref] = versionOf(written)
	}
}

func (w *world) change(o *object.Full, how int, value []byte) {
	o.ManagedFields = nil
	if o.Content.Data == nil {
		o.Content.Data = map[string][]byte{}
	}
	switch how {
	case 1:
		delete(o.Labels, mark.CloneLabel)
	case 2:
		o.Annotations = nil
	case 3:
		maps.DeleteFunc(o.Labels, func(key, _ string) bool { return !strings.HasPrefix(key, mark.Domain) })
	case 4:
		if o.Labels == nil {
			o.Labels = map[string]string{}
		}
		o.Labels[theirs+"label"] = string(value)
	case 5:
		o.Content.Data = nil
		if o.Labels == nil {
			o.Labels = map[string]string{}
		}
		// Of an object without any field that is owned, the API server never
		// again tracks who owns what.
		o.Labels[theirs+"emptied"] = "yes"
	case 6:
		o.Content.Data["k3"] = value
	case 7:
		o.Content.Immutable = !w.gentle
	default:
		o.Content.Data["k1"] = value
	}
}
