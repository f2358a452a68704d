package ir

import (
	"errors"
	"fmt"
	"strings"

	"github.com/headwater-k8s/headwater/internal/mark"
)

// OtherJob is the cause for what neither clones, nor protects, nor restarts for a
// Secret or ConfigMap: nothing of it is lost.
const OtherJob Cause = "it neither clones Secrets or ConfigMaps, nor denies changes of them, nor restarts or refreshes for them"

// Advice.
const (
	SayWhereTo    Cause = "Say where to under sync.namespaces, and take the comment signs away"
	OwnersAsk     Cause = "Have the owners of workloads ask: annotation " + mark.Reload + ": Restart"
	RefreshAdvice Cause = "To have mounted volumes refreshed, write a section of reload.namespaces with action: Refresh, or have the owners of workloads ask: annotation " + mark.Reload + ": Refresh"
)

// Why it is not known what is cloned, or where to.
const (
	ForEach           Cause = "foreach is not read; write the rule by hand"
	DataInPolicy      Cause = "it makes objects from data in the policy. Headwater clones objects that exist: put the data into a ConfigMap or Secret first. Kyverno deletes what it made when such a policy is deleted, unless orphanDownstreamOnPolicyDelete is true"
	NoSource          Cause = "it names no source to clone"
	NotAName          Cause = "its source or target is named by %s, which is a variable or no name; render the file, or write the rule by hand"
	NoSourceNamespace Cause = "its source has no namespace"
	EveryObjectCloned Cause = "it clones every object of namespace %s; label those that are meant, and select them by source.selector"
	WildcardLabels    Cause = "a wildcard in labels has no counterpart in label selectors"
	NotRecognised     Cause = "its expression is not recognised; what is translated is generator.Apply(object.metadata.name, [resource.Get(\"v1\", \"secrets\", NAMESPACE, NAME)]), of Secrets and ConfigMaps, also by variables, and templates with data: (( variables.SOURCE.data ))"
	OwnNamespaceOnly  Cause = "the policy acts in its own namespace alone, and Headwater makes no clone beside its source"
	TargetByVariable  Cause = "its target namespace is the expression %s; what is translated is a name, or the namespace that triggers it"
	TargetElsewhere   Cause = "it clones into namespace %s once something else is created or changed, and a rule as soon as the source exists; take the comment signs away if that is meant"
	TargetIsSources   Cause = "its target namespace %s is the one of the source, and Headwater makes no clone beside its source"
	SynchronizeOff    Cause = "synchronize is false: Kyverno makes a clone once and then leaves it alone, and Headwater keeps its clones as their source is"
	SystemSource      Cause = "the source is in kube-system; take the comment signs away if it is meant to leave it"
)

// Why it is not known which namespaces trigger.
const (
	TriggerNotNamespace  Cause = "what triggers it is not a Namespace alone"
	NeverTriggered       Cause = "it is triggered by neither the creation nor a change of a namespace"
	WhoMadeNamespace     Cause = "it asks who made the namespace, which no rule here can"
	ByAnnotations        Cause = "it selects by annotations, or objects by labels of their namespace; give what is meant a label, or name it"
	SelectorNeverMatches Cause = "a namespaceSelector matches no Namespace, so that the rule never does anything"
	NamesAndNamespaces   Cause = "it asks for names and namespaces at once, which for a Namespace are the same"
	MatchesNothing       Cause = "its match block says nothing"
	SeveralUnderAll      Cause = "several filters under all ask for people, names, kinds or operations at once"
	ExcludesByMore       Cause = "it excludes by annotations, a namespaceSelector or operations, which no rule here can"
	ExcludesEverything   Cause = "it excludes namespaces without naming them"
	LabelTwice           Cause = "label %s would have to have two values at once"
	LabelsNegated        Cause = "several labels at once cannot be excluded; exclude them one by one"
	ExcludedByName       Cause = "excluded by their names alone, whatever their labels or the operation: %s"
)

// What a policy asks beside.
const (
	Preconditions   Cause = "it holds only under its preconditions, which no rule here can ask for"
	OnlyUnder       Cause = "it holds only under its %s, which no rule here can ask for"
	AdmissionOff    Cause = "the policy has admission: false, so that it does nothing to requests"
	NoOperationLeft Cause = "its preconditions hold for none of its operations"
	Exempted        Cause = "what it exempts from policy %s is not exempt here; name people under protect.allow, and namespaces under sync.namespaces.exclude"
)

