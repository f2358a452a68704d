package spec_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/reload/spec"
)

func TestPathsOfFieldsAreRead(t *testing.T) {
	for text, want := range map[string]string{ // "!" begins a part of the problem
		"spec.key":                            "spec.key",
		".spec.a.b_c":                         "spec.a.b_c",
		"spec.env[name=ca.crt].value":         "spec.env[name=ca.crt].value",
		"spec.c[name=app].env[name=CA].value": "spec.c[name=app].env[name=CA].value",
		"spec.c[b=2][a=1].value":              "spec.c[a=1][b=2].value",
		"spec.c[0].value":                     "!by their index",
		"spec.c[name].value":                  "!by a key and its text",
		"spec.c[].value":                      "!which element",
		"spec.c[name=a]":                      "!ends at an element",
		"spec.c[name=a].name":                 "!what names the element",
		"spec.c[name=a,b=c].value":            "!by a key and its text",
		"spec..key":                           "!keys joined by dots",
		"spec.c[name=a":                       "!keys joined by dots",
		"metadata.labels.a":                   "!metadata must not be written",
	} {
		t.Run(text, func(t *testing.T) {
			path, err := spec.ParseFieldPath(text)
			if want[0] == '!' {
				require.ErrorContains(t, err, want[1:])
				return
			}
			require.NoError(t, err)
			require.Equal(t, want, path.String())
		})
	}
}

func TestFieldsInElementsOfListsAreSetAndFound(t *testing.T) {
	content := map[string]any{}
	for to, text := range map[string]string{
		"spec.c[name=app].env[name=CA].value": "1", "spec.c[name=app].env[name=KEY].value": "2", "spec.c[name=other].image": "3", "spec.plain": "4",
	} {
		path, err := spec.ParseFieldPath(to)
		require.NoError(t, err)
		path.Set(content, text)
	}
	app := content["spec"].(map[string]any)["c"].([]any)
	require.Len(t, app, 2, "one element for each key, whatever is set in it")
	for to, want := range map[string]string{
		"spec.c[name=app].env[name=CA].value": "1", "spec.c[name=app].env[name=KEY].value": "2", "spec.c[name=other].image": "3", "spec.plain": "4",
		"spec.c[name=none].image": "", "spec.c.image": "", "spec.plain[name=a].x": "",
	} {
		path, err := spec.ParseFieldPath(to)
		require.NoError(t, err)
		text, found := path.Text(content)
		require.Equal(t, want, text, to)
		require.Equal(t, want != "", found, to)
	}
}
