package cel

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	protectdecide "github.com/headwater-k8s/headwater/protect/decide"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
)

// FuzzVerdicts holds every engine against protect.Decide, on the same rules and
// the same request: the policies refuse exactly what it refuses, in the same
// mode, and so do the webhooks that are asked.
func FuzzVerdicts(f *testing.F) {
	for i := range byte(255) {
		drawn := make([]byte, 192)
		_, err := rand.NewChaCha8([32]byte{i}).Read(drawn)
		require.NoError(f, err)
		f.Add(drawn)
	}
	f.Fuzz(func(t *testing.T, drawn []byte) {
		dice := dice(drawn)
		set, world := dice.rules(t), dice.world()
		request := dice.request()
		held := overrides(some(&dice, "r0", "r1", "r2", every))
		want := expected(t, request, set, world, held)

		policies, webhooks := compiled(t, set, world)
		found := protectdecide.OutcomeAllowed
		for _, p := range policies {
			refusals, failures := p.judge(t, request.attributes(), request.namespace(world), held)
			require.Empty(t, failures, "%+v", request)
			if len(refusals) > 0 {
				found = stricter(found, p.outcome())
			}
		}
		require.Equal(t, want, found, "policies, of %+v", request)

		found = protectdecide.OutcomeAllowed
		for _, w := range webhooks {
			if !w.asked(t, request.attributes(), held) {
				continue
			}
			decided := request.decided(t)
			decided.Scope = w.question()
			verdict := protectdecide.Decide(decided, set, world)
			require.NotContains(t, []protectdecide.Reason{protectdecide.ReasonNotProtected, protectdecide.ReasonOperationNotProtected, protectdecide.ReasonByHeadwater},
				verdict.Reason, "%s is asked about what is none of its business: %+v", w.definition.Name, request)
			found = stricter(found, verdict.Outcome())
		}
		require.Equal(t, want, found, "webhooks, of %+v", request)
	})
}

// expected is the outcome by protect.Decide, to which an override is as if the
// rule allowed the requester, and the one for every rule lets all pass.
func expected(t testing.TB, request request, set *rules.Set[protectspec.Rule], world protectdecide.World, held overrides) protectdecide.Outcome {
	t.Helper()
	if slices.Contains(held, every) {
		return protectdecide.OutcomeAllowed
	}
	all := slices.Clone(set.All())
	for i, rule := range all {
		if slices.Contains(held, rule.Name) {
			all[i].Allow.Users = append(slices.Clone(rule.Allow.Users), request.user.Name)
		}
	}
	verdict := protectdecide.Decide(request.decided(t), rules.NewSet(all...), world)
	return verdict.Outcome()
}

// byStrictness are the outcomes from the mildest on.
var byStrictness = []protectdecide.Outcome{protectdecide.OutcomeAllowed, protectdecide.OutcomeAudited, protectdecide.OutcomeWarned, protectdecide.OutcomeDenied}

func stricter(a, b protectdecide.Outcome) protectdecide.Outcome {
	return byStrictness[max(slices.Index(byStrictness, a), slices.Index(byStrictness, b))]
}

// request is one write as the API server holds it. A part that it does not have
// is nil.
type request struct {
	operation   admission.Operation
	kind        object.Kind
	user        user.DefaultInfo
	name        string
	inNamespace string
	before      *object.Full
	after       *object.Full
}

func (r request) attributes() admission.Attributes {
	resource := corev1.SchemeGroupVersion.WithResource("namespaces")
	if r.kind != protectspec.KindNamespace {
		resource = corev1.SchemeGroupVersion.WithResource(r.kind.Resource())
	}
	kind := schema.GroupVersionKind{Version: "v1", Kind: string(r.kind)}
	return admission.NewAttributesRecord(toAPI(r.after), toAPI(r.before), kind, r.inNamespace, r.name, resource, "", r.operation, nil, false, &r.user)
}

func toAPI(full *object.Full) runtime.Object {
	switch {
	case full == nil:
		return nil
	case full.Kind == object.Secret:
		secret := full.ToSecret()
		secret.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
		return secret
	case full.Kind == object.ConfigMap:
		configMap := full.ToConfigMap()
		configMap.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
		return configMap
	default:
		return &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: full.ObjectMeta}
	}
}

// decided is the request as the webhook makes it out.
func (r request) decided(t testing.TB) protectdecide.Request {
	t.Helper()
	operations := map[admission.Operation]protectspec.Operation{
		admission.Create: protectspec.Create, admission.Update: protectspec.Update, admission.Delete: protectspec.Delete,
	}
	operation, known := operations[r.operation]
	require.True(t, known)
	return protectdecide.Request{
		Operation: operation, Kind: r.kind, Namespace: r.inNamespace, Name: r.name,
		User: protectdecide.User{Name: r.user.Name, Groups: r.user.Groups, UID: r.user.UID}, Old: r.before, New: r.after,
	}
}

// namespace is what policies see of the namespace of the request.
func (r request) namespace(world protectdecide.World) *corev1.Namespace {
	if r.kind == protectspec.KindNamespace {
		return nil
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.inNamespace}}
	if world.Terminating(r.inNamespace) {
		namespace.DeletionTimestamp = new(metav1.Now())
	}
	return namespace
}
