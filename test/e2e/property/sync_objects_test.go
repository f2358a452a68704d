package property

import (
	"context"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/object"
)

// put writes o, which is in the cluster already if it has a UID.
func (e *env) put(o *object.Full) (*object.Full, error) {
	var written any
	var err error
	secrets, configMaps := e.Admin.CoreV1().Secrets(o.Namespace), e.Admin.CoreV1().ConfigMaps(o.Namespace)
	switch {
	case o.Kind == object.Secret && o.UID == "":
		written, err = secrets.Create(e.Context(), o.ToSecret(), metav1.CreateOptions{})
	case o.Kind == object.Secret:
		written, err = secrets.Update(e.Context(), o.ToSecret(), metav1.UpdateOptions{})
	case o.UID == "":
		written, err = configMaps.Create(e.Context(), o.ToConfigMap(), metav1.CreateOptions{})
	default:
		written, err = configMaps.Update(e.Context(), o.ToConfigMap(), metav1.UpdateOptions{})
	}
	if err != nil {
		return nil, err
	}
	return object.FromAPI(written)
}

// find reads an object; nil when there is none.
func (e *env) find(ref object.Ref) *object.Full {
	full, err := e.lookup(e.Context(), ref)
	require.NoError(e, err)
	return full
}

// lookup is find that fails no test.
func (e *env) lookup(ctx context.Context, ref object.Ref) (*object.Full, error) {
	var found any
	var err error
	if ref.Kind == object.Secret {
		found, err = e.Admin.CoreV1().Secrets(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	} else {
		found, err = e.Admin.CoreV1().ConfigMaps(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return object.FromAPI(found)
}

func (e *env) remove(ref object.Ref) {
	var err error
	if ref.Kind == object.Secret {
		err = e.Admin.CoreV1().Secrets(ref.Namespace).Delete(e.Context(), ref.Name, metav1.DeleteOptions{})
	} else {
		err = e.Admin.CoreV1().ConfigMaps(ref.Namespace).Delete(e.Context(), ref.Name, metav1.DeleteOptions{})
	}
	if !apierrors.IsNotFound(err) {
		require.NoError(e, err)
	}
}
