package decide

import (
	"fmt"
	"strings"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/text"
)

// AboutConfiguration checks whether Headwater's own configuration is valid.
const AboutConfiguration About = "configuration"

// The reasons of verdicts on Headwater's own configuration.
const (
	// ReasonConfigurationInvalid: the configuration has problems, so Headwater
	// could not apply it.
	ReasonConfigurationInvalid Reason = "ConfigurationInvalid"
	// ReasonConfigurationUnchanged: the write does not change the
	// configuration.
	ReasonConfigurationUnchanged Reason = "ConfigurationUnchanged"
	// ReasonConfigurationUpgrade: the write is part of an upgrade of Headwater.
	ReasonConfigurationUpgrade Reason = "ConfigurationUpgrade"
	// ReasonConfigurationValid: the configuration has no problems.
	ReasonConfigurationValid Reason = "ConfigurationValid"
)

// OwnConfiguration is the ConfigMap with Headwater's configuration, under Key.
type OwnConfiguration struct {
	Namespace, Name, Key string
	// Check returns the problems of a configuration, and notes about settings
	// that are valid but probably a mistake. Each is one line.
	Check func(text []byte) (problems, notes []string)
}

// Ref returns the ConfigMap.
func (o OwnConfiguration) Ref() object.Ref {
	return object.Ref{Kind: object.ConfigMap, Namespace: o.Namespace, Name: o.Name}
}

const (
	// versionLabel is the chart version, which the chart sets on the ConfigMap.
	versionLabel = "app.kubernetes.io/version"
	// maxProblems and maxWarning limit the lines of one response and the length
	// of each in bytes. The API server truncates longer warnings.
	maxProblems = 20
	maxWarning  = 256
)

// Judge returns the verdict on a write to the ConfigMap. Dry runs get the same
// verdict.
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
		problems = []string{fmt.Sprintf("key %s is missing; it must contain Headwater's configuration", o.Key)}
	}
	switch {
	case len(problems) == 0:
		return Verdict{Allowed: true, Reason: ReasonConfigurationValid, Warnings: warnings(notes)}
	case o.upgrades(request):
		problems = append([]string{"not checked with the new version of Headwater; the running version reports:"}, problems...)
		return Verdict{Allowed: true, Reason: ReasonConfigurationUpgrade, Warnings: warnings(append(problems, notes...))}
	default:
		return Verdict{Reason: ReasonConfigurationInvalid, Message: invalidMessage(problems)}
	}
}

// upgrades reports whether the write also changes the chart version. The
// running version does not know which configuration the new version accepts.
func (o OwnConfiguration) upgrades(request Request) bool {
	return request.Old != nil && request.Old.Labels[versionLabel] != request.New.Labels[versionLabel]
}

func invalidMessage(problems []string) string {
	return "the configuration is invalid; Headwater keeps the current one:\n" + strings.Join(truncateLines(maxProblems, problems), "\n")
}

func warnings(lines []string) []string {
	lines = truncateLines(maxProblems, lines)
	for i, line := range lines {
		lines[i] = text.Truncate(line, maxWarning-len(text.Ellipsis))
	}
	return lines
}

// truncateLines returns at most limit lines, plus one that counts the omitted
// ones.
func truncateLines(limit int, lines []string) []string {
	if len(lines) <= limit {
		return lines
	}
	return append(append([]string{}, lines[:limit]...), fmt.Sprintf("and %d more", len(lines)-limit))
}
