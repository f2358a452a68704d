package sync

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAFailureSaysWhichRuleItIsOf(t *testing.T) {
	for sentence, note := range map[string]string{
		"an Event's":           FailureNote{Rule: "blog", Why: "exceeded quota: 5%, \"hard\""}.String(),
		"one that was cut":     FailureNote{Rule: "blog", Why: strings.Repeat("x", 2000)}.String()[:1000] + "…",
		"one of lines":         FailureNote{Rule: "blog", Why: "a\nb"}.String(),
		"an earlier version's": `rule "blog": create Secret/a/b: no; tried again with growing pauses`,
	} {
		t.Run(sentence, func(t *testing.T) { require.Equal(t, "blog", FailedRule(note)) })
	}
	require.Empty(t, FailedRule("something else"))
}

func TestTheLongestFailuresAreNamedFirst(t *testing.T) {
	now, targets, f := time.Unix(1000, 0), places(0, 3), failures{}
	f.add(targets[2], "blog", errors.New("quota"), now)
	f.add(targets[0], "blog", errors.New("quota"), now.Add(time.Second))
	f.add(targets[1], "blog", errors.New("quota"), now.Add(time.Second))
	f.add(targets[2], "blog", errors.New("quota again"), now.Add(time.Minute))
	require.Equal(t, targets[2:], f.first(1))
	require.Len(t, f.first(9), 3)
}
