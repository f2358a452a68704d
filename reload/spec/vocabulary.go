package spec

// Step is what to do about one workload, pod or target.
type Step string

// The steps. StepAdopt records a baseline and restarts nothing.
const (
	StepNothing Step = "Nothing"
	StepAdopt   Step = "Adopt"
	StepRestart Step = "Restart"
	StepRefresh Step = "Refresh"
	// StepConfirm makes the kubelet refresh the pod once more.
	StepConfirm Step = "Confirm"
	// StepHold postpones a restart whose new pods could not start, or would read no value.
	StepHold Step = "Hold"
)

// Reason says why a Step was chosen.
type Reason string

// The reasons.
const (
	// ReasonChanged: the data differs from what the consumer is known to have.
	ReasonChanged Reason = "Changed"
	// ReasonUnchanged: the data does not differ.
	ReasonUnchanged Reason = "Unchanged"
	// ReasonFirstSight: nothing is recorded about the workload yet.
	ReasonFirstSight Reason = "FirstSight"
	// ReasonReferences: the workload started or stopped consuming an object.
	ReasonReferences Reason = "ReferencesChanged"
	// ReasonUnreadable: the stored baseline is damaged or of another version.
	ReasonUnreadable Reason = "BaselineUnreadable"
	// ReasonOtherKey: the stored baseline was made with a key that is lost.
	ReasonOtherKey Reason = "BaselineOfOtherKey"
	// ReasonStripped: somebody removed the baseline, which is written again, or the
	// stamp of a restart that every pod had.
	ReasonStripped Reason = "BaselineStripped"
	// ReasonMissing: an object or key that the pods need does not exist.
	ReasonMissing Reason = "Missing"
	// ReasonEmptied: every value that the pods would read of a changed object is gone or empty.
	ReasonEmptied Reason = "Emptied"
	// ReasonReplaced: a restart replaces the pod.
	ReasonReplaced Reason = "Replaced"
	// ReasonDelivered: a rollout has delivered the change already.
	ReasonDelivered Reason = "Delivered"
	// ReasonOwned: an owner of the workload is restarted in its place.
	ReasonOwned Reason = "Owned"
	// ReasonUnread: the cache of the owner's kind is not synced yet.
	ReasonUnread Reason = "OwnersUnread"
	// ReasonDataUnread: an object that the owner asked for has not been read yet.
	ReasonDataUnread Reason = "DataUnread"
	// ReasonNotRunning: the pod has no volumes on a node.
	ReasonNotRunning Reason = "NotRunning"
)

// The reasons of an Outcome.
const (
	// ReasonUngoverned: no rule and no opt-in applies to this consumer and object.
	ReasonUngoverned Reason = "Ungoverned"
	// ReasonIgnored: an annotation of the object makes Reloader ignore it, and the
	// workload opted in to Reloader.
	ReasonIgnored Reason = "Ignored"
	// ReasonExcluded: the owner excludes the object by a Reloader annotation.
	ReasonExcluded Reason = "Excluded"
	// ReasonKeys: the owner lists the relevant keys, and the workload reads none of
	// them.
	ReasonKeys Reason = "KeysDoNotCount"
	// ReasonOff: the rule or the workload's owner disabled reloads.
	ReasonOff Reason = "Off"
	// ReasonSuspended: the rule is suspended, and owners cannot override that.
	ReasonSuspended Reason = "Suspended"
	// ReasonNever: the rule says so, and owners cannot override it.
	ReasonNever Reason = "Never"
	// ReasonReadByNode: only the kubelet or a CSI driver reads it, when it needs it. No
	// container sees it.
	ReasonReadByNode Reason = "ReadByNode"
	// ReasonProvided: a CSI driver mounts it and updates the files, except for subPath
	// mounts. Headwater does not see the mounted data.
	ReasonProvided Reason = "Provided"
	// ReasonAsked: the rule or the workload's owner asks for a restart.
	ReasonAsked Reason = "RestartAsked"
	// ReasonReadAtStart: containers read it only when they start.
	ReasonReadAtStart Reason = "ReadAtStart"
	// ReasonReadByInit: an init container reads the files, and has ended.
	ReasonReadByInit Reason = "ReadByInitContainer"
	// ReasonListed: the owner lists it, however containers use it.
	ReasonListed Reason = "Listed"
	// ReasonImmutable: kubelets do not read an immutable object again, nor another
	// object of its name while a pod on their node uses it.
	ReasonImmutable Reason = "Immutable"
	// ReasonOnlyRefresh: only a refresh is allowed, and it would not help.
	ReasonOnlyRefresh Reason = "OnlyRefresh"
	// ReasonMounted: the kubelet updates the files.
	ReasonMounted Reason = "Mounted"
	// ReasonNoTemplate: a pod consumes it, but no pod template that could be stamped.
	ReasonNoTemplate Reason = "NoTemplate"
	// ReasonKept: the rule keeps fields at the values of keys.
	ReasonKept Reason = "Kept"
)

// Tool is the origin of an opt-in: the tool whose annotations the owner uses, or the
// configuration.
type Tool string

// The tools. Headwater's own annotations need no Settings.Compatibility.
const (
	Headwater Tool = "Headwater"
	Reloader  Tool = "Reloader"
	Wave      Tool = "Wave"
	// Sections is the opt-in by reload.namespaces of the configuration.
	Sections Tool = "Namespaces"
)
