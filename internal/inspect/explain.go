package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/output"
	"github.com/headwater-k8s/headwater/internal/rules"
	reloaddecide "github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/explain"
	"github.com/headwater-k8s/headwater/reload/health"
	"github.com/headwater-k8s/headwater/reload/kinds"
	reloadspec "github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// Explanation is what a workload or pod consumes, and what a change of each object
// would do.
type Explanation struct {
	explain.Explanation

	// Notes say what is not known, and why.
	Notes []string `json:"notes,omitempty"`
}

// target is an object as the user named it.
type target[K any] struct {
	kind            K
	namespace, name string
}

// parseTarget parses KIND/NAME, KIND/NAMESPACE/NAME, or NAMESPACE/KIND/NAME if the first
// part is not a kind. defaults has the namespace of KIND/NAME.
func parseTarget[K any](text, example string, defaults kube.Namespace, parseKind func(string) (K, error)) (of target[K], err error) {
	parts := strings.Split(text, "/")
	if len(parts) == 2 && defaults.Name != "" {
		parts = []string{parts[0], defaults.Name, parts[1]}
	}
	if len(parts) != 3 || slices.Contains(parts, "") {
		return of, fmt.Errorf("%q is not KIND/NAME, such as %s", text, example)
	}
	kind, err := parseKind(parts[0])
	if err != nil {
		if second, secondErr := parseKind(parts[1]); secondErr == nil {
			parts[1], kind, err = parts[0], second, nil
		}
	}
	if err == nil && defaults.Asked && parts[1] != defaults.Name {
		err = fmt.Errorf("%q is in namespace %s, but --namespace is %s", text, parts[1], defaults.Name)
	}
	return target[K]{kind, parts[1], parts[2]}, err
}

func parseObject(text string, defaults kube.Namespace) (object.Ref, error) {
	of, err := parseTarget(text, "secret/blogsecret", defaults, parseObjectKind)
	return object.Ref{Kind: of.kind, Namespace: of.namespace, Name: of.name}, err
}

func parseObjectKind(text string) (object.Kind, error) {
	short := map[object.Kind]string{object.ConfigMap: "cm"}
	for _, kind := range object.Kinds {
		switch strings.ToLower(text) {
		case strings.ToLower(string(kind)), kind.Resource(), short[kind]:
			return kind, nil
		}
	}
	return "", fmt.Errorf("kind %q is neither Secret nor ConfigMap", text)
}

// Explain returns what the workload or pod KIND/NAME consumes, and what a change would do.
func Explain(ctx context.Context, options Options, consumer string) (Explanation, error) {
	c, err := connectLeniently(ctx, options)
	if err != nil {
		return Explanation{}, err
	}
	of, err := parseTarget(consumer, "deployment/web", options.Kubeconfig.Namespace(), func(text string) (kinds.Kind, error) {
		return explain.ParseKind(text, c.config.Reload, c.sets.Reload)
	})
	if err != nil {
		return Explanation{}, err
	}
	resource := strings.ToLower(string(of.kind)) + "s"
	observer, err := c.openReload(ctx, options, of.namespace, resource)
	if err != nil {
		return Explanation{}, err
	}
	explained, found, err := observer.Explain(ctx, of.kind, of.namespace, of.name, time.Now())
	switch {
	case err != nil:
		return Explanation{}, err
	case !found && slices.Contains(observer.Unread(), of.kind):
		return Explanation{}, fmt.Errorf("you may not list and watch %s", of.kind)
	case !found:
		return Explanation{}, fmt.Errorf("%s/%s/%s does not exist", of.kind, of.namespace, of.name)
	}
	return Explanation{explained, c.notes}, nil
}

// openReload reads the consumers in the cluster, or in namespace if the user may not read
// the cluster. It fails if the user may not read pods and resource there. c.notes say what
// else the user may not read.
func (c *connection) openReload(ctx context.Context, options Options, namespace, resource string) (*explain.Explainer, error) {
	needed := append(permissions(), consumerPermissions()...)
	err := c.narrow(ctx, namespace, needed, func(permission kube.Permission) bool {
		return permission.Resource == "pods" || permission.Resource == resource
	})
	if err != nil {
		return nil, err
	}
	key, err := c.digestKey(ctx, options)
	if err != nil {
		return nil, err
	}
	caches, err := informers.NewCaches(c.clients, key, zap.NewNop())
	if err != nil {
		return nil, err
	}
	observer, err := explain.NewExplainer(ctx, rules.NewLive(c.sets.Reload), c.config.Reload, c.clients, caches, key, zap.NewNop())
	if err != nil {
		return nil, err
	}
	observer.WithoutRules, observer.WithoutKey = c.withoutRules, c.withoutKey
	if err := c.fill(ctx, caches); err != nil {
		return nil, err
	}
	if c.withoutRules {
		if err := observer.GoByClones(); err != nil {
			return nil, err
		}
	}
	for _, kind := range observer.Unread() {
		c.notes = append(c.notes, fmt.Sprintf("what %s consume is not shown, because you may not list and watch them", kind))
	}
	return observer, nil
}

