package output

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type team struct {
	Name string `json:"name"`
	Size int    `json:"size"`
	Lead string `json:"lead,omitempty"`
}

type teams struct {
	Teams []team `json:"teams"`
}

func (t teams) Names() []string {
	var names []string
	for _, one := range t.Teams {
		names = append(names, one.Name)
	}
	return names
}

func (t teams) Table(out *Writer) {
	var rows [][]string
	for _, one := range t.Teams {
		rows = append(rows, []string{one.Name, one.Lead})
	}
	out.Rows(rows, []string{"TEAM"}, "LEAD")
}

type nameless struct{}

func (nameless) Table(*Writer) {}

func TestAListIsPrintedInTheFormThatIsAskedFor(t *testing.T) {
	file := filepath.Join(t.TempDir(), "path")
	require.NoError(t, os.WriteFile(file, []byte("{.teams[1].name}"), 0o600))
	for sentence, test := range map[string]struct {
		options Options
		want    string
	}{
		"nothing asked":                 {Options{}, "TEAM\nblue\nlong-name\n"},
		"a table":                       {Options{Format: Table}, "TEAM\nblue\nlong-name\n"},
		"a table without headers":       {Options{Format: Table, NoHeaders: true}, "blue\nlong-name\n"},
		"more columns":                  {Options{Format: Wide}, "TEAM        LEAD\nblue        ada\nlong-name\n"},
		"more columns without headers":  {Options{Format: Wide, NoHeaders: true}, "blue        ada\nlong-name\n"},
		"JSON":                          {Options{Format: JSON}, "{\n  \"teams\": [\n    {\n      \"name\": \"blue\",\n      \"size\": 2,\n      \"lead\": \"ada\"\n    },\n    {\n      \"name\": \"long-name\",\n      \"size\": 3\n    }\n  ]\n}\n"},
		"YAML":                          {Options{Format: YAML}, "teams:\n- lead: ada\n  name: blue\n  size: 2\n- name: long-name\n  size: 3\n"},
		"names":                         {Options{Format: Name}, "blue\nlong-name\n"},
		"a field of each":               {Options{Format: `jsonpath={range .teams[*]}{.name}={.size}{"\n"}{end}`}, "blue=2\nlong-name=3\n"},
		"a field that one lacks":        {Options{Format: "jsonpath={.teams[*].lead}"}, "ada\n"},
		"fields as JSON":                {Options{Format: "jsonpath-as-json={.teams[*].size}"}, "[\n    2,\n    3\n]\n"},
		"columns that the user names":   {Options{Format: "custom-columns=SIZE:.size,LEAD:.lead"}, "SIZE   LEAD\n2      ada\n3      <none>\n"},
		"columns without headers":       {Options{Format: "custom-columns=N:{.name}", NoHeaders: true}, "blue\nlong-name\n"},
		"a field that a file describes": {Options{Format: Format("jsonpath-file=" + file)}, "long-name\n"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if test.options.Format != "" {
				require.NoError(t, new(Format).Set(string(test.options.Format)))
			}
			var out strings.Builder
			require.NoError(t, test.options.Print(&out, teams{[]team{{"blue", 2, "ada"}, {"long-name", 3, ""}}}))
			require.Equal(t, test.want, out.String())
		})
	}
}

func TestAnUnknownFormatNamesTheFormatsThatExist(t *testing.T) {
	for text, problem := range map[string]string{
		"xml":                  "use one of table, wide, json, yaml, name, jsonpath=, jsonpath-as-json=, jsonpath-file=, custom-columns=",
		"json=x":               "use one of",
		"custom-columns=":      "is no column",
		"custom-columns=A":     "is no column",
		"custom-columns=A:.b[": "column A",
		"jsonpath":             "use one of",
		"jsonpath=":            "no template given",
		"jsonpath={.teams":     "unclosed action",
		"jsonpath-file=/no/no": "no such file",
	} {
		require.ErrorContains(t, new(Format).Set(text), problem, text)
	}
}

func TestWhatHasNoNamesCannotBeListedByName(t *testing.T) {
	_, err := Options{Format: Name}.Text(nameless{})
	require.ErrorIs(t, err, errNoNames)
}

func TestAControlCharacterNeverReachesATerminal(t *testing.T) {
	for _, format := range []Format{"", Name, "custom-columns=A:.name", "jsonpath={.teams[*].name}"} {
		text, err := Options{Format: format}.Text(teams{[]team{{Name: "a\x1b[31mb"}}})
		require.NoError(t, err, format)
		require.NotContains(t, text, "\x1b", format)
		require.Contains(t, text, "[31mb", format)
	}
}
