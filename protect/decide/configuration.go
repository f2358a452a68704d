package decide

import (
	"fmt"
	"strings"

	"github.com/headwater-k8s/headwater/internal/cut"
)

// AboutConfiguration asks whether Headwater's own configuration is valid.
const AboutConfiguration About = "configuration"

// The reasons about Headwater's own configuration.
const (
	// ReasonConfigurationInvalid: Headwater could not put it in force.
	ReasonConfigurationInvalid Reason = "ConfigurationInvalid"
	// ReasonConfigurationUnchanged: the write leaves the configuration as it is.
	ReasonConfigurationUnchanged Reason = "ConfigurationUnchanged"
	// ReasonConfigurationUpgrade: the write belongs to an upgrade of Headwater.
	ReasonConfigurationUpgrade Reason = "ConfigurationUpgrade"
	// ReasonConfigurationValid: there is no problem with it.
	ReasonConfigurationValid Reason = "ConfigurationValid"
)

// OwnConfiguration is the ConfigMap that holds Headwater's configuration.
type OwnConfiguration struct {
	Namespace, Name, Key string
	// Check returns what is wrong with a configuration, and what is valid but
	// probably a mistake, a line each.
	Check func(text []byte) (problems, notes []string)
}

const (
	// versionLabel changes when a chart of another version is installed.
	versionLabel = "app.kubernetes.io/version"
	// maxProblems and maxWarning bound what one answer shows. The API server cuts
	// warnings that are longer.
	maxProblems = 20
	maxWarning  = 256
)

// Judge is the verdict about a write of the ConfigMap. A dry run is judged alike.
func (o OwnConfiguration) Judge(request Request) Verdict {
	if request.New == nil {
		return Verdict{Allowed: true, Reason: ReasonUnreadable}
	}
	text, found := request.New.Content.Data[o.Key]
	if request.Old != nil && string(request.Old.Content.Data[o.Key]) == string(text) {
		return Verdict{Allowed: true, Reason: ReasonConfigurationUnchanged}
	}
	var problems, notes []string
	if found {
		problems, notes = o.Check(text)
	} else {
		problems = []string{fmt.Sprintf("key %s is missing; Headwater reads its configuration from there", o.Key)}
	}
	switch {
	case len(problems) == 0:
		return Verdict{Allowed: true, Reason: ReasonConfigurationValid, Warnings: warnings(notes)}
	case o.upgrades(request):
		problems = append([]string{"not checked against the new version of Headwater; the running version finds:"}, problems...)
		return Verdict{Allowed: true, Reason: ReasonConfigurationUpgrade, Warnings: warnings(append(problems, notes...))}
	default:
		return Verdict{Reason: ReasonConfigurationInvalid, Message: invalidMessage(problems)}
	}
}

// upgrades reports whether the write changes the version of the chart, too. The
// version that runs does not know what the next one accepts.
func (o OwnConfiguration) upgrades(request Request) bool {
	return request.Old != nil && request.Old.Labels[versionLabel] != request.New.Labels[versionLabel]
}

func invalidMessage(problems []string) string {
	return "the configuration is not valid; the one in force stays:\n" + strings.Join(truncateLines(maxProblems, problems), "\n")
}

func warnings(lines []string) []string {
	lines = truncateLines(maxProblems, lines)
	for i, line := range lines {
		lines[i] = cut.To(line, maxWarning-len(cut.More))
	}
	return lines
}

// truncateLines returns at most most of lines, and how many it left out.
func truncateLines(limit int, lines []string) []string {
	if len(lines) <= limit {
		return lines
	}
	return append(append([]string{}, lines[:limit]...), fmt.Sprintf("and %d more", len(lines)-limit))
}
