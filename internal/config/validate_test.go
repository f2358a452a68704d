package config_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/validate"
)

func TestChecksOfContentReachTheRules(t *testing.T) {
	sets, err := parse(t, oneRule("  validate: [{key: a, is: JSON}, {key: a, schema: {maxLength: 3}}]", "  sync: {}", "  protect: {}")).Compile("headwater")
	require.NoError(t, err)
	for _, base := range []*validate.Validator{sets.Bases[0].Validator, sets.Sync.All()[0].Validator, sets.Protect.All()[0].Validator} {
		problems := base.Judge(object.Content{Data: map[string][]byte{"a": []byte(`"long"`)}}, time.Time{}, time.Time{}).Problems
		require.Equal(t, []validate.Problem{{Key: "a", Message: "does not match its schema at /: maxLength"}}, problems)
	}
	sets, err = parse(t, oneRule("  sync: {}")).Compile("headwater")
	require.NoError(t, err)
	require.Nil(t, sets.Bases[0].Validator)
}

func TestFaultyChecksOfContentAreReportedWithTheirLine(t *testing.T) {
	requireReports(t, map[string]badFile{
		"formats and what belongs to them": reports(oneRule("  sync: {}", "  validate:", "  - {key: a, is: yml}", "  - {key: a, is: Regex, pattern: '('}",
			"  - key: a", "    schema: {type: text}", "  - {key: a}", "  - {key: a, is: PEM, minValidity: 24h}"),
			`f.yaml:8: rules[0].validate[0].is: must be YAML, JSON, TOML, PEM, Certificate, DockerConfig or Regex, not "yml"; did you mean "YAML"?`,
			`f.yaml:9: rules[0].validate[1].pattern: "(" cannot be used: missing closing )`,
			`f.yaml:11: rules[0].validate[2].schema: is not a JSON Schema that Headwater can use: it is wrong at /type`,
			`f.yaml:12: rules[0].validate[3]: says nothing about the value; add is or schema`,
			`f.yaml:13: rules[0].validate[4].minValidity: is only for the format Certificate; write is: Certificate, or remove it`),
		"checks that nobody uses": reports(oneRule("  reload: {}", "  validate: [{key: a, is: YAML}]"),
			"f.yaml:7: rules[0].validate: has no effect without sync or protect; add one of them, or remove it"),
	})
}
