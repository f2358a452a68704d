package prove

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/protect/manifests"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// Proof is what the last attempts as an account without exemption have shown.
type Proof struct {
	// Known is false until the attempt to forge a clone has a result that is certain.
	Known bool
	// By is the engine that denied it. It is empty if none did. While policies deny,
	// the API server does not ask the webhook.
	By spec.Engine
	// Allowed is true if the API server allowed it. If it is false and By is empty, the
	// attempt failed in another way.
	Allowed bool
	// Webhook is whether the webhook denies what only it denies.
	Webhook Answer
}

// sentence describes p for the log.
func (p Proof) sentence() string {
	switch {
	case p.By != "":
		return "verified: the API server denies forged clones"
	case p.Allowed:
		return "the API server allows users to forge clones"
	default:
		return "it is unknown whether the API server denies forged clones"
	}
}

// Status is whether a rule was verified to protect, and since when.
type Status struct {
	Proven bool
	Since  time.Time
	// Why is the reason if the rule is not proven.
	Why string
}

const provenText, notProvenText = "proven", "not proven: "

// String returns the form that ParseStatus reads.
func (s Status) String() string {
	text := provenText
	if !s.Proven {
		text = notProvenText + s.Why
	}
	return s.Since.UTC().Format(time.RFC3339) + " " + text
}

// ParseStatus parses the result of Status.String.
func ParseStatus(text string) (Status, error) {
	at, what, _ := strings.Cut(text, " ")
	since, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return Status{}, fmt.Errorf("%.40q does not begin with a time: %w", text, err)
	}
	if what == provenText {
		return Status{Proven: true, Since: since}, nil
	}
	why, cut := strings.CutPrefix(what, notProvenText)
	if !cut {
		return Status{}, fmt.Errorf("%.60q says neither %q nor %q", text, provenText, notProvenText)
	}
	return Status{Since: since, Why: why}, nil
}

// finding is the result of one attempt that the API server should deny.
type finding struct {
	// by is the engine that denied it. It is empty if none did.
	by spec.Engine
	// problem describes an answer that is neither success nor a denial by
	// Headwater.
	problem string
}

func findingOf(err error) finding {
	if err == nil || isStored(err) {
		return finding{}
	}
	if by := refusedBy(err); by != "" {
		return finding{by: by}
	}
	// Do not quote the error: another admission plugin may have written it, and
	// it may contain data of the object.
	if reason := apierrors.ReasonForError(err); reason != "" {
		return finding{problem: fmt.Sprintf("the API server answered the attempt with %s, but Headwater did not deny it", reason)}
	}
	return finding{problem: "the API server did not answer the attempt"}
}

// isStored reports whether err says that the object to create exists already. The API server
// finds that out when it stores it, so admission has allowed the attempt: nobody may hide that
// by creating the object. An admission webhook that denies with the same reason is named.
func isStored(err error) bool {
	return apierrors.IsAlreadyExists(err) && !strings.HasPrefix(err.Error(), "admission webhook ")
}

// The start of the API server's message for a denial. It precedes any text that
// others can choose.
var (
	policyRefused  = regexp.MustCompile(`^[^:]* is forbidden: ValidatingAdmissionPolicy '([^']*)' with binding '([^']*)' denied request`)
	webhookRefused = regexp.MustCompile(`^admission webhook "[^"]*` + regexp.QuoteMeta(manifests.WebhookDomain) + `" denied the request`)
)

// refusedBy returns the engine that caused err, or "" if Headwater did not. A
// policy counts only if it and its binding have a name of Headwater's: other
// policies may deny the attempt as well.
func refusedBy(err error) spec.Engine {
	if !apierrors.IsForbidden(err) {
		return ""
	}
	if names := policyRefused.FindStringSubmatch(err.Error()); names != nil && names[1] == names[2] && slices.Contains(manifests.PolicyNames(), names[1]) {
		return spec.EnginePolicy
	}
	if webhookRefused.MatchString(err.Error()) {
		return spec.EngineWebhook
	}
	return ""
}

// judgeFindings returns whether all attempts were denied, and if not, why.
func judgeFindings(findings []finding) (proven bool, why string) {
	for _, f := range findings {
		switch {
		case f.problem != "":
			why = f.problem
		case f.by == "":
			return false, "the API server allowed a change by an account without exemption"
		}
	}
	return why == "", why
}

// next returns the status after another attempt. A failed attempt changes the
// status only once the doubt has lasted for settling, because a change may not
// have reached every API server.
func (s Status) next(proven bool, why string, doubtfulFor, settling time.Duration, now time.Time) Status {
	switch {
	case proven && s.Proven, !proven && !s.Proven && s.Why == why:
		return s
	case !proven && doubtfulFor < settling:
		return s
	default:
		return Status{Proven: proven, Since: now, Why: why}
	}
}

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

// tryForgedClone tries to create an object with all marks of a clone. If any rule
// enforces, this is denied even if no source exists.
func (p *Prover) tryForgedClone(ctx context.Context) finding {
	forged := object.Ref{Kind: object.ConfigMap, Namespace: p.Namespace, Name: probeName}
	meta := object.NewMeta(forged)
	meta.Labels = map[string]string{mark.CloneLabel: "true"}
	meta.Annotations = mark.WithPlace(map[string]string{mark.Rule: probeName, mark.Source: forged.String()}, &meta)
	_, err := p.Prober.CoreV1().ConfigMaps(p.Namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: meta}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
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
