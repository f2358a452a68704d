package report

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

func TestOwnersAreToldOfWhatDoesNotPassByItself(t *testing.T) {
	const value = "hunter2"
	resource := schema.GroupResource{Group: "apps", Resource: "deployments"}
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Deployment"}, "w", field.ErrorList{field.Invalid(field.NewPath("spec", "x"), value, "")})
	webhook := &apierrors.StatusError{ErrStatus: metav1.Status{Code: 418, Message: value}}
	for sentence, test := range map[string]struct {
		err  error
		want string
	}{
		"a permission is missing":         {apierrors.NewForbidden(resource, "w", errors.New(value)), "Forbidden (403)"},
		"a policy refuses":                {invalid, "Invalid (422) spec.x"},
		"a webhook refuses, in its words": {webhook, "(418)"},
		"a webhook cannot be asked":       {apierrors.NewInternalError(errors.New(value)), "InternalError (500)"},
		"the API server is busy":          {apierrors.NewTooManyRequests(value, 1), ""},
		"the API server is not ready":     {apierrors.NewServiceUnavailable(value), ""},
		"it took too long":                {apierrors.NewTimeoutError(value, 1), ""},
		"there is no connection":          {errors.New("connection refused"), ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			answer, refused := refusal(fmt.Errorf("patch: %w", test.err))
			require.Equal(t, test.want != "", refused)
			if refused {
				require.Equal(t, test.want, answer)
			}
		})
	}
}

func TestAFailureSaysWhatIsNotDone(t *testing.T) {
	w, changed := reloadtest.Web(), []string{"Secret/ns/a"}
	for step, want := range map[spec.Step][2]string{
		spec.StepRestart: {"RestartFailed", "Not restarted, although data that it reads changed: Secret/ns/a. "},
		spec.StepRefresh: {"RefreshFailed", "Its volumes were not refreshed, although data that they mount changed: Secret/ns/a. "},
		spec.StepConfirm: {"RefreshFailed", "Its volumes were not refreshed"},
		spec.StepAdopt:   {"AdoptFailed", "Its baseline could not be written"},
	} {
		event := failed(&workload.Workload{Kind: kinds.KindDeployment, ObjectMeta: w.ObjectMeta}, decide.Decision{Step: step, Rule: "r", Changed: changed}, "Forbidden (403)")
		require.Equal(t, want[0], event.Reason)
		require.Contains(t, event.Note, want[1])
		require.Contains(t, event.Note, "refused the patch: Forbidden (403); check")
		require.True(t, event.Warning)
		require.Equal(t, "r", event.Rule)
	}
}

func TestReplacedObjectIsToldFromOneThatIsInvalid(t *testing.T) {
	invalid := func(path *field.Path) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", field.ErrorList{field.Invalid(path, "x", "field is immutable")})
	}
	require.True(t, uidRefused(fmt.Errorf("patch: %w", invalid(field.NewPath("metadata", "uid")))))
	require.False(t, uidRefused(invalid(field.NewPath("spec", "template"))))
	require.False(t, uidRefused(apierrors.NewUnauthorized("no")))
	require.False(t, uidRefused(errors.New("connection refused")))
	require.False(t, uidRefused(nil))
}

func TestWhatAWebhookRefusesByTheCodeOfAConflictIsNotOvertaken(t *testing.T) {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	require.True(t, Overtaken(apierrors.NewConflict(deployments, "web", errors.New("the object has been modified"))))
	require.True(t, Overtaken(apierrors.NewNotFound(deployments, "web")))
	for _, code := range []int32{http.StatusConflict, http.StatusNotFound} {
		refused := &apierrors.StatusError{ErrStatus: metav1.Status{
			Code: code, Reason: metav1.StatusReasonConflict, Message: `admission webhook "w.example.org" denied the request: not now`,
		}}
		require.False(t, Overtaken(fmt.Errorf("patch: %w", refused)), code)
	}
}
