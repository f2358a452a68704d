package spec

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Config is the protect section of a rule.
type Config struct {
	Operations []Operation `json:"operations"`
	Mode       Mode        `json:"mode"`
	// Message replaces the default text of a denial.
	Message        string `json:"message"`
	Clones         Clones `json:"clones"`
	Allow          Allow  `json:"allow"`
	GuardNamespace *bool  `json:"guardNamespace"`
}

const (
	// maxName is longer than any name that somebody has, and as many characters
	// fit into an expression, whatever they are.
	maxName = 8 << 10
	tooLong = "is too long to be anybody's name; remove it"
)

// Operation is a protected operation.
type Operation string

// The operations that can be protected.
const (
	// Create makes an object a source, be it by giving an object that is there
	// the labels that a rule selects by.
	Create Operation = "Create"
	Update Operation = "Update"
	Delete Operation = "Delete"
)

// Operations lists them all.
func Operations() []Operation { return []Operation{Create, Update, Delete} }

// Upper returns the operation as an AdmissionReview spells it, such as CREATE.
func (o Operation) Upper() string { return strings.ToUpper(string(o)) }

// Mode says what happens to a request that nobody allowed.
type Mode string

// The modes.
const (
	Enforce Mode = "Enforce"
	Warn    Mode = "Warn"
	Audit   Mode = "Audit"
)

// Clones says how clones are protected.
type Clones string

// Revert lets an edit of a clone pass, and sync heals it; Deny protects a clone
// as its source is. Its marks are Headwater's alone either way.
const (
	Revert Clones = "Revert"
	Deny   Clones = "Deny"
)

// Allow lists who may change a source.
type Allow struct {
	// ClusterRoles count only through ClusterRoleBindings: whoever
	// administers a namespace may bind any role there, to themselves too.
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

// Settings is the protect section of the whole file.
type Settings struct {
	Engine       Engine       `json:"engine"`
	Certificates Certificates `json:"certificates"`
	// SystemIdentities are user names treated like the namespace controller and
	// the garbage collector.
	SystemIdentities []string `json:"systemIdentities,omitzero"`
}

// Engine is what enforces the rules.
type Engine string

// The engines. A policy is held by the API server itself: it needs neither a
// certificate nor Headwater to run, but records less than the webhook does.
const (
	EngineWebhook Engine = "Webhook"
	EnginePolicy  Engine = "Policy"
	EngineBoth    Engine = "Both"
)

// Certificates says where the webhook's certificate comes from.
type Certificates struct {
	// SecretName is a Secret in Headwater's namespace, of type
	// kubernetes.io/tls, that somebody else keeps; empty: Headwater makes its
	// own.
	SecretName string `json:"secretName"`
}

func (c Certificates) validate(at *field.Path) field.ErrorList {
	if c.SecretName == "" {
		return nil
	}
	at = at.Child("secretName")
	if c.SecretName == CertificateSecret {
		return field.ErrorList{field.Forbidden(at, "is the Secret that Headwater makes itself; choose another name, or leave it out")}
	}
	var errs field.ErrorList
	for _, problem := range validation.IsDNS1123Subdomain(c.SecretName) {
		errs = append(errs, field.Invalid(at, c.SecretName, problem))
	}
	return errs
}

// Default fills in every key that was left out.
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

// Validate reports everything that is wrong with c.
func (c Config) Validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(c.Operations) == 0 {
		errs = append(errs, field.Required(at.Child("operations"), "name Create, Update or Delete, or leave protect out"))
	}
	for name, list := range map[string][]string{
		"clusterRoles": c.Allow.ClusterRoles, "users": c.Allow.Users, "groups": c.Allow.Groups,
	} {
		for i, entry := range list {
			switch at := at.Child("allow", name).Index(i); {
			case entry == "":
				errs = append(errs, field.Required(at, "an empty name allows nobody; remove it"))
			case len(entry) > maxName:
				errs = append(errs, field.Forbidden(at, tooLong))
			}
		}
	}
	for i, account := range c.Allow.ServiceAccounts {
		if account.Namespace == "" || account.Name == "" {
			errs = append(errs, field.Required(at.Child("allow", "serviceAccounts").Index(i), "namespace and name are both needed"))
		}
	}
	return errs
}

// Default fills in every key that was left out.
func (s *Settings) Default() {
	if s.Engine == "" {
		s.Engine = EngineBoth
	}
}

// Validate reports everything that is wrong with s.
func (s Settings) Validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, name := range s.SystemIdentities {
		if len(name) > maxName {
			errs = append(errs, field.Forbidden(at.Child("systemIdentities").Index(i), tooLong))
		}
	}
	return append(errs, s.Certificates.validate(at.Child("certificates"))...)
}

// Strictness orders modes. A mode that is none of them enforces.
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
