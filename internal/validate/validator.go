package validate

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
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

// Verdict is what checks say of content at a time.
type Verdict struct {
	// Problems are what is wrong, in the order of the checks and at most a few.
	Problems []Problem
	// ValidFrom is when the content passes by itself, because nothing is wrong with it but
	// that certificates are not valid yet; else zero.
	ValidFrom time.Time
	// Expired names the certificates that were valid when the content was written, and no
	// longer are. That is no problem: clones of it are kept right.
	Expired []Problem
	// At is when this was judged, and Until when it has to be judged again, because a
	// certificate becomes valid or expires; zero if never.
	At, Until time.Time
}

// String returns the problems as sentences; empty if there are none.
func (v Verdict) String() string { return sentences(v.Problems) }

// Warning returns Expired as sentences; empty if there are none.
func (v Verdict) Warning() string { return sentences(v.Expired) }

// HoldsAt reports whether the verdict is the same now. That a clock was set back is seen.
func (v Verdict) HoldsAt(now time.Time) bool {
	return !now.Round(0).Before(v.At) && (v.Until.IsZero() || now.Before(v.Until))
}

func sentences(problems []Problem) string {
	var all []string
	for _, problem := range problems {
		all = append(all, problem.String())
	}
	return strings.Join(all, "; ")
}

// finding is what a check says of a value until a time; the message is empty if that is
// fine. isTemporary and isWarning are true for what becomes ValidFrom and Expired.
type finding struct {
	message                string
	until                  time.Time
	isTemporary, isWarning bool
}

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

// Judge returns what the checks say of content that was written at one time, and is judged
// now. A certificate must not have expired when it was written, so that a source that
// expires later stays valid, and must be valid now.
func (v *Validator) Judge(content object.Content, written, now time.Time) (verdict Verdict) {
	if v == nil {
		return Verdict{}
	}
	lasts := false
	verdict.At = now.Round(0) // without the reading of the monotonic clock, which cannot be set
	for _, check := range v.checks {
		for _, one := range check.findings(content, written, now) {
			verdict.add(check.Key, one)
			lasts = lasts || one.message != "" && !one.isTemporary && !one.isWarning
		}
	}
	if lasts {
		verdict.ValidFrom = time.Time{}
	}
	return verdict
}

func (v *Verdict) add(key string, one finding) {
	if !one.until.IsZero() && (v.Until.IsZero() || one.until.Before(v.Until)) {
		v.Until = one.until
	}
	if one.isTemporary && one.until.After(v.ValidFrom) {
		v.ValidFrom = one.until
	}
	problem, to := Problem{Key: key, Message: one.message}, &v.Problems
	if one.isWarning {
		to = &v.Expired
	}
	if one.message != "" && !slices.Contains(*to, problem) && len(*to) < maxProblems {
		*to = append(*to, problem)
	}
}

// findings returns what is to say of the value. A parser that fails on a value in an
// unexpected way must not take the process down.
func (c compiled) findings(content object.Content, written, now time.Time) (all []finding) {
	defer func() {
		if recover() != nil {
			all = list("cannot be read as " + string(c.format()))
		}
	}()
	value, found := valueOf(content, c.Key)
	switch {
	case !found:
		return list("is missing")
	case len(value) > maxValue:
		return list("is larger than 1 MiB")
	}
	switch c.format() {
	case PEM:
		return list(checkPEM(value))
	case Certificate:
		first, wrong := readCertificates(value)
		if wrong != "" {
			return list(wrong)
		}
		if c.PrivateKey != "" {
			all = list(c.checkPrivateKey(value, content))
		}
		return append(all, c.checkValidity(first, written, now)...)
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
func (c compiled) document(value []byte) []finding {
	if line, tooMuch := bounds.Exceeded(value, maxMarks); tooMuch != "" {
		return list(fmt.Sprintf("%s (line %d)", tooMuch, line))
	}
	documents, wrong := readers[c.format()](value)
	switch {
	case wrong != "" || c.schema == nil:
		return list(wrong)
	case len(documents) > 1:
		return list("holds several YAML documents; its schema describes one")
	case len(documents) == 0:
		documents = []any{nil}
	}
	return list(c.schema.problems(documents[0])...)
}

// list returns findings with the messages that are not empty.
func list(messages ...string) []finding {
	var all []finding
	for _, message := range messages {
		if message != "" {
			all = append(all, finding{message: message})
		}
	}
	return all
}
