package kube

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/internal/mark"
)

// OwnerName is the name of Headwater's own ClusterRole. It owns what is to go with an
// uninstallation: the garbage collector then deletes it.
const OwnerName = "headwater"

// ErrUninstalled is what Owner returns once the ClusterRole that was there is gone: what it owned
// was removed on purpose.
var ErrUninstalled = errors.New("the ClusterRole " + OwnerName + " is gone, which owns what is to go with an uninstallation, so Headwater was uninstalled and puts nothing back; " +
	"end this process, or install Headwater again")

// Owner is Headwater's ClusterRole. It remembers that there was one.
type Owner struct {
	client kubernetes.Interface
	was    atomic.Bool
}

// NewOwner returns an Owner that has not looked yet.
func NewOwner(client kubernetes.Interface) *Owner { return &Owner{client: client} }

// References is OwnerReferences, and ErrUninstalled if there was an owner.
func (o *Owner) References(ctx context.Context) ([]metav1.OwnerReference, error) {
	references, err := OwnerReferences(ctx, o.client)
	switch {
	case err != nil:
		return nil, err
	case len(references) > 0:
		o.was.Store(true)
	case o.was.Load():
		return nil, ErrUninstalled
	}
	return references, nil
}

// Installed returns an error unless what Headwater needs may be put back.
func (o *Owner) Installed(ctx context.Context) error {
	_, err := o.References(ctx)
	return err
}

// Was says that there was an owner, as a record shows.
func (o *Owner) Was() { o.was.Store(true) }

// OwnerReferences returns the reference to Headwater's ClusterRole; none if that does not
// exist or is being deleted.
func OwnerReferences(ctx context.Context, client kubernetes.Interface) ([]metav1.OwnerReference, error) {
	role, err := client.RbacV1().ClusterRoles().Get(ctx, OwnerName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get ClusterRole %s: %w", OwnerName, err)
	case role.DeletionTimestamp != nil:
		return nil, nil
	default:
		return []metav1.OwnerReference{{
			APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole", Name: role.Name, UID: role.UID,
		}}, nil
	}
}

// PutSecret writes a record of Headwater's own: it creates desired if stored is nil, and
// otherwise gives stored its data, and its owners if it has some. One that somebody made immutable is recreated,
// since no write to it is ever valid; if the API server would refuse that, it stays.
func PutSecret(ctx context.Context, client kubernetes.Interface, stored, desired *corev1.Secret) (err error) {
	api := client.CoreV1().Secrets(desired.Namespace)
	if stored != nil && stored.Immutable != nil && *stored.Immutable {
		tried := metav1.CreateOptions{FieldManager: mark.FieldManager, DryRun: []string{metav1.DryRunAll}}
		_, refused := api.Create(ctx, desired, tried)
		if refused = notAllowed(refused); refused != nil {
			return refused
		}
		err = api.Delete(ctx, stored.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(stored.UID))})
		stored = nil
	}
	switch {
	case err != nil:
	case stored == nil:
		_, err = api.Create(ctx, desired, metav1.CreateOptions{FieldManager: mark.FieldManager})
	default:
		stored = stored.DeepCopy()
		stored.Data = desired.Data
		if len(desired.OwnerReferences) > 0 {
			stored.OwnerReferences = desired.OwnerReferences
		}
		_, err = api.Update(ctx, stored, metav1.UpdateOptions{FieldManager: mark.FieldManager})
	}
	return err
}
