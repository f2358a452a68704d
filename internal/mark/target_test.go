package mark

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestFieldsThatARuleSetAreReadBack(t *testing.T) {
	paths := []string{"spec.a", "spec.b.c"}
	require.Equal(t, map[string][]string{"rule": paths}, SetFields(map[string]string{
		SetBy("rule"): FormatFields(paths), SetBy("none"): "", Baseline: "b",
	}))
	require.Nil(t, SetFields(map[string]string{Baseline: "b"}))
}

func TestTheLongestNameOfARuleFits(t *testing.T) {
	longest := strings.Repeat("r", 63)
	require.Empty(t, validation.IsQualifiedName(SetBy(longest)))
	require.LessOrEqual(t, len(TargetManager(longest)), 128, "what the API server allows")
}

func TestAFieldManagerNamesItsRule(t *testing.T) {
	rule, is := RuleOfTargetManager(TargetManager("rule"))
	require.True(t, is)
	require.Equal(t, "rule", rule)
	_, is = RuleOfTargetManager(FieldManager)
	require.False(t, is, "what Headwater writes otherwise")
}