func consumerPermissions() []kube.Permission {
	read, purpose := []string{"list", "watch"}, "know who consumes what"
	return []kube.Permission{
		{Group: "apps", Resource: "deployments", Verbs: read, For: purpose},
		{Group: "apps", Resource: "statefulsets", Verbs: read, For: purpose},
		{Group: "apps", Resource: "daemonsets", Verbs: read, For: purpose},
		{Group: "batch", Resource: "cronjobs", Verbs: read, For: purpose},
		{Resource: "pods", Verbs: read, For: purpose},
		{Resource: "serviceaccounts", Verbs: []string{"list"}, For: "know which pull secrets they give to pods"},
	}
}

// digestKey returns the service's key, with which baselines can be compared. If it
// cannot be read, digestKey returns an ephemeral key and adds a note.
func (c *connection) digestKey(ctx context.Context, options Options) (*digestkey.Key, error) {
	key := digestkey.New(c.clients.Typed, options.Own)
	err := key.Read(ctx)
	if err == nil {
		return key, nil
	}
	c.withoutKey = true
	c.notes = append(c.notes, "whether workloads run the current data is not shown: "+err.Error())
	return digestkey.NewEphemeral()
}

// reasonText explains a reason in one phrase.
func reasonText(reason reloadspec.Reason) string {
	known := map[reloadspec.Reason]string{
		reloadspec.ReasonUngoverned:  "no rule reloads it for this, and no annotation asks",
		reloadspec.ReasonOff:         "switched off, by rule or annotation",
		reloadspec.ReasonSuspended:   "the rule is suspended, so nothing happens until that ends",
		reloadspec.ReasonNever:       "the rule says Never, whatever an annotation asks",
		reloadspec.ReasonIgnored:     "the object has the annotation reloader.stakater.com/ignore",
		reloadspec.ReasonExcluded:    "excluded by an annotation of Reloader",
		reloadspec.ReasonKeys:        "the annotation headwater.dev/reload-keys names none of its keys",
		reloadspec.ReasonReadByNode:  "no container reads it; the node reads it again when needed",
		reloadspec.ReasonProvided:    "its CSI driver rewrites the files, but for those of a subPath; nothing is restarted for it",
		reloadspec.ReasonAsked:       "a restart is asked for",
		reloadspec.ReasonReadAtStart: "read when containers start, and never again",
		reloadspec.ReasonReadByInit:  "an init container reads the files, and has ended",
		reloadspec.ReasonListed:      "an annotation lists it, however containers use it",
		reloadspec.ReasonNoTemplate:  "no pod template refers to it, so nothing can be restarted; replace the pod",
		reloadspec.ReasonImmutable:   "it is or was immutable: kubelets serve the old data, even to new pods, until no pod on the node uses it",
		reloadspec.ReasonOnlyRefresh: "only a restart would help, and the action is Refresh",
		reloadspec.ReasonMounted:     "the kubelet rewrites the files",
		reloadspec.ReasonKept:        "the rule keeps its fields at the values",
		explain.ReasonRulesUnread:    "no annotation asks; whether a rule reloads it is not known",
	}
	return cmp.Or(known[reason], string(reason))
}

// Table writes what the service would do now, and a row per consumed object.
func (e Explanation) Table(out *output.Writer) {
	_, _ = fmt.Fprintln(out, e.headline())
	if len(e.Uses) > 0 {
		var rows [][]string
		for _, use := range e.Uses {
			rows = append(rows, append([]string{use.Object}, cells(use)...))
		}
		_, _ = fmt.Fprintln(out)
		out.Rows(rows, append([]string{"OBJECT"}, useColumns...), "CHANGED")
	}
	switch {
	case e.OwnerUnread:
		_, _ = fmt.Fprintln(out, "\ncontrolled by "+e.Owner+", of a kind that you may not list and watch: if an owner above it is declared, and Headwater may read all between, that one is restarted instead")
	case e.Owner != "":
		_, _ = fmt.Fprintln(out, "\ncontrolled by "+e.Owner+", of a kind without a pod template in reload.workloads: if it reverts restarts, declare it")
	}
	for _, ignored := range e.Ignored {
		_, _ = fmt.Fprintln(out, "\nignored:", ignored)
	}
	writeNotes(out, e.Notes)
}

