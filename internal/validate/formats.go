package validate

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"time"
	"unicode/utf8"

	"github.com/headwater-k8s/headwater/internal/keypair"
	"github.com/headwater-k8s/headwater/internal/object"
)

// pemBlocks returns the blocks of value, or what is wrong with it. Text around the
// blocks is allowed, a damaged block is not.
func pemBlocks(value []byte) (blocks []*pem.Block, wrong string) {
	begun := bytes.Count(value, []byte("-----BEGIN "))
	for rest := value; len(blocks) < begun; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		blocks = append(blocks, block)
	}
	switch {
	case begun == 0:
		return nil, "holds no PEM block"
	case len(blocks) < begun:
		return nil, fmt.Sprintf("is not valid PEM: %d of its %d blocks can be read", len(blocks), begun)
	default:
		return blocks, ""
	}
}

func checkPEM(value []byte) string {
	_, wrong := pemBlocks(value)
	return wrong
}

// readCertificates returns the first of a chain of certificates, that of the server, or what
// is wrong with the chain.
func readCertificates(value []byte) (first *x509.Certificate, wrong string) {
	blocks, wrong := pemBlocks(value)
	if wrong != "" {
		return nil, wrong
	}
	count := 0
	for _, block := range blocks {
		if block.Type != "CERTIFICATE" {
			continue
		}
		count++
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Sprintf("holds a certificate that cannot be read (number %d)", count)
		}
		if first == nil {
			first = certificate
		}
	}
	if first == nil {
		return nil, "holds no certificate"
	}
	return first, ""
}

const expired = "holds a certificate that has expired"

// checkValidity returns what is to say of the time of a certificate that was written at one
// time, and is judged now.
func (c compiled) checkValidity(certificate *x509.Certificate, written, now time.Time) []finding {
	least := time.Duration(0)
	if c.MinValidity != nil {
		least = c.MinValidity.Duration
	}
	switch {
	case written.After(certificate.NotAfter):
		return list(expired)
	case written.Add(least).After(certificate.NotAfter):
		return list(fmt.Sprintf("holds a certificate that expires in less than %s", least))
	case now.Before(certificate.NotBefore):
		from := certificate.NotBefore.UTC()
		return []finding{{message: "holds a certificate that is not valid before " + from.Format(time.RFC3339), until: from, isTemporary: true}}
	case now.After(certificate.NotAfter):
		return []finding{{message: expired, isWarning: true}}
	default:
		return []finding{{until: certificate.NotAfter.Add(1)}} // it is valid at that very time
	}
}

// checkPrivateKey reports a certificate whose private key is another one's.
func (c compiled) checkPrivateKey(certificate []byte, content object.Content) string {
	key, found := valueOf(content, c.PrivateKey)
	switch {
	case !found:
		return fmt.Sprintf("lacks its private key, %s", c.PrivateKey)
	case len(key) > maxValue:
		return fmt.Sprintf("has a private key, %s, that is larger than 1 MiB", c.PrivateKey)
	}
	if _, err := keypair.Parse(certificate, key); err != nil { // the error may quote the key
		return fmt.Sprintf("does not belong to the private key in %s", c.PrivateKey)
	}
	return ""
}

// checkDockerConfig returns what is wrong with the credentials of registries, in
// the form of a Secret of type kubernetes.io/dockerconfigjson, or in the older one
// of kubernetes.io/dockercfg, which has no key "auths".
func checkDockerConfig(value []byte) string {
	documents, wrong := readJSON(value)
	if wrong != "" {
		return wrong
	}
	registries, ok := documents[0].(map[string]any)
	if inner, found := registries["auths"]; found {
		registries, ok = inner.(map[string]any)
	}
	if !ok || len(registries) == 0 {
		return "is not a Docker config: it has no registry under auths"
	}
	for _, entry := range registries {
		if !isDockerAuth(entry) {
			return "is not a Docker config: a registry has no usable credentials"
		}
	}
	return ""
}

// isDockerAuth reports whether entry holds credentials that a kubelet can use.
func isDockerAuth(entry any) bool {
	fields, ok := entry.(map[string]any)
	if !ok {
		return false
	}
	if auth, found := fields["auth"].(string); found && auth != "" {
		decoded, err := base64.StdEncoding.DecodeString(auth)
		if err != nil {
			decoded, err = base64.RawStdEncoding.DecodeString(auth)
		}
		return err == nil && bytes.Contains(decoded, []byte(":"))
	}
	for _, key := range []string{"username", "identitytoken", "registrytoken"} {
		if text, found := fields[key].(string); found && text != "" {
			return true
		}
	}
	return false
}

const (
	// maxPattern is the longest pattern in bytes, maxProgram the largest number of
	// instructions that one compiles to.
	maxPattern, maxProgram = 4 << 10, 10_000
	// maxMatching bounds instructions times bytes: Go matches in linear time, and
	// this takes seconds at most.
	maxMatching = 1 << 28
)

var errPatternTooLarge = errors.New("is too large; write a shorter pattern, or smaller repetitions")

// pattern is a regular expression whose cost is known.
type pattern struct {
	*regexp.Regexp

	instructions int
}

// compilePattern returns the expression that matches what expression matches as a
// whole.
func compilePattern(expression string) (*pattern, error) {
	if _, err := newPattern(expression); err != nil { // an unbalanced one must not close the group below
		return nil, err
	}
	return newPattern(`\A(?:` + expression + `)\z`)
}

func newPattern(expression string) (*pattern, error) {
	if len(expression) > maxPattern {
		return nil, errPatternTooLarge
	}
	compiled, err := regexp.Compile(expression)
	if err != nil {
		var wrong *syntax.Error
		if errors.As(err, &wrong) {
			return nil, errors.New(wrong.Code.String())
		}
		return nil, err
	}
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	if len(program.Inst) > maxProgram {
		return nil, errPatternTooLarge
	}
	return &pattern{Regexp: compiled, instructions: len(program.Inst)}, nil
}

func (p *pattern) check(value []byte) string {
	switch {
	case !utf8.Valid(value):
		return "is not text"
	case p.instructions*len(value) > maxMatching:
		return "is too large to match against its pattern"
	case !p.Match(value):
		return "does not match its pattern"
	default:
		return ""
	}
}
