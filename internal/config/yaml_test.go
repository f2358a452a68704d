package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/config"
)

const isEmpty = "f.yaml:1: is empty; write at least apiVersion: headwater.dev/v1alpha1 and kind: Config"

func TestParseReportsWhatIsNotOneDocument(t *testing.T) {
	notAMapping := "f.yaml:%d: must be a mapping that starts with apiVersion: headwater.dev/v1alpha1 and kind: Config"
	requireReports(t, map[string]badFile{
		"an empty file":             {raw: nil, want: []string{isEmpty}},
		"a file of comments":        {raw: []byte("# nothing\n"), want: []string{isEmpty}},
		"a file of one separator":   {raw: []byte("---\n"), want: []string{isEmpty}},
		"a list":                    {raw: []byte("# a list\n- a\n"), want: []string{fmt.Sprintf(notAMapping, 2)}},
		"a text":                    {raw: []byte("hello\n"), want: []string{fmt.Sprintf(notAMapping, 1)}},
		"two documents":             {raw: file("---", "kind: Config"), want: []string{"f.yaml:3: a second document starts here; put everything into one, without ---"}},
		"a separator at the end":    {raw: file("---"), want: []string{"f.yaml:3: a second document starts here; put everything into one, without ---"}},
		"a byte order mark":         {raw: append([]byte("\xef\xbb\xbf"), file()...), want: []string{"f.yaml:1: starts with a byte order mark; save the file as UTF-8 without one"}},
		"UTF-16":                    {raw: []byte("\xff\xfea\x00:\x00"), want: []string{"f.yaml:1: starts with a byte order mark; save the file as UTF-8 without one"}},
		"bytes that are not UTF-8":  {raw: file("# \xff"), want: []string{"f.yaml:3: this line is not UTF-8; save the file as UTF-8"}},
		"an escaped control letter": {raw: oneRule(`  protect: {message: "a\x07b"}`), want: []string{"f.yaml:6: rules[0].protect.message: holds a control character; remove it"}},
	})
}

func TestParseReportsSyntax(t *testing.T) {
	requireReports(t, map[string]badFile{
		"a tab before a value":             {raw: file("rules:", "-\tname:\ta", "  sync: {}", "  source:", "    kind:\tSecret", "-\t\t- x"), want: []string{"f.yaml:4: holds a tab; write spaces"}},
		"a sign that YAML keeps to itself": {raw: file("rules:", "- name: @a"), want: []string{"f.yaml:4: a value begins with @, ` or %; put it in quotes"}},
		"a tab":                            {raw: file("rules:", "- name: a", "\tsource: {}"), want: []string{"f.yaml:5: is indented with a tab; use spaces"}},
		"wrong indentation":                {raw: file("rules:", "- name: a", "   sync: {}"), want: []string{"f.yaml:5: is not YAML, here or just after: mapping values are not allowed in this context"}},
		"a missing colon":                  {raw: file("rules", "- name: a"), want: []string{"f.yaml:3: is not YAML, here or just after: could not find expected ':'"}},
		"an open bracket":                  {raw: file("rules: ["), want: []string{"f.yaml:3: is not YAML, here or just after: did not find expected node content"}},
		"an open quote":                    {raw: file(`rules: "`), want: []string{"f.yaml:3: is not YAML, here or just after: found unexpected end of stream"}},
		"an unknown anchor":                {raw: file("rules:", "- name: *a"), want: []string{"f.yaml:4: the anchor a is not defined above; define it with &a"}},
	})
}

func TestParseReportsKeysAndTags(t *testing.T) {
	requireReports(t, map[string]badFile{
		"keys given twice": reports(oneRule("  sync: {}", "  sync: {}", "  protect:", "    mode: Warn", "    mode: Audit"),
			"f.yaml:7: rules[0].sync: is given twice, first in line 6; remove one",
			"f.yaml:10: rules[0].protect.mode: is given twice, first in line 9; remove one"),
		"labels given twice": reports(oneRule("  sync: {target: {labels: {a.b/c: x,", "    a.b/c: x}}}"),
			"f.yaml:7: rules[0].sync.target.labels[a.b/c]: is given twice, first in line 6; remove one"),
		"keys that are not text": reports(oneRule("  sync:", "    target:", "      labels:", "        1: x", "        true: x", "        [a]: x"),
			`f.yaml:9: rules[0].sync.target.labels: a key must be text; put it in quotes: "1"`,
			`f.yaml:10: rules[0].sync.target.labels: a key must be text; put it in quotes: "true"`,
			`f.yaml:11: rules[0].sync.target.labels: a key must be text, not a list or a mapping`),
		"tags": reports(oneRule("  sync: !mine {}", "  protect: {message: !!binary aGk=}", "  reload: {action: !!int Auto}"),
			"f.yaml:6: rules[0].sync: the tag !mine is not supported; remove it",
			"f.yaml:7: rules[0].protect.message: the tag !!binary is not supported; remove it",
			`f.yaml:8: rules[0].reload.action: "Auto" is no int; remove the tag`),
		"a tag on the whole file": reports(append([]byte("!mine\n"), file()...),
			"f.yaml:1: the tag !mine is not supported; remove it"),
		"numbers without digits": reports(file("safety: {maxDeleteFraction: .nan}"),
			"f.yaml:3: safety.maxDeleteFraction: .nan is not a usable number; write one with digits"),
	})
}

func TestParseReportsAnchorsWithoutEnd(t *testing.T) {
	deep := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	requireReports(t, map[string]badFile{
		"an anchor in itself": reports(oneRule("  sync: &s", "    target: *s"),
			"f.yaml:7: rules[0].sync.target: the anchor s contains itself; write the value out"),
		"an anchor merged into itself": reports(oneRule("  sync: &s", "    <<: *s"),
			"f.yaml:7: rules[0].sync: the anchor s contains itself; write the value out"),
		"a merge of something else": reports(oneRule("  sync: {<<: 1}"),
			"f.yaml:6: rules[0].sync: << needs a mapping; write an alias such as *name"),
		"lists in lists": reports(file("rules: "+deep),
			"f.yaml:3: rules[0]: must be a mapping, not a list",
			"f.yaml:3: rules"+strings.Repeat("[0]", 63)+": is nested too deeply; flatten it"),
	})
}

func TestParseStopsAliasesThatMultiply(t *testing.T) {
	lines := []string{"rules:", `- &a0 [x, x, x, x, x, x, x, x, x, x]`}
	for i := range 20 {
		lines = append(lines, fmt.Sprintf("- &a%d [%s]", i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 10), ", ")))
	}
	_, err := config.Parse("f.yaml", file(lines...))
	require.ErrorContains(t, err, "aliases repeat too much; write the values out")
}
