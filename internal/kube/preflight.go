package kube

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Permission is one set of verbs that a module needs.
type Permission struct {
	Group, Resource string
	Verbs           []string
	// Namespace is empty for cluster-wide.
	Namespace string
	// Name narrows the permission to one object.
	Name string
	// For says what it is used for, for messages and for the RBAC table.
	For string
}

// FatalError is a fault of the surroundings that waiting does not heal.
type FatalError struct{ Err error }

func (e FatalError) Error() string { return e.Err.Error() }

// Unwrap returns the fault itself.
func (e FatalError) Unwrap() error { return e.Err }

// WhoAmI asks the API server for the user name of the client, and thereby
// tells whether it can be reached and trusted. A FatalError means that
// retrying is of no use.
func WhoAmI(ctx context.Context, clients *Clients) (string, error) {
	review, err := clients.Typed.AuthenticationV1().SelfSubjectReviews().Create(ctx,
		&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	var untrusted x509.UnknownAuthorityError
	var wrongHost x509.HostnameError
	var expired x509.CertificateInvalidError
	switch {
	case err == nil:
		return review.Status.UserInfo.Username, nil
	case errors.As(err, &untrusted), errors.As(err, &wrongHost), errors.As(err, &expired):
		return "", FatalError{fmt.Errorf("API server %s is not trusted: %w; check certificate-authority in the kubeconfig", clients.Host, err)}
	case apierrors.IsUnauthorized(err):
		return "", FatalError{fmt.Errorf("API server %s does not accept the credentials: %w", clients.Host, err)}
	default:
		return "", fmt.Errorf("API server %s cannot be reached: %w", clients.Host, err)
	}
}

// CheckPermissions asks the API server for each of permissions and returns a
// FatalError naming every one that is missing. user is whose they are.
func CheckPermissions(ctx context.Context, client kubernetes.Interface, user string, permissions []Permission) error {
	var missing []string
	for _, permission := range permissions {
		for _, verb := range permission.Verbs {
			allowed, err := allowed(ctx, client, permission, verb)
			if err != nil {
				return fmt.Errorf("check permissions: %w", err)
			}
			if !allowed {
				missing = append(missing, permission.lacks(verb))
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return FatalError{fmt.Errorf("missing permissions, grant them to %s: %s", user, strings.Join(slices.Compact(missing), "; "))}
}

func allowed(ctx context.Context, client kubernetes.Interface, p Permission, verb string) (bool, error) {
	review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx,
		&authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: p.Namespace, Verb: verb, Group: p.Group, Resource: p.Resource, Name: p.Name,
			},
		}}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}

func (p Permission) lacks(verb string) string {
	resource := p.Resource
	if p.Group != "" {
		resource += "." + p.Group
	}
	if p.Name != "" {
		resource += "/" + p.Name
	}
	where := "cluster-wide"
	if p.Namespace != "" {
		where = "in namespace " + p.Namespace
	}
	return fmt.Sprintf("%s %s %s (to %s)", verb, resource, where, p.For)
}
