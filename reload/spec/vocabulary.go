package spec

// Step is what is to be done about one workload or pod.
type Step string

// The steps. Adopt writes a baseline and restarts nothing.
const (
	StepNothing Step = "Nothing"
	StepAdopt   Step = "Adopt"
	StepRestart Step = "Restart"
	StepRefresh Step = "Refresh"
	// StepConfirm asks the kubelet for the same refresh once more.
	StepConfirm Step = "Confirm"
	// StepHold leaves a restart undone whose pods could not start.
	StepHold Step = "Hold"
)

// Reason says why a Step was chosen.
type Reason string

// The reasons.
const (
	// ReasonChanged: the data differs from what the consumer is known to have.
	ReasonChanged Reason = "Changed"
	// ReasonUnchanged: it does not.
	ReasonUnchanged Reason = "Unchanged"
	// ReasonFirstSight: nothing is known about the workload yet.
	ReasonFirstSight Reason = "FirstSight"
	// ReasonReferences: the workload began or ceased to consume something.
	ReasonReferences Reason = "ReferencesChanged"
	// ReasonUnreadable: the stored baseline was damaged or of another version.
	ReasonUnreadable Reason = "BaselineUnreadable"
	// ReasonOtherKey: the stored baseline was made with a key that is lost.
	ReasonOtherKey Reason = "BaselineOfOtherKey"
	// ReasonStripped: somebody took the baseline off; it is put back.
	ReasonStripped Reason = "BaselineStripped"
	// ReasonMissing: an object or key that the pods need is not there.
	ReasonMissing Reason = "Missing"
	// ReasonReplaced: a restart replaces the pod.
	ReasonReplaced Reason = "Replaced"
	// ReasonDelivered: the workload was rolled out with the change already.
	ReasonDelivered Reason = "Delivered"
	// ReasonOwned: an owner above the workload is stamped for it.
	ReasonOwned Reason = "Owned"
	// ReasonUnread: what may own the workload is still being read.
	ReasonUnread Reason = "OwnersUnread"
	// ReasonNotRunning: the pod has no volumes on a node now.
	ReasonNotRunning Reason = "NotRunning"
)

// The reasons of an Outcome.
const (
	// ReasonUngoverned: no rule reloads this consumer for the object, and its
	// owner does not ask for it.
	ReasonUngoverned Reason = "Ungoverned"
	// ReasonIgnored: the object tells Reloader, whom the owner asks, to ignore it.
	ReasonIgnored Reason = "Ignored"
	// ReasonExcluded: the owner excludes the object from what Reloader is asked.
	ReasonExcluded Reason = "Excluded"
	// ReasonKeys: the owner lists the keys that count, and it reads none of them.
	ReasonKeys Reason = "KeysDoNotCount"
	// ReasonOff: the rule or the workload's owner wants nothing done.
	ReasonOff Reason = "Off"
	// ReasonReadByNode: the kubelet or a CSI driver reads it, and reads it
	// anew when it next needs it; no container ever sees it.
	ReasonReadByNode Reason = "ReadByNode"
	// ReasonProvided: a CSI driver mounts it and rewrites the files itself, those
	// of a subPath excepted. What it mounted last is not looked at.
	ReasonProvided Reason = "Provided"
	// ReasonAsked: the rule or the workload's owner wants a restart.
	ReasonAsked Reason = "RestartAsked"
	// ReasonReadAtStart: containers read it when they start, and never again.
	ReasonReadAtStart Reason = "ReadAtStart"
	// ReasonReadByInit: an init container reads the files, and has ended.
	ReasonReadByInit Reason = "ReadByInitContainer"
	// ReasonListed: the owner lists it, whatever containers do with it.
	ReasonListed Reason = "Listed"
	// ReasonImmutable: kubelets do not look at an immutable object again, nor at
	// another of its name while a pod of their node reads it.
	ReasonImmutable Reason = "Immutable"
	// ReasonOnlyRefresh: a refresh would not help, and nothing else is wanted.
	ReasonOnlyRefresh Reason = "OnlyRefresh"
	// ReasonMounted: the kubelet rewrites the files.
	ReasonMounted Reason = "Mounted"
	// ReasonNoTemplate: only a pod consumes it, and no pod template that could be
	// stamped.
	ReasonNoTemplate Reason = "NoTemplate"
	// ReasonKept: the rule keeps the fields at the values of the keys.
	ReasonKept Reason = "Kept"
)

// Tool is who asks for a workload to be reloaded: its owner, by the annotations
// of a tool, or the configuration.
type Tool string

// The tools. The annotations of Headwater itself need no Settings.Compatibility.
const (
	Headwater Tool = "Headwater"
	Reloader  Tool = "Reloader"
	Wave      Tool = "Wave"
	// Sections are those of the configuration's reload.namespaces.
	Sections Tool = "Namespaces"
)
