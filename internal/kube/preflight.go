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
	"k8s.io/client-go/util/workqueue"
)

// Permission is a set of verbs on one resource that a module needs.
type Permission struct {
	Group, Resource string
	Verbs           []string
	// Namespace is empty for cluster-wide.
	Namespace string
	// Name narrows the permission to one object.
	Name string
	// For is the purpose, as an infinitive, for messages and for the RBAC table.
	For string
	// Optional is true if Headwater works without the permission. CheckPermissions
	// then ignores it, and the code that needs it reports the missing feature.
	Optional bool
	// Cached is true if what is listed and watched only fills caches: what depends on them waits
	// without those verbs, and says so.
	Cached bool
}

// FatalError is an error of the environment that a retry cannot fix.
type FatalError struct{ Err error }

func (e FatalError) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e FatalError) Unwrap() error { return e.Err }

// WhoAmI returns the client's user from the API server. It fails if the API
// server cannot be reached, with a FatalError if it is not trusted or does not
// accept the credentials.
func WhoAmI(ctx context.Context, clients *Clients) (authenticationv1.UserInfo, error) {
	review, err := clients.Typed.AuthenticationV1().SelfSubjectReviews().Create(ctx,
		&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	var untrusted x509.UnknownAuthorityError
	var wrongHost x509.HostnameError
	var expired x509.CertificateInvalidError
	switch {
	case err == nil:
		return review.Status.UserInfo, nil
	case errors.As(err, &untrusted), errors.As(err, &wrongHost), errors.As(err, &expired):
		return authenticationv1.UserInfo{}, FatalError{fmt.Errorf("API server %s is not trusted: %w; check certificate-authority in the kubeconfig", clients.Host, err)}
	case apierrors.IsUnauthorized(err):
		return authenticationv1.UserInfo{}, FatalError{fmt.Errorf("API server %s does not accept the credentials: %w", clients.Host, err)}
	default:
		return authenticationv1.UserInfo{}, fmt.Errorf("API server %s cannot be reached: %w", clients.Host, err)
	}
}

// maxConcurrentReviews bounds the concurrent SelfSubjectAccessReviews at start.
const maxConcurrentReviews = 8

// MissingError says which permissions are missing, and the user to which Role must be bound.
type MissingError struct {
	User, Role  string
	Permissions []Permission
}

func (e MissingError) Error() string {
	return fmt.Sprintf("missing permissions: bind ClusterRole %s to %s (deploy/rbac.yaml), which grants all of them:\n  %s",
		e.Role, e.User, strings.Join(LinesOf(e.Permissions), "\n  "))
}

// OnlyOfCaches reports whether nothing is missing but what fills caches.
func (e MissingError) OnlyOfCaches() bool {
	return !slices.ContainsFunc(e.Permissions, func(p Permission) bool {
		return !p.Cached || slices.ContainsFunc(p.Verbs, func(verb string) bool { return verb != "list" && verb != "watch" })
	})
}

// CheckPermissions asks the API server whether the client has all permissions. It
// returns a FatalError with a MissingError if not. user is the client's own user name, and
// role the ClusterRole that grants all.
func CheckPermissions(ctx context.Context, client kubernetes.Interface, user, role string, permissions []Permission) error {
	missing, err := MissingPermissions(ctx, client, permissions)
	if err != nil || len(missing) == 0 {
		return err
	}
	return FatalError{MissingError{user, role, missing}}
}

// MissingPermissions asks the API server which of permissions the client lacks. Each has
// the missing verbs.
func MissingPermissions(ctx context.Context, client kubernetes.Interface, permissions []Permission) ([]Permission, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	verbs := splitVerbs(permissions)
	workqueue.ParallelizeUntil(ctx, maxConcurrentReviews, len(verbs), func(i int) {
		allowed, err := verbs[i].allowed(ctx, client)
		if err != nil {
			cancel(err)
		}
		verbs[i].missing = !allowed
	})
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("check permissions: %w", err)
	}
	return lacking(verbs), nil
}

// permittedVerb is one verb of a Permission: the subject of one access review.
type permittedVerb struct {
	Permission

	verb    string
	missing bool
}

func splitVerbs(permissions []Permission) []permittedVerb {
	var verbs []permittedVerb
	for _, permission := range permissions {
		for _, verb := range permission.Verbs {
			if !permission.Optional {
				verbs = append(verbs, permittedVerb{Permission: permission, verb: verb})
			}
		}
	}
	return verbs
}

// lacking returns the permissions with missing verbs, with these verbs.
func lacking(verbs []permittedVerb) []Permission {
	var missing []Permission
	for _, verb := range verbs {
		if !verb.missing {
			continue
		}
		at := slices.IndexFunc(missing, func(known Permission) bool { return known.resource() == verb.resource() && known.For == verb.For })
		if at < 0 {
			at = len(missing)
			missing = append(missing, verb.Permission)
			missing[at].Verbs = nil
		}
		missing[at].Verbs = append(missing[at].Verbs, verb.verb)
	}
	return missing
}

// LinesOf returns a line per permission, sorted.
func LinesOf(permissions []Permission) []string {
	var lines []string
	for _, permission := range permissions {
		verbs := slices.Sorted(slices.Values(permission.Verbs))
		lines = append(lines, fmt.Sprintf("%s: %s (to %s)", permission.resource(), strings.Join(slices.Compact(verbs), ", "), permission.For))
	}
	slices.Sort(lines)
	return lines
}

func (p permittedVerb) allowed(ctx context.Context, client kubernetes.Interface) (bool, error) {
	review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx,
		&authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: p.Namespace, Verb: p.verb, Group: p.Group, Resource: p.Resource, Name: p.Name,
			},
		}}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}

// resource returns the resource and its scope, for messages.
func (p Permission) resource() string {
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
	return resource + " " + where
}
