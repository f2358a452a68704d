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

// values reads what the fields are to hold, past the caches, which hold none of
// it. problem says what cannot be set, without the value. What was deleted
// meanwhile is a NotFound error.
func (s *Controller) values(ctx context.Context, w request) (values map[string]string, problem string, err error) {
	from, err := s.reader.Get(ctx, w.ref)
	if err != nil {
		return nil, "", err
	}
	if from.Namespace != w.rule.Source.Namespace && !gather.CloneOfRule(from, w.rule) {
		return nil, fmt.Sprintf("%s is no clone of rule %s any more", w.ref, w.rule.Name), nil
	}
	values = map[string]string{}
	for _, field := range w.wanted.Fields {
		value, found := from.Content.Data[field.Key]
		switch {
		case !found:
			return nil, fmt.Sprintf("%s has no text under key %s", w.ref, field.Key), nil
		case !utf8.Valid(value):
			return nil, fmt.Sprintf("key %s of %s is no text, and a field can hold nothing else", field.Key, w.ref), nil
		}
		values[field.Name()] = string(value)
	}
	return values, "", nil
}

// apply makes values all that the rule sets of the target; nil gives everything
// back.
func (s *Controller) apply(ctx context.Context, w request, values map[string]string) error {
	gvr, err := s.targets.Resource(w.kind.GroupKind())
	if err != nil {
		return err
	}
	client := s.client.Resource(gvr).Namespace(w.namespace)
	content := w.content(values)
	options := metav1.ApplyOptions{FieldManager: mark.TargetManager(w.rule.Name), Force: w.wanted.Force}
	if list, err := s.replaced(ctx, client, w, content, options); err != nil || list != "" {
		if list != "" {
			s.complain(w, "Refused", fmt.Sprintf("field %s is in a list that the API server replaces as a whole, with what others have in it: "+
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
			s.complain(w, "Conflict", fmt.Sprintf("field %s is held by %s and left alone; remove it there, or write force: true", strings.Join(paths, ", "), holder))
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
	s.record(w, applied, values, result)
	return nil
}

// failed is what is left to do about an error of the API server.
func (s *Controller) failed(w request, err error) error {
	switch {
	case err == nil, apierrors.IsNotFound(err):
		return nil // deleted meanwhile
	case apierrors.IsConflict(err):
		s.queue.After(w.targetKey, gather.ConflictDelay)
		return nil
	}
	told := withoutValues(w, err)
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) {
		s.complain(w, "Refused", told.Error()) // all else passes
	}
	return told
}

// replaced returns the field in an element of a list for which the API server
// would replace the list as a whole, as a dry run tells; empty: there is none.
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

// conflictRetry is how soon it is tried again to set a field that somebody else
// holds: nothing tells when that ends.
const conflictRetry = 5 * time.Minute

// content is the configuration to apply. The UID is a precondition: without the
// object none is made.
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
		field.Path.Set(content.Object, value) // Validate saw to it that no path ends in another
	}
	if len(paths) > 0 {
		content.SetAnnotations(map[string]string{mark.SetBy(w.rule.Name): mark.FormatFields(paths)})
	}
	return content
}

// disputed returns the fields that somebody else holds, if that is what err
// says.
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

// unquotedKeys writes elements of lists as a FieldPath does, [a=1][b=2], where the
// API server writes [a="1",b="2"].
var unquotedKeys = strings.NewReplacer(`",`, "][", `"`, "")

// drifted reports whether the disputed paths were the rule's, and somebody
// edited them without laying claim to them; else holder says who has them.
func (s *Controller) drifted(ctx context.Context, client dynamic.ResourceInterface, w request, paths []string) (holder string, drift bool, err error) {
	live, err := client.Get(ctx, w.name, metav1.GetOptions{})
	if err != nil {
		return "", false, err
	}
	ours := func(manager string) bool {
		rule, is := mark.RuleOfTargetManager(manager)
		return is && s.inherits(w.rule, rule)
	}
	if others := holders(live.GetManagedFields(), ours, paths); len(others) > 0 {
		return strings.Join(others, ", "), false, nil
	}
	for _, path := range paths {
		if !strings.HasPrefix(path, "metadata.annotations.") && !s.hasSet(w, path) {
			return "what was there before", false, nil
		}
	}
	healing := false
	s.healed.Use(func(h healed) { healing = h.allow(w.targetKey, s.now()) })
	if !healing {
		return "somebody who changes it again and again", false, nil
	}
	return "", true, nil
}

// inherits reports whether rule may take over the fields that another of that
// name has set: itself, or one that the file does not have any more, such as by
// the name it had before.
func (s *Controller) inherits(rule spec.Rule, former string) bool {
	_, known := s.rules.Load().Named(former)
	return former == rule.Name || !known
}

// hasSet reports whether path is one that the rule has set, or inherits.
func (s *Controller) hasSet(w request, path string) bool {
	for rule, paths := range w.target.Set {
		if slices.Contains(paths, path) && s.inherits(w.rule, rule) {
			return true
		}
	}
	return false
}

// record notes what was written, and whether all of it is there.
func (s *Controller) record(w request, applied *unstructured.Unstructured, values map[string]string, result string) {
	s.writes.Expect(w.object(), w.target.UID, applied.GetResourceVersion(), nil)
	for _, field := range w.wanted.Fields {
		value, wanted := values[field.Name()]
		if is, _ := field.Path.Text(applied.Object); wanted && is != value {
			s.complain(w, "Lost", fmt.Sprintf("the API server does not keep field %s; is it in the schema of the kind?", field.Name()))
			return
		}
	}
	s.told.Clear(w.object(), setFields)
	s.outcomes.WithLabelValues(w.rule.Name, result).Inc()
	s.log.Info("target written", zap.Stringer("target", w.targetKey), zap.String("result", result))
	event := w.event()
	event.Reason, event.Action = "Fields"+result, "Apply"
	event.Note = "Fields were set from " + w.ref.String() + " for rule " + w.rule.Name
	if values == nil {
		event.Note = "Fields that rule " + w.rule.Name + " had set were removed: it does not select the object any more"
	}
	s.events.Record(event)
}

// complain tells what cannot be set. problem holds no value.
func (s *Controller) complain(w request, result, problem string) {
	say, news := s.told.ShouldEmit(w.object(), setFields, result+problem)
	if !say {
		return
	}
	if news {
		s.outcomes.WithLabelValues(w.rule.Name, result).Inc()
	}
	s.log.Warn("target not set", zap.Stringer("target", w.targetKey), zap.String("problem", problem))
	event := w.event()
	event.Warning, event.Persisting, event.Reason, event.Action = true, true, "Target"+result, "Apply"
	event.Note = "Rule " + w.rule.Name + " does not set its fields: " + report.SomeName(problem)
	s.events.Record(event)
}

func (w request) event() events.Event {
	form := w.target.Info
	return events.Event{Rule: w.rule.Name, About: events.Reference(form.GroupVersion().String(), form.Kind, w.target)}
}

// withoutValues is err without the text of the API server's answer.
func withoutValues(w request, err error) error {
	answer, code := report.AnswerIn(err)
	if code == 0 {
		return fmt.Errorf("apply %s: %w", w.targetKey, err)
	}
	return fmt.Errorf("apply %s: the API server refuses it: %s", w.targetKey, answer)
}

// healed remembers when drift was healed, so that nobody is fought for long.
type healed map[targetKey][]time.Time

const (
	healWindow = 10 * time.Minute
	healLimit  = 3
)

// allow reports whether k may be healed at now, and counts it if so.
func (h healed) allow(k targetKey, now time.Time) bool {
	late := slices.DeleteFunc(h[k], func(at time.Time) bool { return now.Sub(at) >= healWindow })
	if len(late) >= healLimit {
		h[k] = late
		return false
	}
	h[k] = append(late, now)
	return true
}

func (h healed) forget(k targetKey) { delete(h, k) }
