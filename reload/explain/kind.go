package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/reload/gather"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// shortKinds are the short names that kubectl accepts.
var shortKinds = map[string]kinds.Kind{
	"deploy": kinds.KindDeployment, "sts": kinds.KindStatefulSet, "ds": kinds.KindDaemonSet, "cj": kinds.KindCronJob, "po": kinds.KindPod,
	"ro": kinds.KindRollout, "dc": kinds.KindDeploymentConfig,
}

// ParseKind parses the kind of a consumer: its singular or plural name, in any case,
// with or without its API group. It accepts built-in and declared kinds, and kinds that
// the rules annotate.
func ParseKind(text string, settings spec.Settings, set *rules.Set[spec.Rule]) (kinds.Kind, error) {
	asked := strings.ToLower(text)
	if kind, known := shortKinds[asked]; known {
		return kind, nil
	}
	var found []kinds.Kind
	var builtIn []*kinds.Info
	for _, kind := range append(kinds.WorkloadKinds(), kinds.KindPod) {
		builtIn = append(builtIn, kinds.Typed[kind])
	}
	for _, form := range slices.Concat(builtIn, kinds.Optional(settings.Workloads), gather.AnnotatedKinds(set)) {
		if slices.Contains(form.Names(), asked) {
			return form.ConsumerKind(), nil
		}
		found = append(found, form.ConsumerKind())
	}
	return "", fmt.Errorf("kind %q is none of %v", text, found)
}
