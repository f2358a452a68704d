package reload

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

	"github.com/headwater-k8s/headwater/reload/report"
)

func TestReplacedObjectIsToldFromOneThatIsInvalid(t *testing.T) {
	invalid := func(path *field.Path) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", field.ErrorList{field.Invalid(path, "x", "field is immutable")})
	}
	require.True(t, report.UIDRefused(fmt.Errorf("patch: %w", invalid(field.NewPath("metadata", "uid")))))
	require.False(t, report.UIDRefused(invalid(field.NewPath("spec", "template"))))
	require.False(t, report.UIDRefused(apierrors.NewUnauthorized("no")))
	require.False(t, report.UIDRefused(errors.New("connection refused")))
	require.False(t, report.UIDRefused(nil))
}

func TestWhatAWebhookRefusesByTheCodeOfAConflictIsNotOvertaken(t *testing.T) {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	require.True(t, report.Overtaken(apierrors.NewConflict(deployments, "web", errors.New("the object has been modified"))))
	require.True(t, report.Overtaken(apierrors.NewNotFound(deployments, "web")))
	for _, code := range []int32{http.StatusConflict, http.StatusNotFound} {
		refused := &apierrors.StatusError{ErrStatus: metav1.Status{
			Code: code, Reason: metav1.StatusReasonConflict, Message: `admission webhook "w.example.org" denied the request: not now`,
		}}
		require.False(t, report.Overtaken(fmt.Errorf("patch: %w", refused)), code)
	}
}