// What is different of a clone.
const (
	KindsLeft          Cause = "it clones %s as well, and Headwater clones Secrets and ConfigMaps alone: leave those to a policy of their own"
	AnnotationsToo     Cause = "Kyverno copies the source's annotations, too; list those that are needed under target.copyAnnotations"
	ExistingNamespaces Cause = "Kyverno clones when what triggers it is created or changed (generateExisting is false); Headwater into every namespace that is selected, also those that had no clone. `headwater plan` lists them"
	OrphanFirst        Cause = "set evaluation.orphanDownstreamOnPolicyDelete.enabled to true in the policy before you delete it, so that every version of Kyverno leaves the clones"
	TemplateMetadata   Cause = "the template sets labels or annotations, which are left out; add them under sync.target"
)

// Why a denial is not carried over, or what of it.
const (
	ByWildcard         Cause = "it selects objects by the wildcard %s in their name or namespace; a source is one name, or a label in one namespace"
	ByNameAndLabels    Cause = "it selects objects by name and labels at once"
	EveryNamespace     Cause = "it is about objects of every namespace; a source is in one"
	EveryObject        Cause = "it is about every object of namespace %s; name them, or give them a label"
	ConditionsMore     Cause = "its conditions ask more than which operation it is, or ask it in another form"
	NoGuardedOperation Cause = "it refuses neither creation, nor updates nor deletions; Headwater guards those alone"
	MessageLeft        Cause = "its message holds variables or is an expression, and is left out: the default names the rule, and who may edit"
	Overrides          Cause = "its failureActionOverrides are left out: mode is the same in every namespace"
	CertainUsers       Cause = "it refuses only certain users, and a rule of Headwater refuses all users that it does not allow"
	OverrideMay        Cause = "users with the verb override on protectedobjects.headwater.dev may edit it as well; cluster-admins have it"
	ExcludesObjects    Cause = "it excludes objects, and perhaps this one, by names or labels"
	ExemptsTogether    Cause = "users that it excludes together with other things are not exempt here"
	ClusterRoleCounts  Cause = "a ClusterRole counts if a ClusterRoleBinding grants it. A RoleBinding does not count: an administrator of a namespace could create one there"
	RoleExempts        Cause = "Role %s exempts nobody here: roles of a namespace do not count; name its holders"
	WildcardSubject    Cause = "%s %s is a wildcard and exempts nobody here; name them one by one, or a group"
	GuardsMore         Cause = "it is about more than Secrets and ConfigMaps, or excludes some; write a rule for each object that it guards"
	CELAsksMore        Cause = "it asks more in CEL than who it is; say under protect.allow who may"
	EveryOfThatName    Cause = "the policy is about every %s of that name; this protects the source and its clones"
	ProtectedAlready   Cause = "%s protects %s already, and lets others pass; a source has one protect section: make one of both"
	GuardedNotCloned   Cause = "it is about %s of that name in every namespace, and nothing was found that clones it; name its namespace"
)

// Why a restart is not carried over, or what of it.
const (
	NoStamp           Cause = "it annotates neither pods nor pod templates, which is what refreshes and restarts"
	MutatesInCEL      Cause = "it changes objects when a Secret or ConfigMap changes, by an expression in CEL. If it restarts workloads, give the rule of that object a reload section, or have their owners ask: annotation " + mark.Reload + ": Restart"
	KindNotRestarted  Cause = "its targets of kind %s are left out: see reload.targets for custom resources"
	TargetConditions  Cause = "preconditions and context of a target have no counterpart here"
	TargetNamespace   Cause = "it restarts workloads of namespace %s for an object of another; there they consume a clone, if any: give the rule that makes it a reload section"
	SelectorsDiffer   Cause = "its targets have different selectors; write a rule or section for each"
	RestartsConsumers Cause = "Headwater restarts what reads the object at its start, or mounts it, and nothing else, once its data changes: not for labels, and not for a key that nobody reads. CronJobs and Argo's Rollouts count as well; what the patch changes beside the annotation is left out"
	RestartByName     Cause = "it restarts %s by name, which a rule does not select; annotate that with " + mark.ReloadOn + ": %s, for the object in its own namespace"
	RestartOneByName  Cause = "it restarts %s by name; annotate it with " + mark.Reload + ": Restart"
	WhoChanges        Cause = "it makes a difference who changes the object, or excludes some; a rule here looks at the data alone"
	NotOnUpdate       Cause = "it restarts when the object is made or deleted, and a rule here when it changes"
	KindsNotRestarted Cause = "the policy restarts no %s, and this would, if one consumes the object; to be in force, take the comment signs away, and keep those that must not restart out by reload.workloads.selector or their annotation " + mark.Reload + ": \"Off\""
	PodLabels         Cause = "it selects pods by their labels, and a section of reload.namespaces workloads by theirs"
	ChangesElsewhere  Cause = "it changes what is in another namespace than the object"
	SectionActs       Cause = "Headwater acts once the data changes, for keys that are consumed alone, and not for labels. Where a rule with reload governs an object, the rule counts"
	OtherSelector     Cause = "another policy restarts for the same object, with another selector; write a rule for it"
	RestartsNotCloned Cause = "it restarts for %s of that name in every namespace, and nothing was found that clones it; name its namespace, or have the owners of workloads ask by annotation"
)

