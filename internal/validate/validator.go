package validate

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/internal/bounds"
	"github.com/headwater-k8s/headwater/internal/object"
)

const (
	// maxValue is the most that the API server stores in one object.
	maxValue = 1 << 20
	// maxProblems bounds what is reported of one object.
	maxProblems = 5
)

// Problem is one thing that is wrong with the content of a source. It contains
// nothing of the value.
type Problem struct {
	Key string
	// Message continues a sentence that begins with the key.
	Message string
}

// String returns p as a sentence.
func (p Problem) String() string { return fmt.Sprintf("key %q %s", p.Key, p.Message) }

// Validator checks the content of the sources of one rule. It is safe for
// concurrent use.
type Validator struct{ checks []compiled }

// compiled is a Check that is ready to use.
type compiled struct {
	Check

	pattern *pattern
	schema  *schema
}

// Compile prepares checks that Validate accepted. It returns nil if there are
// none.
func Compile(checks Checks) (*Validator, error) {
	if len(checks) == 0 {
		return nil, nil //nolint:nilnil // no checks, no validator, no error
	}
	v := &Validator{}
	for _, check := range checks {
		prepared := compiled{Check: check}
		var err error
		if check.Is == Regex {
			prepared.pattern, err = compilePattern(check.Pattern)
		}
		if err == nil && check.Schema != nil {
			prepared.schema, err = compileSchema(check.Schema)
		}
		if err != nil {
			return nil, fmt.Errorf("check of key %q: %w", check.Key, err)
		}
		v.checks = append(v.checks, prepared)
	}
	return v, nil
}

// Problems returns what is wrong with content, in the order of the checks and at
// most a few. The same content gives the same problems, except for certificates,
// whose validity depends on now.
func (v *Validator) Problems(content object.Content, now time.Time) []Problem {
	if v == nil {
		return nil
	}
	var problems []Problem
	for _, check := range v.checks {
		for _, message := range check.messages(content, now) {
			problem := Problem{Key: check.Key, Message: message}
			if !slices.Contains(problems, problem) && len(problems) < maxProblems {
				problems = append(problems, problem)
			}
		}
	}
	return problems
}

// messages returns what is wrong with the value. A parser that fails on a value
// in an unexpected way must not take the process down.
func (c compiled) messages(content object.Content, now time.Time) (messages []string) {
	defer func() {
		if recover() != nil {
			messages = []string{"cannot be read as " + string(c.format())}
		}
	}()
	value, found := valueOf(content, c.Key)
	switch {
	case !found:
		return []string{"is missing"}
	case len(value) > maxValue:
		return []string{"is larger than 1 MiB"}
	}
	switch c.format() {
	case PEM:
		return list(checkPEM(value))
	case Certificate:
		if wrong := c.checkCertificate(value, now); wrong != "" || c.PrivateKey == "" {
			return list(wrong)
		}
		return list(c.checkPrivateKey(value, content))
	case DockerConfig:
		return list(checkDockerConfig(value))
	case Regex:
		return list(c.pattern.check(bytes.TrimSuffix(bytes.TrimSuffix(value, []byte("\n")), []byte("\r"))))
	default:
		return c.document(value)
	}
}

func valueOf(content object.Content, key string) (value []byte, found bool) {
	if value, found = content.Data[key]; !found {
		value, found = content.BinaryData[key]
	}
	return value, found
}

// maxMarks limits the values of a document; see bounds.Exceeded. Parsing 100,000 values
// takes about 50 MiB of memory.
const maxMarks = 100_000

// document returns what is wrong with a value that is a document.
func (c compiled) document(value []byte) []string {
	if line, tooMuch := bounds.Exceeded(value, maxMarks); tooMuch != "" {
		return list(fmt.Sprintf("%s (line %d)", tooMuch, line))
	}
	documents, wrong := readers[c.format()](value)
	switch {
	case wrong != "" || c.schema == nil:
		return list(wrong)
	case len(documents) > 1:
		return []string{"holds several YAML documents; its schema describes one"}
	case len(documents) == 0:
		documents = []any{nil}
	}
	return c.schema.problems(documents[0])
}

func list(message string) []string {
	if message == "" {
		return nil
	}
	return []string{message}
}
