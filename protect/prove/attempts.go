package prove

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/protect/spec"
)

const (
	probeName = "headwater-probe"
	// annotating and pinning are patches that the API server accepts for any
	// object, even an immutable one. annotating is for sources: on a clone, it
	// would be denied as forging, whatever the rule says. pinning is for
	// clones; the API server rejects it for objects that are being deleted.
	annotating = `{"metadata":{"annotations":{"` + mark.Domain + `probe":"attempt"}}}`
	pinning    = `{"metadata":{"finalizers":["` + mark.Domain + `probe"]}}`
)

// notFound is the finding if the object no longer exists.
var notFound = finding{problem: "gone"}

func (p *Prover) try(ctx context.Context, rule spec.Rule, ref object.Ref) finding {
	var err error
	probe := []byte(annotating)
	if ref.Namespace != rule.Source.Namespace {
		probe = []byte(pinning)
	}
	patching := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}
	deleting := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
	secrets, configMaps := p.Prober.CoreV1().Secrets(ref.Namespace), p.Prober.CoreV1().ConfigMaps(ref.Namespace)
	switch updates := rule.Protects(spec.Update); {
	case updates && ref.Kind == object.Secret:
		_, err = secrets.Patch(ctx, ref.Name, types.StrategicMergePatchType, probe, patching)
	case updates:
		_, err = configMaps.Patch(ctx, ref.Name, types.StrategicMergePatchType, probe, patching)
	case !rule.Protects(spec.Delete):
		err = p.tryCreate(ctx, ref)
	case ref.Kind == object.Secret:
		err = secrets.Delete(ctx, ref.Name, deleting)
	default:
		err = configMaps.Delete(ctx, ref.Name, deleting)
	}
	if apierrors.IsNotFound(err) {
		return notFound
	}
	return findingOf(err)
}

// tryCreate tries to create a source that exists. If the requester is allowed,
// the API server answers AlreadyExists.
func (p *Prover) tryCreate(ctx context.Context, ref object.Ref) (err error) {
	meta := object.NewMeta(ref)
	if source, _ := p.Source(ref); source != nil {
		meta.Labels = source.Labels
	}
	creating := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	if ref.Kind == object.Secret {
		_, err = p.Prober.CoreV1().Secrets(ref.Namespace).Create(ctx, &corev1.Secret{ObjectMeta: meta}, creating)
	} else {
		_, err = p.Prober.CoreV1().ConfigMaps(ref.Namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: meta}, creating)
	}
	return err
}

// tryForgedClone tries to create an object with the clone label. If any rule
// enforces, this is denied even if no source exists.
func (p *Prover) tryForgedClone(ctx context.Context) finding {
	_, err := p.Prober.CoreV1().ConfigMaps(p.Namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: probeName, Namespace: p.Namespace, Labels: map[string]string{mark.CloneLabel: "true"},
	}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return findingOf(err)
}

// ProtectedBy returns a function that lists the cached sources of a rule and,
// for a rule with clones: Deny, one of its clones.
func ProtectedBy(caches *informers.Caches) func(spec.Rule) []object.Ref {
	return func(rule spec.Rule) []object.Ref {
		var refs []object.Ref
		sources, _ := caches.Sources.Of(rule.Base)
		for _, source := range sources {
			refs = append(refs, source.Ref())
		}
		if rule.Clones != spec.Deny || !rule.Covers(spec.Update) || len(refs) == 0 {
			return refs
		}
		clones := caches.Clones[rule.Source.Kind].List()
		if i := slices.IndexFunc(clones, func(clone *object.Digested) bool {
			marks, ok := mark.Of(clone)
			return ok && marks.Rule == rule.Name && !clone.IsTerminating()
		}); i >= 0 {
			refs = append(refs, clones[i].Ref())
		}
		return refs
	}
}