// Names lists the consumed objects, each once.
func (e Explanation) Names() []string {
	var names []string
	for _, use := range e.Uses {
		names = append(names, use.Object)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// headline says what the service would do now.
func (e Explanation) headline() string {
	text := e.Consumer + ": "
	objects := strings.Join(e.Objects, ", ")
	switch {
	case e.Stamped != "":
		return text + "never restarted itself; " + e.Stamped + " is, in its place"
	case len(e.Uses) == 0:
		return text + "consumes no Secret or ConfigMap that could be of interest"
	case e.Step == explain.StepUnknown:
		return text + "whether it is to be restarted is not known"
	case e.Step == reloadspec.StepRestart:
		text += "to be restarted, since this changed: " + objects
	case e.Step == reloadspec.StepHold:
		text += "not restarted, since this is missing: " + objects
	case e.Step == reloadspec.StepRefresh:
		text += "volumes to be refreshed, since this changed: " + objects
	case e.Step == reloadspec.StepAdopt:
		text += "the current data is to be stored as its baseline"
	case e.Rollout != nil && (e.Rollout.PodsBehind > 0 || e.Rollout.Health == health.Stuck):
		text += rollingOut(*e.Rollout)
	default:
		text += "nothing to do now"
	}
	return text + e.restarted() + e.waiting()
}

// restarted says when and why it was last restarted.
func (e Explanation) restarted() string {
	switch {
	case e.RestartedAt == nil:
		return ""
	case e.Because == nil:
		return "; last restarted " + ago(*e.RestartedAt)
	default:
		return "; last restarted " + ago(*e.RestartedAt) + ", because " + e.Because.String()
	}
}

// waiting says why a due restart is postponed.
func (e Explanation) waiting() string {
	switch {
	case e.RevertedBy != nil:
		return "; reverted: " + e.RevertedBy.String()
	case e.WaitsUntil != nil:
		return "; it waits until " + e.WaitsUntil.UTC().Format(time.RFC3339) + ": " + waitText(e.Waits)
	case e.Waits != "":
		return "; it waits: " + waitText(e.Waits)
	default:
		return ""
	}
}

// rollingOut describes the progress of the last restart, and what blocks it.
func rollingOut(is health.RolloutState) string {
	text := fmt.Sprintf("rolling out: %d of %d pods still run older data", is.PodsBehind, is.Pods)
	if is.PodsBehind == 0 {
		text = "rolling out"
	}
	switch {
	case is.Health == health.Stuck:
		text += "; the rollout is stuck: " + string(is.Reason)
	case is.Kept != "":
		text += ": " + keptText(is.Kept)
	}
	switch {
	case is.Pod == "":
	case is.Health == health.Progressing && !is.FailedBefore:
		text += "; it waits until pod " + is.Pod + " is ready"
	case is.Reason == workload.StuckStanding:
		text += ", because of pod " + is.Pod + ": delete it, since the set replaces no pod before it is ready"
	default:
		text += ", as in pod " + is.Pod
	}
	if is.FailedBefore {
		text += "; it was failing before the restart already"
	}
	return text
}

// keptText explains why pods with older data are not replaced.
func keptText(reason health.KeptReason) string {
	known := map[health.KeptReason]string{
		health.KeptPaused:    "its rollout is paused",
		health.KeptOnDelete:  "its update strategy is OnDelete, so delete the pods",
		health.KeptPartition: "the partition of its update strategy keeps them",
		health.KeptRefused:   "new pods are refused, as by a quota; see its condition ReplicaFailure",
		health.KeptJob:       "they belong to jobs that are still running",
	}
	return cmp.Or(known[reason], string(reason))
}

// waitText explains why a restart waits.
func waitText(reason reloaddecide.WaitReason) string {
	known := map[reloaddecide.WaitReason]string{
		reloaddecide.WaitDebounce: "more changes may follow, see debounce",
		reloaddecide.WaitOwner:    "the rollout that is under way may bring it to every pod before",
		reloaddecide.WaitWindow:   "no window is open for it: see reload.windows, those of the rule, and of the annotation headwater.dev/reload-windows",
		reloaddecide.WaitBreaker:  "it was restarted as often within an hour as maxRestartsPerHour says",
		reloaddecide.WaitInterval: "its last restart was too recent, see minInterval",
		reloaddecide.WaitRollouts: "as many rollouts are in progress as maxConcurrentRollouts and maxConcurrentRolloutsPerNamespace allow",
	}
	return cmp.Or(known[reason], string(reason))
}

// useColumns are the columns that the tables of explain and consumers have in common.
// When the data changed is shown only if the user asked for more columns.
var useColumns = []string{"CONSUMED", "IN", "BY", "ON CHANGE", "STANDING", "WHY"}

// cells returns the cells of useColumns, and when the data changed.
func cells(use explain.Use) []string {
	consumed := string(use.Mode)
	if use.Keys != nil {
		consumed += " " + strings.Join(use.Keys, ",")
	}
	by := "-"
	switch {
	case use.Rule != "" && use.ByOwner:
		by = "annotation, over rule " + use.Rule
	case use.Rule != "":
		by = "rule " + use.Rule
	case use.OptIn == reloadspec.Headwater:
		by = "annotation"
	case use.OptIn == reloadspec.Sections:
		by = "reload.namespaces"
	case use.OptIn != "":
		by = "annotation of " + string(use.OptIn)
	}
	status := string(use.Status)
	if use.Pods > 0 {
		status = fmt.Sprintf("%s (%s)", status, strings.TrimSuffix(
			fmt.Sprintf("%d of %d pods, %s", use.Pods-use.PodsBehind, use.Pods, use.Kept), ", "))
	}
	changed := "-"
	if use.ChangedAt != nil {
		changed = ago(*use.ChangedAt)
	}
	in := cmp.Or(strings.Join(use.Containers, ", "), use.Through, "-")
	return []string{consumed, in, by, string(use.OnChange), status, reasonText(use.Reason), changed}
}

// Consumers lists the consumers of an object.
type Consumers struct {
	Object string `json:"object"`
	// Clones is how many clones the object has; Consumers includes theirs.
	Clones    int           `json:"clones,omitempty"`
	Consumers []explain.Use `json:"consumers"`
	// Notes say what is not known, and why.
	Notes []string `json:"notes,omitempty"`
}

// FindConsumers returns the consumers of the object KIND/NAME and of its clones. If the
// user may not read the cluster, it reads only the object's namespace, or fails if
// everywhere is true.
func FindConsumers(ctx context.Context, options Options, object string, everywhere bool) (Consumers, error) {
	ref, err := parseObject(object, options.Kubeconfig.Namespace())
	if err != nil {
		return Consumers{}, err
	}
	c, err := connectLeniently(ctx, options)
	if err != nil {
		return Consumers{}, err
	}
	if everywhere {
		if err := kube.CheckPermissions(ctx, c.clients.Typed, c.user, inspectRole, append(permissions(), consumerPermissions()...)); err != nil {
			return Consumers{}, err
		}
	}
	observer, err := c.openReload(ctx, options, ref.Namespace, "")
	if err != nil {
		return Consumers{}, err
	}
	if c.clients.Scope.Namespace != "" {
		c.notes = append(c.notes, "only namespace "+ref.Namespace+" was searched, because you may not read the others; consumers of clones elsewhere are not shown")
	}
	if err := c.findObject(ctx, ref); err != nil {
		return Consumers{}, err
	}
	uses, clones, err := observer.Consumers(ctx, ref, time.Now())
	return Consumers{Object: ref.String(), Clones: clones, Consumers: uses, Notes: c.notes}, err
}

// findObject adds a note if ref does not exist, or if the user may not know.
func (c *connection) findObject(ctx context.Context, ref object.Ref) error {
	resource := c.clients.Metadata.Resource(corev1.SchemeGroupVersion.WithResource(ref.Kind.Resource()))
	_, err := resource.Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		c.notes = append(c.notes, fmt.Sprintf("there is no such %s; shown is who would consume it", ref.Kind))
	case apierrors.IsForbidden(err):
		c.notes = append(c.notes, fmt.Sprintf("whether this %s exists is not shown, because you may not get it", ref.Kind))
	case err != nil:
		return fmt.Errorf("get %s: %w", ref, err)
	}
	return nil
}

// Table writes a row per consumer.
func (c Consumers) Table(out *output.Writer) {
	if len(c.Consumers) == 0 {
		_, _ = fmt.Fprintln(out, c.Object+": nobody consumes it"+c.norClones())
	} else {
		var rows [][]string
		for _, use := range c.Consumers {
			rows = append(rows, append(c.names(use.Consumer, use.Object), cells(use)...))
		}
		out.Rows(rows, append(c.names("CONSUMER", "OBJECT"), useColumns...), "CHANGED")
	}
	writeNotes(out, c.Notes)
}

// Names lists the consumers, each once.
func (c Consumers) Names() []string {
	var names []string
	for _, use := range c.Consumers {
		names = append(names, use.Consumer)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// names omits the object if it is the same in every row.
func (c Consumers) names(consumer, object string) []string {
	if c.Clones == 0 {
		return []string{consumer}
	}
	return []string{consumer, object}
}

func (c Consumers) norClones() string {
	if c.Clones == 0 {
		return ""
	}
	return fmt.Sprintf(", nor any of its %d clones", c.Clones)
}
