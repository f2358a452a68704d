package reload

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

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
