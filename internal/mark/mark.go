// Package mark owns the labels and annotations by which Headwater recognises
// its own work on objects: it stamps them, reads them, and answers "is this
// ours". It is pure.
package mark

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/headwater-k8s/headwater/internal/object"
)

// Domain prefixes every label and annotation of Headwater.
const Domain = "headwater.dev/"

// Marks on a clone.
const (
	// CloneLabel is "true" on every clone; it is what the clone caches select.
	CloneLabel = Domain + "clone"
	// Rule names the rule the clone belongs to. It is an annotation, which
	// Headwater reads, and a label, by which people select clones: a rule's name
	// is a DNS label, which every label value may be.
	Rule = Domain + "rule"
	// Source is the source's reference, as object.Ref formats it.
	Source = Domain + "source"
	// SourceUID is the UID of the source the clone was last written from.
	SourceUID = Domain + "source-uid"
	// SourceVersion is the resourceVersion of the source that the clone was last
	// written from. Another one is no reason to write. But it changes with every
	// write, which the API server else would not date where only keys go.
	SourceVersion = Domain + "source-version"
	// Target is the namespace and name of the clone, as NAMESPACE/NAME. What names another
	// place is a copy, and not Headwater's; see PlaceOf.
	Target = Domain + "target"
	// OnRuleRemoved is what becomes of the clone when its rule is no longer
	// there to say so; without it the clone stays.
	OnRuleRemoved = Domain + "on-rule-removed"
)

// Marks on workloads and pods.
const (
	// Baseline on a workload is the data it is known to run.
	Baseline = Domain + "baseline"
	// RestartedAt on a workload is when Headwater last restarted it; see
	// FormatTime.
	RestartedAt = Domain + "restarted-at"
	// RestartedBefore beside it says how many seconds earlier that was done
	// before, within an hour, such as 30,90; see Restarts.
	RestartedBefore = Domain + "restarted-before"
	// RestartedFor on a pod template is the baseline it was restarted for.
	RestartedFor = Domain + "restarted-for"
	// RestartedAfter beside it is when it had been restarted before that. It makes
	// the template another one than whenever the baseline was the same before: a
	// controller takes pods of an equal template for new, and they may have started
	// with what came in between.
	RestartedAfter = Domain + "restarted-after"
	// RestartChecked on a workload is the RestartedAt of a restart whose stamp was
	// removed from the pod template. The leader has checked what the pods run, so the
	// next leader does not check again.
	RestartChecked = Domain + "restart-checked"
	// RefreshedFor on a pod is the data its volumes were last refreshed for.
	RefreshedFor = Domain + "refreshed-for"
	// RefreshConfirmed on a pod is the RefreshedFor that its kubelet was asked
	// for a second time.
	RefreshConfirmed = Domain + "refresh-confirmed"
	// Reload on a workload overrides the rule. The owner of the workload sets it.
	Reload = Domain + "reload"
	// ReloadOn is theirs, too: objects that the workload is reloaded for
	// although it does not reference them; see ParseReloadOn.
	ReloadOn = Domain + "reload-on"
	// ReloadKeys is theirs, too: the only keys that count; see
	// ParseReloadKeys.
	ReloadKeys = Domain + "reload-keys"
	// ReloadDebounce is theirs, too: for how long the data must not have changed before a
	// restart.
	ReloadDebounce = Domain + "reload-debounce"
	// ReloadWindows is theirs, too: the only times in which a restart may start; see
	// spec.ParseWindows of reload.
	ReloadWindows = Domain + "reload-windows"
)

// InstalledAt on the Secret of the digest key says when the first Secret of that
// key was created, by the API server's clock, if this one replaces it; see
// FormatTime.
const InstalledAt = Domain + "installed-at"

// FieldManager owns every field that Headwater writes. It must never change:
// clones that lost their label are recognised by it, see MadeByUs.
const FieldManager = "headwater"

// ReportManager owns the annotation Consumers, which earlier versions wrote.
const ReportManager = FieldManager + "-reports"

// Clone is what the marks of a clone say.
type Clone struct {
	Rule      string
	Source    object.Ref
	SourceUID types.UID
	// SourceVersion is empty on a clone that nothing was written to since
	// Headwater knows of it.
	SourceVersion string
	// OnRuleRemoved is empty where the clone is to stay.
	OnRuleRemoved string
	// Place is NoPlace or Here.
	Place object.Place
}

