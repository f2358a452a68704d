package decide_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/protect/decide"
)

func testConfiguration() decide.OwnConfiguration {
	return decide.OwnConfiguration{Namespace: "own", Name: "headwater", Key: "headwater.yaml", Check: func(text []byte) (problems, notes []string) {
		switch string(text) {
		case "bad":
			return []string{"line 1: bad"}, nil
		case "very bad":
			for i := range 25 {
				problems = append(problems, fmt.Sprintf("line %d: bad", i))
			}
			return problems, nil
		case "noted":
			return nil, []string{strings.Repeat("n", 1000)}
		default:
			return nil, nil
		}
	}}
}

func configMapOf(text, version string) *object.Full {
	return &object.Full{
		ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: "headwater", Labels: map[string]string{"app.kubernetes.io/version": version}},
		Kind:       object.ConfigMap, Content: object.Content{Data: map[string][]byte{"headwater.yaml": []byte(text)}},
	}
}

func TestOwnConfigurationIsJudged(t *testing.T) {
	good, bad := configMapOf("good", "1"), configMapOf("bad", "1")
	empty := configMapOf("", "1")
	empty.Content.Data = nil
	for sentence, test := range map[string]struct {
		old, new *object.Full
		allowed  bool
		reason   decide.Reason
		message  string
		warnings int
	}{
		"a valid one passes":                              {new: good, allowed: true, reason: decide.ReasonConfigurationValid},
		"an invalid one is refused when it is created":    {new: bad, reason: decide.ReasonConfigurationInvalid, message: "line 1: bad"},
		"an invalid one is refused when it is updated":    {old: good, new: bad, reason: decide.ReasonConfigurationInvalid, message: "line 1: bad"},
		"a dropped key is refused":                        {old: good, new: empty, reason: decide.ReasonConfigurationInvalid, message: "key headwater.yaml is missing"},
		"an invalid one that stays as it is passes":       {old: bad, new: configMapOf("bad", "1"), allowed: true, reason: decide.ReasonConfigurationUnchanged},
		"an invalid one of the next version is warned of": {old: good, new: configMapOf("bad", "2"), allowed: true, reason: decide.ReasonConfigurationUpgrade, warnings: 2},
		"a note is a warning":                             {old: good, new: configMapOf("noted", "1"), allowed: true, reason: decide.ReasonConfigurationValid, warnings: 1},
		"only so many problems are listed":                {new: configMapOf("very bad", "1"), reason: decide.ReasonConfigurationInvalid, message: "and 5 more"},
		"what cannot be read passes, and is not in force": {allowed: true, reason: decide.ReasonUnreadable},
	} {
		t.Run(sentence, func(t *testing.T) {
			verdict := testConfiguration().Judge(decide.Request{Old: test.old, New: test.new})
			require.Equal(t, test.allowed, verdict.Allowed)
			require.Equal(t, test.reason, verdict.Reason)
			require.Contains(t, verdict.Message, test.message)
			require.Len(t, verdict.Warnings, test.warnings)
			for _, warning := range verdict.Warnings {
				require.LessOrEqual(t, len(warning), 256)
			}
		})
	}
}
