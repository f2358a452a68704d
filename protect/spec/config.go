package spec

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Config is the protect section of a rule.
type Config struct {
	Operations []Operation `json:"operations"`
	Mode       Mode        `json:"mode"`
	// Message replaces the default message of a denial.
	Message        string `json:"message"`
	Clones         Clones `json:"clones"`
	Allow          Allow  `json:"allow"`
	GuardNamespace *bool  `json:"guardNamespace"`
}

const (
	// maxName is the maximum length of a user or group name in bytes. It is
	// longer than any real name, and an escaped name of that length still fits
	// into one CEL expression.
	maxName = 8 << 10
	tooLong = "is longer than any user or group name; remove it"
)

// Operation is an operation that a rule can protect against.
type Operation string

// The operations.
const (
	// Create covers the creation of a source, and adding the labels to an
	// existing object that make it a source.
	Create Operation = "Create"
	Update Operation = "Update"
	Delete Operation = "Delete"
)

// Operations lists all operations.
func Operations() []Operation { return []Operation{Create, Update, Delete} }

// Upper returns the operation as an AdmissionReview spells it, such as CREATE.
func (o Operation) Upper() string { return strings.ToUpper(string(o)) }

// Mode is what happens to a request that no rule allows.
type Mode string

// The modes.
const (
	Enforce Mode = "Enforce"
	Warn    Mode = "Warn"
	Audit   Mode = "Audit"
)

// Clones is how a rule protects its clones.
type Clones string

// Revert allows the edit of a clone, and sync reverts it. Deny protects a clone
// like its source. Both protect the labels and annotations that mark a clone.
const (
	Revert Clones = "Revert"
	Deny   Clones = "Deny"
)

// Allow lists the users who may change a source.
type Allow struct {
	// ClusterRoles count only if a ClusterRoleBinding binds them: a namespace
	// admin could create a RoleBinding to exempt themselves.
	ClusterRoles    []string         `json:"clusterRoles"`
	Users           []string         `json:"users,omitzero"`
	Groups          []string         `json:"groups,omitzero"`
	ServiceAccounts []ServiceAccount `json:"serviceAccounts,omitzero"`
}

// ServiceAccount names one service account.
type ServiceAccount struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Settings is the protect section at the top level of the configuration.
type Settings struct {
	Engine       Engine       `json:"engine"`
	Certificates Certificates `json:"certificates"`
	// SystemIdentities are user names that get the same exemptions as the
	// namespace controller and the garbage collector.
	SystemIdentities []string `json:"systemIdentities,omitzero"`
}

// Engine is the mechanism that enforces the rules.
type Engine string

// The engines. The API server evaluates policies itself: they need no
// certificate and work while Headwater is down, but report less than the
// webhook.
const (
	EngineWebhook Engine = "Webhook"
	EnginePolicy  Engine = "Policy"
	EngineBoth    Engine = "Both"
)

// Certificates selects the source of the webhook's certificate.
type Certificates struct {
	// SecretName is a Secret of type kubernetes.io/tls in Headwater's namespace
	// that another tool, such as cert-manager, maintains. If it is empty,
	// Headwater issues its own certificate.
	SecretName string `json:"secretName"`
}

func (c Certificates) validate(at *field.Path) field.ErrorList {
	if c.SecretName == "" {
		return nil
	}
	at = at.Child("secretName")
	if c.SecretName == CertificateSecret {
		return field.ErrorList{field.Forbidden(at, "is reserved for the certificate that Headwater issues itself; choose another name or omit secretName")}
	}
	var errs field.ErrorList
	for _, problem := range validation.IsDNS1123Subdomain(c.SecretName) {
		errs = append(errs, field.Invalid(at, c.SecretName, problem))
	}
	return errs
}

// Default sets every omitted field to its default.
func (c *Config) Default() {
	if c.Operations == nil {
		c.Operations = Operations()
	}
	if c.Mode == "" {
		c.Mode = Enforce
	}
	if c.Clones == "" {
		c.Clones = Revert
	}
	if c.Allow.ClusterRoles == nil {
		c.Allow.ClusterRoles = []string{"cluster-admin"}
	}
	if c.GuardNamespace == nil {
		guard := true
		c.GuardNamespace = &guard
	}
}

// Validate returns all problems of c.
func (c Config) Validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(c.Operations) == 0 {
		errs = append(errs, field.Required(at.Child("operations"), "list Create, Update or Delete, or omit protect"))
	}
	for name, list := range map[string][]string{
		"clusterRoles": c.Allow.ClusterRoles, "users": c.Allow.Users, "groups": c.Allow.Groups,
	} {
		for i, entry := range list {
			switch at := at.Child("allow", name).Index(i); {
			case entry == "":
				errs = append(errs, field.Required(at, "an empty name matches no user; remove it"))
			case len(entry) > maxName:
				errs = append(errs, field.Forbidden(at, tooLong))
			}
		}
	}
	for i, account := range c.Allow.ServiceAccounts {
		if account.Namespace == "" || account.Name == "" {
			errs = append(errs, field.Required(at.Child("allow", "serviceAccounts").Index(i), "set both namespace and name"))
		}
	}
	return errs
}

// Default sets every omitted field to its default.
func (s *Settings) Default() {
	if s.Engine == "" {
		s.Engine = EngineBoth
	}
}

// Validate returns all problems of s.
func (s Settings) Validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, name := range s.SystemIdentities {
		if len(name) > maxName {
			errs = append(errs, field.Forbidden(at.Child("systemIdentities").Index(i), tooLong))
		}
	}
	return append(errs, s.Certificates.validate(at.Child("certificates"))...)
}

// Strictness orders modes, from Audit to Enforce. An unknown mode counts as
// Enforce.
func (m Mode) Strictness() int {
	switch m {
	case Audit:
		return 1
	case Warn:
		return 2
	default:
		return 3
	}
}

// Enforces reports whether mode m denies a request that violates a rule.
func Enforces(m Mode) bool { return m.Strictness() == Enforce.Strictness() }

// Weakened says what next lets pass that c does not; nothing if c lets it all pass, too.
func (c Config) Weakened(next Config) (what []string) {
	if next.Mode.Strictness() < c.Mode.Strictness() {
		what = append(what, fmt.Sprintf("mode %s in place of %s", next.Mode, c.Mode))
	}
	for _, operation := range c.Operations {
		if !slices.Contains(next.Operations, operation) {
			what = append(what, "operations without "+string(operation))
		}
	}
	if c.Clones == Deny && next.Clones != Deny {
		what = append(what, "clones: "+string(next.Clones))
	}
	if *c.GuardNamespace && !*next.GuardNamespace {
		what = append(what, "guardNamespace: false")
	}
	what = append(what, added("allow.clusterRoles", c.Allow.ClusterRoles, next.Allow.ClusterRoles)...)
	what = append(what, added("allow.users", c.Allow.Users, next.Allow.Users)...)
	what = append(what, added("allow.groups", c.Allow.Groups, next.Allow.Groups)...)
	return append(what, added("allow.serviceAccounts", c.Allow.ServiceAccounts, next.Allow.ServiceAccounts)...)
}

// Weakened says which identities next exempts from every rule and s does not.
func (s Settings) Weakened(next Settings) (what []string) {
	return added("systemIdentities", s.SystemIdentities, next.SystemIdentities)
}

func added[T comparable](list string, before, after []T) (what []string) {
	for _, one := range after {
		if !slices.Contains(before, one) {
			what = append(what, fmt.Sprintf("%s has %v", list, one))
		}
	}
	return what
}
