package fields

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/gather"
	"github.com/headwater-k8s/headwater/reload/report"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// values reads the values of the fields from the API server; the caches hold only
// digests. problem says why a field cannot be set, without its value. If the object was
// deleted, err is a NotFound error.
func (s *Controller) values(ctx context.Context, w request) (values map[string]string, problem string, err error) {
	from, err := s.reader.Get(ctx, w.ref)
	if err != nil {
		return nil, "", err
	}
	if from.Namespace != w.rule.Source.Namespace && !gather.CloneOfRule(from, w.rule) {
		return nil, fmt.Sprintf("%s is no longer a clone of rule %s", w.ref, w.rule.Name), nil
	}
	values = map[string]string{}
	for _, field := range w.wanted.Fields {
		value, found := from.Content.Data[field.Key]
		switch {
		case !found:
			return nil, fmt.Sprintf("%s has no key %s with text", w.ref, field.Key), nil
		case !utf8.Valid(value):
			return nil, fmt.Sprintf("key %s of %s is not valid UTF-8, which a field requires", field.Key, w.ref), nil
		}
		values[field.Name()] = string(value)
	}
	return values, "", nil
}

// apply sets values as all that the rule owns of the target; nil releases every field.
func (s *Controller) apply(ctx context.Context, w request, values map[string]string) error {
	gvr, err := s.targets.Resource(w.kind.GroupKind())
	if err != nil {
		return err
	}
	client := s.Clients.Dynamic.Resource(gvr).Namespace(w.namespace)
	content := w.content(values)
	options := metav1.ApplyOptions{FieldManager: mark.TargetManager(w.rule.Name), Force: w.wanted.Force}
	if list, err := s.replaced(ctx, client, w, content, options); err != nil || list != "" {
		if list != "" {
			s.reportProblem(w, "Refused", fmt.Sprintf("field %s is in a list that the API server replaces as a whole, with what others have in it: "+
				"the schema of the kind needs x-kubernetes-list-type: map with these keys. Use annotate: true", list))
		}
		return s.failed(w, err)
	}
	applied, err := client.Apply(ctx, w.name, content, options)
	result := "Set"
	if paths := disputed(err); len(paths) > 0 {
		holder, drift, lookErr := s.drifted(ctx, client, w, paths)
		if lookErr != nil {
			return lookErr
		}
		if !drift {
			s.reportProblem(w, "Conflict", fmt.Sprintf("field %s is owned by %s and was not changed; remove it there, or set force: true", strings.Join(paths, ", "), holder))
			s.queue.After(w.targetKey, conflictRetry)
			return nil
		}
		options.Force, result = true, "Healed"
		applied, err = client.Apply(ctx, w.name, content, options)
	}
	if err != nil {
		return s.failed(w, err)
	}
	if values == nil {
		result = "GivenBack"
	}
	return s.record(w, applied, values, result)
}

// failed handles an error of the API server.
func (s *Controller) failed(w request, err error) error {
	switch {
	case err == nil, apierrors.IsNotFound(err):
		return nil // deleted meanwhile
	case apierrors.IsConflict(err):
		s.queue.After(w.targetKey, gather.ConflictDelay)
		return nil
	}
	redacted := withoutValues(w, err)
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) {
		s.reportProblem(w, "Refused", redacted.Error()) // other errors are temporary
	}
	return redacted
}

// replaced returns the field inside a list that the API server would replace as a
// whole, determined by a dry run; empty if there is none.
func (s *Controller) replaced(ctx context.Context, client dynamic.ResourceInterface, w request, content *unstructured.Unstructured, options metav1.ApplyOptions) (string, error) {
	if !slices.ContainsFunc(w.wanted.Fields, func(field spec.FieldFrom) bool { return field.Path.InList() }) {
		return "", nil
	}
	options.DryRun, options.Force = []string{metav1.DryRunAll}, true
	tried, err := client.Apply(ctx, w.name, content, options)
	if err != nil {
		return "", err
	}
	for _, field := range w.wanted.Fields {
		_, applied := field.Path.Text(content.Object)
		_, kept := field.Path.Text(tried.Object)
		if applied && kept && replacesList(tried.GetManagedFields(), options.FieldManager, field.Path) {
			return field.Name(), nil
		}
	}
	return "", nil
}

// conflictRetry is when to retry a field that another manager owns. No event reports
// the end of that.
const conflictRetry = 5 * time.Minute

// content is the configuration to apply. The UID is a precondition, so that a deleted
// object is not recreated.
func (w request) content(values map[string]string) *unstructured.Unstructured {
	content := &unstructured.Unstructured{}
	content.SetGroupVersionKind(w.target.Info.GroupVersionKind)
	content.SetNamespace(w.namespace)
	content.SetName(w.name)
	content.SetUID(w.target.UID)
	var paths []string
	for _, field := range w.wanted.Fields {
		value, wanted := values[field.Name()]
		if !wanted {
			continue
		}
		paths = append(paths, field.Name())
		field.Path.Set(content.Object, value) // Validate checked that no path ends in another
	}
	if len(paths) > 0 {
		content.SetAnnotations(map[string]string{mark.SetBy(w.rule.Name): mark.FormatFields(paths)})
	}
	return content
}

