package cel

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/protect"
)

// FuzzVerdicts holds every engine against protect.Decide, on the same rules and
// the same request: the policies refuse exactly what it refuses, in the same
// mode, and the webhook is asked about all of that.
func FuzzVerdicts(f *testing.F) {
	for i := range byte(64) {
		drawn := make([]byte, 96)
		for at := range drawn {
			drawn[at] = byte(at)*(2*i+1) + i
		}
		f.Add(drawn)
	}
	f.Fuzz(func(t *testing.T, drawn []byte) {
		dice := dice(drawn)
		set, world := dice.rules(t), dice.world()
		request := dice.request()
		want := protect.Decide(request.decided(t), set, world)

		found := protect.OutcomeAllowed
		for _, mode := range []protect.Mode{protect.Audit, protect.Warn, protect.Enforce} {
			for _, p := range protect.Policies(set, world, mode) {
				refusals, failures := compilePolicy(t, p.Definition).judge(t, request.attributes(), request.namespace(world))
				require.Empty(t, failures, "%+v", request)
				if len(refusals) > 0 {
					found = outcomeIn[mode]
				}
			}
		}
		require.Equal(t, want.Outcome(), found, "policies, of %+v: %+v", request, want)

		endpoint, err := protect.NewEndpoint("", "headwater")
		require.NoError(t, err)
		asked := false
		for _, w := range protect.Configuration(set, world.Headwater, protect.StanceAlone, endpoint, nil).Webhooks {
			if !compileWebhook(t, w).asked(t, request.attributes()) {
				continue
			}
			asked = true
			require.NotContains(t, []protect.Reason{protect.ReasonNotProtected, protect.ReasonOperationNotProtected}, want.Reason,
				"%s is asked about what no rule is about: %+v", w.Name, request)
		}
		require.True(t, asked || want.Outcome() == protect.OutcomeAllowed, "no webhook is asked, of %+v: %+v", request, want)
	})
}

var outcomeIn = map[protect.Mode]protect.Outcome{
	protect.Enforce: protect.OutcomeDenied, protect.Warn: protect.OutcomeWarned, protect.Audit: protect.OutcomeAudited,
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
	if r.kind != protect.KindNamespace {
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
func (r request) decided(t testing.TB) protect.Request {
	t.Helper()
	operations := map[admission.Operation]protect.Operation{
		admission.Create: protect.Create, admission.Update: protect.Update, admission.Delete: protect.Delete,
	}
	operation, known := operations[r.operation]
	require.True(t, known)
	return protect.Request{
		Operation: operation, Kind: r.kind, Namespace: r.inNamespace, Name: r.name,
		User: protect.User{Name: r.user.Name, Groups: r.user.Groups}, Old: r.before, New: r.after,
	}
}

// namespace is what policies see of the namespace of the request.
func (r request) namespace(world protect.World) *corev1.Namespace {
	if r.kind == protect.KindNamespace {
		return nil
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.inNamespace}}
	if world.Terminating(r.inNamespace) {
		namespace.DeletionTimestamp = new(metav1.Now())
	}
	return namespace
}
