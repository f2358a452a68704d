package reported

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/inspect"
	"github.com/headwater-k8s/headwater/internal/output"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
)

func isReady(status metav1.ConditionStatus, reason, message string) []metav1.Condition {
	return []metav1.Condition{{Type: rulestatus.Ready, Status: status, Reason: reason, Message: message}}
}

func shown(t *testing.T, report output.Printable, format output.Format) string {
	t.Helper()
	text, err := output.Options{Format: format}.Text(report)
	require.NoError(t, err)
	return text
}

func TestWhatIsNotReadyNeedsAttention(t *testing.T) {
	changed := metav1.NewTime(time.Now().Add(-time.Minute))
	rules := []ruleReport{
		{"fine", rulestatus.Status{
			Conditions: isReady(metav1.ConditionTrue, "Ready", "all is well"),
			Sources:    &rulestatus.Sources{Total: 1, First: []rulestatus.Source{{Kind: "Secret", Namespace: "src", Name: "shared"}}},
			Clones:     &rulestatus.Clones{Total: 12, Current: 12}, Protection: "Verified", LastChange: &changed,
			LastPropagation: &rulestatus.Propagation{Completed: changed, Clones: 12, Duration: "14ms"},
		}},
		{"conflicting", rulestatus.Status{
			Conditions: append(isReady(metav1.ConditionFalse, "Conflict", "300 clones in conflict"), metav1.Condition{Type: rulestatus.Stalled, Status: metav1.ConditionTrue}),
			Sources:    &rulestatus.Sources{Total: 2, Missing: 1}, Clones: &rulestatus.Clones{Total: 312, Current: 12, NeedAttention: 300},
			Problems:     []rulestatus.Problem{{State: "conflict", Reason: "Conflict", Message: "not managed", Clones: 300, Namespaces: []string{"a", "b"}}},
			MoreProblems: 3,
		}},
		{"delivering", rulestatus.Status{
			Conditions: isReady(metav1.ConditionFalse, "Delivering", "a delivery is under way"),
			Delivery: &rulestatus.Delivery{
				Source: "Secret/src/x", State: rulestatus.DeliveryAwaitingApproval, Revision: 3, Stage: "canary", Number: 1, Stages: 2, Message: "run headwater promote",
			},
		}},
		{"gone", rulestatus.Status{Conditions: isReady(metav1.ConditionTrue, "RuleRemoved", ""), Removed: true}},
		{"new", rulestatus.Status{}},
	}
	report := Report{Rules: rules}
	require.Equal(t, []string{"rule conflicting: 300 clones in conflict", "rule delivering: a delivery is under way", "rule new: NotReported"}, report.attention())
	table := shown(t, report, output.Table)
	for _, line := range []string{
		`(?m)^RULE +READY +REASON +SOURCES +CLONES +CURRENT +ATTENTION +PROTECTION +DELIVERY +LAST CHANGE$`,
		`(?m)^fine +True +Ready +1 +12 +12 +0 +Verified +- +60s ago, to 12 clones in 14ms$`,
		`(?m)^conflicting +False +Conflict +2 \(1 missing\) +312 +12 +300 +- +- +-$`,
		`(?m)^gone \(removed\) +True +RuleRemoved +- +- +- +- +- +- +-$`,
		`(?m)^new +Unknown +NotReported`,
		"\nconflicting: 300 clones in conflict\n  run `headwater plan -o wide`\n",
		`\nconflicting: 300 clones conflict \(Conflict\): in a, b and 298 more\n  not managed\n`,
		`\nconflicting: 3 more kinds of problems; `,
		`\ndelivering: delivery: AwaitingApproval, revision 3 of Secret/src/x, stage canary \(1 of 2\): run headwater promote\n`,
	} {
		require.Regexp(t, line, table)
	}
	require.NotContains(t, table, "all is well")
	require.Regexp(t, `(?m)^fine .* Secret/src/shared +-$`, shown(t, report, output.Wide))
	require.Equal(t, "fine\nconflicting\ndelivering\ngone\nnew\n", shown(t, report, output.Name))
	var data struct {
		Rules []struct {
			Name     string               `json:"name"`
			Delivery *rulestatus.Delivery `json:"delivery"`
		} `json:"rules"`
	}
	require.NoError(t, json.Unmarshal([]byte(shown(t, report, output.JSON)), &data))
	require.Equal(t, rules[2].Delivery, data.Rules[2].Delivery, "the fields of RuleStatuses, beside the name")
}

func TestAReportWithoutALeaderIsOld(t *testing.T) {
	report := Report{Confirmation: inspect.Confirmation{Leader: &inspect.Leadership{}}}
	require.Equal(t, []string{"no replica leads", "no rule has a RuleStatus"}, report.attention())
	require.Contains(t, shown(t, report, output.Table), "No replica is known to lead")
	report.Leader.Leads = true
	require.Equal(t, []string{"no rule has a RuleStatus"}, report.attention(), "of nothing, nothing is known")
	require.Equal(t, "no rule has a RuleStatus\n", shown(t, report, output.Table))
}

// asStored is what kubectl prints.
type asStored struct{ rulestatus.RuleStatus }

func (asStored) Table(*output.Writer) {}

var (
	asked = regexp.MustCompile(`(?:-o |--for=)'?((?:jsonpath|custom-columns)='?[^'` + "`" + `]*)`)
	// placeholder is in what stands for a path.
	placeholder = regexp.MustCompile(`TEMPLATE|HEADER|…`)
)

// What the documents print with a path finds something, of a RuleStatus that has every field
// and of what `headwater status` prints of it.
func TestTheDocumentsNameFieldsThatExist(t *testing.T) {
	status := rulestatus.Status{
		Conditions: isReady(metav1.ConditionTrue, "Ready", "all is well"), ConfigurationRevision: "0123",
		Sources:  &rulestatus.Sources{Total: 1, First: []rulestatus.Source{{Kind: "Secret", Namespace: "src", Name: "shared", ResourceVersion: "7"}}},
		Clones:   &rulestatus.Clones{Total: 12, Current: 12},
		Delivery: &rulestatus.Delivery{Source: "Secret/src/shared", State: rulestatus.DeliveryAwaitingApproval, Revision: 3},
	}
	byUs, byKubectl := 0, 0
	for _, pattern := range []string{"*.md", "deploy/*.md", "deploy/guides/*.md"} {
		documents, err := filepath.Glob(filepath.Join("../../..", pattern))
		require.NoError(t, err)
		for _, document := range documents {
			text, err := os.ReadFile(document)
			require.NoError(t, err)
			for line := range strings.Lines(string(text)) {
				for _, match := range asked.FindAllStringSubmatch(line, -1) {
					var printed output.Printable = Report{Rules: []ruleReport{{"feature-flags", status}}}
					switch {
					case placeholder.MatchString(match[1]):
						continue
					case strings.Contains(line, "rulestatus/"):
						printed = asStored{rulestatus.RuleStatus{Status: status}}
						byKubectl++
					case strings.Contains(line, "kubectl "), strings.HasPrefix(line, "jsonpath="):
						continue // of another object
					default:
						byUs++
					}
					shows := shown(t, printed, output.Format(strings.ReplaceAll(match[1], "'", "")))
					require.NotEmpty(t, strings.TrimSpace(shows), "%s: %s", document, line)
					require.NotContains(t, shows, "<none>", "%s: %s", document, line)
				}
			}
		}
	}
	require.GreaterOrEqual(t, byUs, 2)
	require.GreaterOrEqual(t, byKubectl, 3)
}