// What annotations ask that is not carried over, or is different.
const (
	NotAGlob          Cause = "the regular expression %s is no glob and is left out; add the namespaces that it means to sync.namespaces.include"
	Repeats           Cause = "the regular expression %s repeats without end, these globs up to %s times"
	OuterAlternatives Cause = "the replicator reads %s as ^%s$, where ^ and $ belong to the outermost alternatives alone; here each is a whole name"
	OverlapLeft       Cause = "what %s and %s match together is left out; add the namespaces that are meant to sync.namespaces.include"
	BadSelector       Cause = "the label selector %s cannot be read"
	KubeToo           Cause = "%s copies into kube-* as well; take that from sync.namespaces.exclude if it is meant"
	UnknownAnnotation Cause = "the annotation %s is not known here; what it does is left out"
	TwoWriters        Cause = "take %s out of the chart or repository that deploys it, and keep the object: two that write it undo each other's work"
	NotAllowed        Cause = "%s is true, but %s is not, so that Reflector copies it nowhere"
	NowhereLeft       Cause = "no namespace is left to copy into; name those that are meant under sync.namespaces.include"
	BadReference      Cause = "%s is %s; a clone is in another namespace than its source, NAMESPACE/NAME"
	SourceNotRead     Cause = "the source is not among what was read, so that it is not known whether it allows this; take the comment signs away if it does"
	SourceForbids     Cause = "the source does not allow it: %s is not \"true\""
	SourceForbidsIn   Cause = "the source does not allow it: %s does not name %s"
	AllowAll          Cause = "If the replicator runs with --allow-all, take the comment signs away"
	OwnersLeft        Cause = "owner references are not carried over: an owner in another namespace has the clone deleted by Kubernetes' garbage collector"
	CopiedOnce        Cause = "%s is true: it is copied once and then left alone, and Headwater keeps its clones as their source is"
	NamespaceNotSaid  Cause = "the file does not say in which namespace %s is; fill it in, and take the comment signs away"
	OtherKind         Cause = "it holds annotations of Reflector or kubernetes-replicator. Those of Secrets and ConfigMaps are carried over, and what a Certificate, ExternalSecret or SealedSecret gives its Secret. If this makes a Secret, too, run headwater migrate on the cluster; what is of another kind stays with that tool"
)

// Cause is what makes something differ from what it was, as the sentence that people
// read. Each %s in it stands for a value of the input.
type Cause string

// Reason is a cause with the values of the input that it is about.
type Reason struct { //nolint:errname // it is a reason, and an error only on its way up
	Cause        Cause
	Value, Other string
	// Advice is what to do, if Cause does not say it.
	Advice Cause
	// Loss says that part of what a tool did is left out.
	Loss bool
}

// Because is the reason of this cause, about at most two values.
func Because(cause Cause, values ...string) Reason {
	values = append(values, "", "")
	return Reason{Cause: cause, Value: values[0], Other: values[1]}
}

// ReasonOf returns the Reason that err is; nil gives none.
func ReasonOf(err error) Reason {
	var reason Reason
	errors.As(err, &reason)
	return reason
}

// Advise adds what to do.
func (r Reason) Advise(advice Cause) Reason {
	r.Advice = advice
	return r
}

// Error makes a Reason an error: that something cannot be a rule.
func (r Reason) Error() string { return r.String() }

// String is the sentence that people read.
func (r Reason) String() string {
	values := []any{r.Value, r.Other}[:strings.Count(string(r.Cause), "%s")]
	text := fmt.Sprintf(string(r.Cause), values...)
	if r.Advice != "" {
		text += ". " + string(r.Advice)
	}
	return text
}

// None reports whether there is no reason.
func (r Reason) None() bool { return r.Cause == "" }

// Doubt is a reason that may apply.
type Doubt struct {
	Is  bool
	Why Reason
}

// If is the doubt that cause applies.
func If(is bool, cause Cause, values ...string) Doubt { return Doubt{is, Because(cause, values...)} }

// FirstOf is the first doubt that applies, or nil.
func FirstOf(doubts ...Doubt) error {
	for _, d := range doubts {
		if d.Is {
			return d.Why
		}
	}
	return nil
}