// Stamp puts the marks of c on meta, and its place if it has a name. The maps of meta
// are replaced, never modified, since they may be shared with a cache.
func Stamp(meta *metav1.ObjectMeta, c Clone) {
	meta.Labels, meta.Annotations = copied(meta.Labels), copied(meta.Annotations)
	meta.Labels[CloneLabel], meta.Labels[Rule] = "true", c.Rule
	meta.Annotations[Rule] = c.Rule
	meta.Annotations[Source] = c.Source.String()
	meta.Annotations[SourceUID] = string(c.SourceUID)
	if c.SourceVersion != "" {
		meta.Annotations[SourceVersion] = c.SourceVersion
	}
	if c.OnRuleRemoved != "" {
		meta.Annotations[OnRuleRemoved] = c.OnRuleRemoved
	}
	if meta.Name != "" {
		meta.Annotations[Target] = placeOf(meta)
	}
}

// WithPlace returns annotations with the place of meta added. It does not modify them.
func WithPlace(annotations map[string]string, meta metav1.Object) map[string]string {
	placed := copied(annotations)
	placed[Target] = placeOf(meta)
	return placed
}

func placeOf(meta metav1.Object) string {
	return types.NamespacedName{Namespace: meta.GetNamespace(), Name: meta.GetName()}.String()
}

// PlaceOf returns where the marks of meta say that it is. Field managers have no say in it,
// because a restore from a backup brings them back.
func PlaceOf(meta metav1.Object) object.Place {
	if kept, isKept := meta.(*object.Digested); isKept {
		return kept.Place
	}
	switch target, found := meta.GetAnnotations()[Target]; {
	case !found:
		return object.NoPlace
	case target == placeOf(meta):
		return object.Here
	default:
		return object.Elsewhere
	}
}

// IsMarked reports whether meta carries what admission must let nobody else set: the label
// and annotations without which Of is false, readable or not, for no other place.
func IsMarked(meta metav1.Object) bool {
	annotations := meta.GetAnnotations()
	return meta.GetLabels()[CloneLabel] == "true" && annotations[Rule] != "" && annotations[Source] != "" && PlaceOf(meta) != object.Elsewhere
}

// copied is never nil. maps.Clone would keep the size of all, into which the marks do
// not fit.
func copied(all map[string]string) map[string]string {
	const marks = 7
	some := make(map[string]string, len(all)+marks)
	maps.Copy(some, all)
	return some
}

// Unstamp takes every mark off meta, and what Headwater's field manager owns, so
// that nothing tells any more that Headwater made the object. The maps of meta
// are replaced. The update of an object with this metadata does as it says: an
// entry without content has the API server drop all that are there, see
// https://kubernetes.io/docs/reference/using-api/server-side-apply/#clearing-managedfields.
func Unstamp(meta *metav1.ObjectMeta) {
	meta.Labels, meta.Annotations = unmarked(meta.Labels), unmarked(meta.Annotations)
	ours := func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == FieldManager || entry.Manager == ReportManager
	}
	meta.ManagedFields = slices.DeleteFunc(slices.Clone(meta.ManagedFields), ours)
	if len(meta.ManagedFields) == 0 {
		meta.ManagedFields = []metav1.ManagedFieldsEntry{{}}
	}
}

func unmarked(m map[string]string) map[string]string {
	left := maps.Clone(m)
	maps.DeleteFunc(left, func(key, _ string) bool { return strings.HasPrefix(key, Domain) })
	return left
}

// Of reads the marks of a clone; ok is false when meta does not carry all of
// them in readable form, or when they name another place: a rule's name is a DNS label.
// The rule's label is not read: clones from before it was written lack it.
func Of(meta metav1.Object) (clone Clone, ok bool) {
	if !IsMarked(meta) {
		return Clone{}, false
	}
	annotations := meta.GetAnnotations()
	source, err := object.ParseRef(annotations[Source])
	if err != nil || !isDNSLabel(annotations[Rule]) {
		return Clone{}, false
	}
	return Clone{
		Rule:      annotations[Rule],
		Source:    source,
		SourceUID: types.UID(annotations[SourceUID]),

		SourceVersion: annotations[SourceVersion],
		OnRuleRemoved: annotations[OnRuleRemoved],
		Place:         PlaceOf(meta),
	}, true
}

