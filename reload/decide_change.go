package reload

import "cmp"

// Outcome is what a change of one object means to one consumer, and why.
type Outcome struct {
	Step   Step
	Reason Reason
}

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

// onChange decides by how c is consumed what a change of its data means.
func (c Consumed) onChange() Outcome {
	switch {
	case !c.governed():
		return Outcome{StepNothing, cmp.Or(c.Spared, ReasonUngoverned)}
	case c.Action == None:
		return Outcome{StepNothing, cmp.Or(c.Spared, ReasonOff)}
	case c.Mode.byNode():
		return Outcome{StepNothing, ReasonReadByNode}
	case c.Mode != Listed && (c.Immutable || c.Frozen):
		return c.restartUnlessOnlyRefresh(ReasonImmutable)
	case c.Action == Restart:
		return Outcome{StepRestart, ReasonAsked}
	case c.Mode == Listed:
		return c.restartUnlessOnlyRefresh(ReasonListed)
	case c.Mode == InitVolume:
		return c.restartUnlessOnlyRefresh(ReasonReadByInit)
	case c.Mode.needsRestart():
		return c.restartUnlessOnlyRefresh(ReasonReadAtStart)
	default:
		return Outcome{StepRefresh, ReasonMounted}
	}
}

func (c Consumed) restartUnlessOnlyRefresh(reason Reason) Outcome {
	if c.Action == Refresh {
		return Outcome{StepNothing, ReasonOnlyRefresh}
	}
	return Outcome{StepRestart, reason}
}