// disputed returns the fields that another manager owns, if err is such a conflict.
func disputed(err error) []string {
	var refusal apierrors.APIStatus
	if !errors.As(err, &refusal) || refusal.Status().Details == nil {
		return nil
	}
	var paths []string
	for _, cause := range refusal.Status().Details.Causes {
		if cause.Type == metav1.CauseTypeFieldManagerConflict {
			paths = append(paths, unquotedKeys.Replace(strings.TrimPrefix(cause.Field, ".")))
		}
	}
	return paths
}

// unquotedKeys converts list elements from the API server's form, [a="1",b="2"], to
// that of a FieldPath, [a=1][b=2].
var unquotedKeys = strings.NewReplacer(`",`, "][", `"`, "")

// drifted reports whether the rule had set the disputed paths, and somebody edited them
// without applying them. Otherwise holder says who owns them.
func (s *Controller) drifted(ctx context.Context, client dynamic.ResourceInterface, w request, paths []string) (holder string, drift bool, err error) {
	live, err := client.Get(ctx, w.name, metav1.GetOptions{})
	if err != nil {
		return "", false, err
	}
	ours := func(manager string) bool {
		rule, is := mark.RuleOfTargetManager(manager)
		return is && s.inherits(w.rule, rule)
	}
	if others := otherAppliers(live.GetManagedFields(), ours, paths); len(others) > 0 {
		return strings.Join(others, ", "), false, nil
	}
	for _, path := range paths {
		if !strings.HasPrefix(path, "metadata.annotations.") && !s.hasSet(w, path) {
			return "an earlier value", false, nil
		}
	}
	if !s.Memory.AllowRepair(w.object(), s.Now()) {
		return "another writer that changes it repeatedly", false, nil
	}
	return "", true, nil
}

// inherits reports whether rule may take over fields of the rule named former: itself,
// or one that no longer exists, such as under a previous name.
func (s *Controller) inherits(rule spec.Rule, former string) bool {
	_, known := s.Rules.Load().Named(former)
	return former == rule.Name || !known
}

// hasSet reports whether the rule, or one that it inherits from, has set path.
func (s *Controller) hasSet(w request, path string) bool {
	for rule, paths := range w.target.Set {
		if slices.Contains(paths, path) && s.inherits(w.rule, rule) {
			return true
		}
	}
	return false
}

// record reports what was written. It fails if the API server stored something else.
func (s *Controller) record(w request, applied *unstructured.Unstructured, values map[string]string, result string) error {
	s.Memory.Expect(w.object(), w.target.UID, applied.GetResourceVersion(), nil)
	for _, field := range w.wanted.Fields {
		value, wanted := values[field.Name()]
		if is, _ := field.Path.Text(applied.Object); wanted && is != value {
			lost := "the API server stores field " + field.Name() + " otherwise than Headwater writes it: " +
				"the schema of the kind does not have it, or a mutating policy or webhook changes it"
			s.reportProblem(w, "Lost", lost+"; retrying with backoff")
			return fmt.Errorf("apply %s: %s", w.targetKey, lost)
		}
	}
	s.Repeats.Clear(w.object(), topicFields)
	s.outcomes.WithLabelValues(w.rule.Name, result).Inc()
	s.Log.Named("targets").Info("target written", zap.Stringer("target", w.targetKey), zap.String("result", result))
	event := w.event()
	event.Reason, event.Action = "Fields"+result, "Apply"
	event.Note = "Fields were set from " + w.ref.String() + " for rule " + w.rule.Name
	if values == nil {
		event.Note = "Fields that rule " + w.rule.Name + " had set were removed: it no longer selects the object"
	}
	s.Events.Record(event)
	return nil
}

// reportProblem reports why the fields cannot be set. problem contains no value.
func (s *Controller) reportProblem(w request, result, problem string) {
	event := w.event()
	event.Warning, event.Persisting, event.Reason, event.Action = true, true, "Target"+result, "Apply"
	event.Note = "Rule " + w.rule.Name + " could not set its fields: " + report.SomeName(problem)
	said, news := s.EmitOnce(w.object(), topicFields, result+problem, event)
	if news {
		s.outcomes.WithLabelValues(w.rule.Name, result).Inc()
	}
	if said {
		s.Log.Named("targets").Warn("target not set", zap.Stringer("target", w.targetKey), zap.String("problem", problem))
	}
}

func (w request) event() events.Event {
	info := w.target.Info
	return events.Event{Rule: w.rule.Name, About: events.Reference(info.GroupVersion().String(), info.Kind, w.target)}
}

// withoutValues returns err without the API server's message, which may quote values.
func withoutValues(w request, err error) error {
	answer, code := report.AnswerIn(err)
	if code == 0 {
		return fmt.Errorf("apply %s: %w", w.targetKey, err)
	}
	return fmt.Errorf("apply %s: the API server refused it: %s", w.targetKey, answer)
}