// isDNSLabel reports what validation.IsDNS1123Label does, without its regular
// expression: Of is called several times for each clone that is written.
func isDNSLabel(s string) bool {
	if s == "" || len(s) > validation.DNS1123LabelMaxLength {
		return false
	}
	for i := range len(s) {
		isAlphanumeric := s[i] >= 'a' && s[i] <= 'z' || s[i] >= '0' && s[i] <= '9'
		if !isAlphanumeric && (s[i] != '-' || i == 0 || i == len(s)-1) {
			return false
		}
	}
	return true
}

// MadeByUs reports whether Headwater's field manager still owns what only who
// made the object owns, or who filled it when it was empty: its type, or its data
// as a whole. It is true for a clone that lost its label. Anybody may call
// themselves by that name, but a change of metadata or of single keys does not
// make them the maker.
func MadeByUs(entries []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(entries, func(entry metav1.ManagedFieldsEntry) bool {
		fields, ours := fieldsOfOurs(entry)
		return ours && entry.Operation == metav1.ManagedFieldsOperationUpdate &&
			(fields.Type != nil || fields.Data["."] != nil || fields.BinaryData["."] != nil)
	})
}

// fields is what field managers own of what Headwater writes; see
// https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management.
type fields struct {
	Type       json.RawMessage            `json:"f:type"`
	Data       map[string]json.RawMessage `json:"f:data"`
	BinaryData map[string]json.RawMessage `json:"f:binaryData"`
	Metadata   struct {
		Labels      map[string]json.RawMessage `json:"f:labels"`
		Annotations map[string]json.RawMessage `json:"f:annotations"`
	} `json:"f:metadata"`
}

// fieldsOfOurs is what entry owns; ours is false for another field manager's,
// and for what cannot be read.
func fieldsOfOurs(entry metav1.ManagedFieldsEntry) (owned fields, ours bool) {
	if entry.Manager != FieldManager || entry.FieldsV1 == nil {
		return fields{}, false
	}
	err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned)
	return owned, err == nil
}

// WrittenAt is when Headwater's field manager last wrote the object, by the API
// server's clock, in whole seconds; zero when the API server does not tell.
func WrittenAt(entries []metav1.ManagedFieldsEntry) (latest time.Time) {
	for _, entry := range entries {
		if entry.Manager == FieldManager && entry.Time != nil && entry.Time.After(latest) {
			latest = entry.Time.Time
		}
	}
	return latest
}

// WrittenKeys returns the keys of meta's labels and annotations, Headwater's
// own marks left out, that Headwater wrote and nobody changed since.
func WrittenKeys(meta metav1.Object) (labels, annotations []string) {
	if !hasOthers(meta.GetLabels()) && !hasOthers(meta.GetAnnotations()) {
		return nil, nil
	}
	for _, entry := range meta.GetManagedFields() {
		owned, ours := fieldsOfOurs(entry)
		if !ours {
			continue // nothing of it is removed
		}
		labels = append(labels, written(owned.Metadata.Labels, meta.GetLabels())...)
		annotations = append(annotations, written(owned.Metadata.Annotations, meta.GetAnnotations())...)
	}
	return labels, annotations
}

func hasOthers(m map[string]string) bool {
	for key := range m {
		if !strings.HasPrefix(key, Domain) {
			return true
		}
	}
	return false
}

func written(fields map[string]json.RawMessage, present map[string]string) []string {
	var keys []string
	for field := range fields {
		key, isField := strings.CutPrefix(field, "f:")
		if _, found := present[key]; isField && found && !strings.HasPrefix(key, Domain) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// Ours returns the entries of a label or annotation map that belong to
// Headwater.
func Ours(m map[string]string) map[string]string {
	ours := map[string]string{}
	for key, value := range m {
		if strings.HasPrefix(key, Domain) {
			ours[key] = value
		}
	}
	return ours
}

// LastOther names the field manager that wrote the object since Headwater did;
// empty when the API server does not tell, as of a write that only removes.
func LastOther(entries []metav1.ManagedFieldsEntry) string {
	var last metav1.ManagedFieldsEntry
	for _, entry := range entries {
		if entry.Time == nil || last.Time != nil && entry.Time.Before(last.Time) || entry.Manager == ReportManager {
			continue
		}
		if entry.Manager != FieldManager || last.Time == nil || last.Time.Before(entry.Time) {
			last = entry // of two in the same second, the other's
		}
	}
	if last.Manager == FieldManager {
		return ""
	}
	return last.Manager
}
