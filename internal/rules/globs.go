package rules

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Names are those that things of a kind can have.
type Names struct{ of, characters string }

// The names of namespaces are labels as in RFC 1123, and those of Secrets and ConfigMaps are
// subdomains.
var (
	NamespaceNames = Names{"a namespace", "abcdefghijklmnopqrstuvwxyz0123456789-"}
	ObjectNames    = Names{"an object", NamespaceNames.characters + "."}
)

// ValidateGlobs reports every pattern that none of these names matches, and which was probably
// meant.
func (n Names) ValidateGlobs(at *field.Path, patterns []string) (errs field.ErrorList) {
	for i, pattern := range patterns {
		if problem := n.problem(pattern); problem != "" {
			errs = append(errs, field.Invalid(at.Index(i), pattern, problem+n.hint(pattern)))
		}
	}
	return errs
}

// problem returns why pattern matches no name; empty if it may match one. What a class in
// brackets has is not looked at.
func (n Names) problem(pattern string) string {
	if pattern == "" {
		return "an empty pattern matches nothing; remove it"
	}
	if _, err := path.Match(pattern, ""); err != nil {
		return "not a glob: check its brackets and backslashes"
	}
	for _, r := range classes.ReplaceAllString(pattern, "") {
		if !strings.ContainsRune(n.characters+`*?\`, r) {
			return fmt.Sprintf("%s has no %q in its name, so that this glob matches none", n.of, r)
		}
	}
	return ""
}

// classes are those of path.Match: a list of characters in brackets, and what a backslash
// stands before.
var classes = regexp.MustCompile(`\\.|\[\^?(?:[^\]\\]|\\.)+\]`)

// hint says which patterns were probably meant.
func (n Names) hint(pattern string) string {
	if strings.HasPrefix(pattern, "!") {
		return "; include and exclude say which way a glob is meant"
	}
	var quoted []string
	for _, one := range alternatives(ofExpression(strings.Map(unicode.ToLower, pattern))) {
		if one == pattern || n.problem(one) != "" {
			return ""
		}
		quoted = append(quoted, fmt.Sprintf("%q", one))
	}
	return "; did you mean " + strings.Join(quoted, ", ") + "?"
}

// ofExpression returns the glob for a regular expression such as ^many-[0-9]+$.
func ofExpression(text string) string {
	text = strings.TrimSuffix(strings.TrimPrefix(text, "^"), "$")
	text = strings.NewReplacer(".*", "*", ".+", "?*").Replace(text)
	return strings.ReplaceAll(text, "]+", "]*")
}

// group is the first list of alternatives in brackets, as in (b|c) or {b,c}.
var group = regexp.MustCompile(`\(([^()]*)\)|\{([^{}]*)\}`)

// alternatives returns what a pattern stands for that lists some in brackets, or after commas.
func alternatives(pattern string) (found []string) {
	whole, parts := "", strings.Split(pattern, ",")
	if at := group.FindStringSubmatchIndex(pattern); at != nil {
		whole = pattern[at[0]:at[1]]
		parts = strings.Split(strings.ReplaceAll(whole[1:len(whole)-1], "|", ","), ",")
	}
	for _, part := range parts {
		part = strings.TrimSpace(part)
		if whole != "" {
			part = strings.Replace(pattern, whole, part, 1)
		}
		found = append(found, part)
	}
	return found
}
