package migrate_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/migrate"
)

// A document that cannot be read is told, without what it holds, and the others
// are read all the same.
func TestWhatCannotBeReadIsToldWithItsLineAndItsCause(t *testing.T) {
	const source = "apiVersion: v1\nkind: Secret\nmetadata: {namespace: a, name: b}\n"
	for sentence, test := range map[string]struct {
		file string
		want []string
	}{
		"text for a mapping":            {"apiVersion: v1\nkind: Secret\nmetadata: hunter2\n", []string{"f:1: metadata: it does not hold what Kubernetes takes there"}},
		"a word that YAML takes for no": {"metadata:\n  labels: {b: no}\n", []string{"f:1: metadata.labels: it is a bool to YAML and has to be a text; put it in quotes"}},
		"a list for text, deeper in":    {"kind: A\nmetadata:\n  name: x\n  labels:\n    b: [hunter2]\n", []string{"f:1: metadata.labels: it does not hold what Kubernetes takes there"}},
		"a list":                        {"- hunter2\n", []string{"f:1: it does not hold what Kubernetes takes there"}},
		"a time that is none":           {"metadata: {creationTimestamp: hunter2}\n", []string{"f:1: it does not hold what Kubernetes takes there"}},
		"no YAML":                       {"a: b\nb: hunter2: c\n", []string{"f:2: it is not YAML, here or just before: mapping values are not allowed in this context"}},
		"an alias for a value":          {"a: *hunter2\n", []string{"f:1: it is not YAML, here or just before: an alias"}},
		"a template that is YAML":       {"a:\n  b: '{{ `{{` }}request{{ `}}` }}'\n", []string{"f:2: it is a template; render it first"}},
		"a template":                    {"# of a chart\na:\n  b: {{ .Values.hunter2 }}\n", []string{"f:3: it is a template; render it first"}},
		"no JSON":                       {"{\"a\": 1}\n{\"a\": hunter2}\n", []string{"f:2: it is not JSON, here or just after"}},
		"one item of a list": {
			"kind: List\nitems:\n- {metadata: hunter2}\n- hunter2\n",
			[]string{"f:1: metadata: it does not hold", "f:1: it does not hold"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			var in migrate.Input
			lines := strings.Count(source, "\n") + 1
			require.NoError(t, in.Read("f", strings.NewReader(source+"---\n"+test.file+"# of kyverno.io\n--- # the last\n"+source)))
			require.Len(t, in.Objects, 2)
			require.Len(t, in.Unread, len(test.want))
			for i, left := range in.Unread {
				file, line, _ := strings.Cut(left.At, ":")
				number, err := strconv.Atoi(line)
				require.NoError(t, err)
				told := fmt.Sprintf("%s:%d: %s", file, number-lines, left.Why)
				require.True(t, strings.HasPrefix(told, test.want[i]), told)
				require.NotContains(t, told, "hunter2")
			}
			result := migrate.Translate(in)
			require.False(t, result.Carried())
			require.True(t, result.Empty())
			require.Contains(t, result.Unreadable(), in.Unread[0].Why)
		})
	}
}

// A repository has playbooks, charts and settings beside what is translated.
func TestWhatNamesNoToolIsPassedOverReadableOrNot(t *testing.T) {
	for _, file := range []string{"- hosts: all\n", "a: {{ .Values.b }}\n", "apiVersion: 1\n", "{\"a\": b}\n", "a: b: c\n"} {
		var in migrate.Input
		require.NoError(t, in.Read("f", strings.NewReader(file)))
		require.Empty(t, in.Unread, file)
	}
}

func TestDocumentsAreReadHoweverTheyAreWritten(t *testing.T) {
	for sentence, file := range map[string]string{
		"plain":               "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n",
		"with keys in quotes": "\"apiVersion\": v1\n\"kind\": Secret\nmetadata: {name: a}\n",
		"in braces":           "{apiVersion: v1, kind: Secret, metadata: {name: a}}",
		"as JSON":             `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}`,
		"after nothing":       "---\n# nothing\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: a}\n",
	} {
		t.Run(sentence, func(t *testing.T) {
			var in migrate.Input
			require.NoError(t, in.Read("f", strings.NewReader(file)))
			require.Empty(t, in.Unread)
			require.Len(t, in.Objects, 1)
			require.Equal(t, "a", in.Objects[0].Name)
		})
	}
	var in migrate.Input
	require.NoError(t, in.Read("f", strings.NewReader(strings.Repeat(`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}`+"\n", 3))))
	require.Len(t, in.Objects, 3, "JSON one after another")
}
