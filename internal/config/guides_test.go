package config_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/headwater-k8s/headwater/internal/config"
)

// foreign are the first keys of blocks that are part of another tool's file: a kustomization,
// a ConfigMap of Argo CD, a Kustomization of Flux.
var foreign = []string{"patches", "data", "healthCheckExprs"}

var (
	yamlBlock = regexp.MustCompile("(?ms)^( *)```yaml\n(.*?)^ *```")
	valuesDoc = regexp.MustCompile(`(?ms)^( *)cat > values.yaml <<EOF\n(.*?)^ *EOF$`)
)

// Every block of YAML in a document is what it looks like: a configuration or a part of one,
// values of the chart, or another object.
func TestTheDocumentsShowValidConfigurations(t *testing.T) {
	var documents []string
	for _, pattern := range []string{"*.md", "configs/*.md", "deploy/*.md", "deploy/guides/*.md"} {
		found, err := filepath.Glob(filepath.Join("../..", pattern))
		require.NoError(t, err)
		documents = append(documents, found...)
	}
	values := keysOfValues(t)
	checked := map[string]int{}
	for _, document := range documents {
		text, err := os.ReadFile(document)
		require.NoError(t, err)
		for _, block := range slices.Concat(yamlBlock.FindAllStringSubmatch(string(text), -1), valuesDoc.FindAllStringSubmatch(string(text), -1)) {
			unindented := regexp.MustCompile("(?m)^"+block[1]).ReplaceAllString(block[2], "")
			checked[checkBlock(t, filepath.Base(document), unindented, values)]++
		}
	}
	t.Log(checked)
	for _, what := range []string{"configuration", "part of one", "values", "another object", "part of another tool's file"} {
		require.Positive(t, checked[what], what)
	}
}

func checkBlock(t *testing.T, document, text string, values map[string]bool) (what string) {
	t.Helper()
	if strings.HasPrefix(text, "- name:") {
		text = "rules:\n" + text
	}
	var top map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &top), "%s: %s", document, text)
	require.NotEmpty(t, top, "%s: %s", document, text)
	isValues := true
	for key := range top {
		isValues = isValues && values[key]
	}
	valid := func(text string) {
		_, err := config.CheckFile("headwater-system", document, []byte(text))
		require.NoError(t, err, "%s: %s", document, text)
	}
	switch {
	case top["kind"] == config.Kind:
		valid(text)
		return "configuration"
	case top["kind"] != nil && top["apiVersion"] != nil:
		return "another object"
	case isValues && top["protect"] == nil && !isReceivers(top["notify"]):
		if top["config"] != nil {
			valid(text)
		}
		return "values"
	case slices.ContainsFunc(foreign, func(key string) bool { return top[key] != nil }):
		return "part of another tool's file"
	default:
		if top["rules"] == nil {
			text += "\nrules: []\n"
		}
		valid("apiVersion: " + config.APIVersion + "\nkind: " + config.Kind + "\n" + text)
		return "part of one"
	}
}

// isReceivers tells the configuration's list notify from the chart's value notify.
func isReceivers(notify any) bool {
	_, is := notify.([]any)
	return is
}

func keysOfValues(t *testing.T) map[string]bool {
	t.Helper()
	raw, err := os.ReadFile("../../deploy/helm/headwater/values.schema.json")
	require.NoError(t, err)
	var schema struct {
		Properties map[string]any `json:"properties"`
	}
	require.NoError(t, json.Unmarshal(raw, &schema))
	keys := map[string]bool{}
	for key := range schema.Properties {
		keys[key] = true
	}
	return keys
}
