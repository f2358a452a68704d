package workload

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/optin"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// Consumer is a workload or a pod.
type Consumer interface {
	metav1.Object
	Key() kinds.Key
	Info() *kinds.Info
}

// Key names the workload as a consumer.
func (w *Workload) Key() kinds.Key {
	return kinds.Key{Kind: w.Kind, Namespace: w.Namespace, Name: w.Name}
}

// Relevant reports whether w, or a workload that it owns, may need action.
func (w *Workload) Relevant() bool {
	return len(w.References) > 0 || len(w.Annotations) > 0 || w.ThirdParty != nil || w.custom != nil || w.Misspelt != nil
}

// IsFollowed reports whether Headwater has followed w for its whole life: it was
// installed before w was created, or w has annotations of it. Data that pods of w
// missed is then a change, and not a first sight. Both times are by the API server's
// clock. In the same second w counts as older, because an installation must not restart
// anything.
func (w *Workload) IsFollowed(installed time.Time) bool {
	traced := w.Annotations[mark.Baseline] != "" || w.Annotations[mark.RestartedAt] != "" || w.Stamp != 0
	return traced || !installed.IsZero() && w.CreationTimestamp.After(installed)
}

// LostStamp reports whether w was restarted at that time, a value of mark.RestartedAt,
// but has no stamp, and no leader has checked what its pods run. They may not run the
// data that the baseline records.
func (w *Workload) LostStamp(restartedAt string) bool {
	lost := w.IsOwnStamp() && restartedAt != "" && w.Stamp == 0 && w.Rollout != nil
	return lost && w.Annotations[mark.RestartChecked] != restartedAt
}

// Reads reports whether the containers of p read the object of r at their start.
func (p *Pod) Reads(r refs.Reference) bool {
	return slices.ContainsFunc(p.References, func(own refs.Reference) bool {
		return own.Kind == r.Kind && own.Name == r.Name && own.Mode.NeedsRestart()
	})
}

// Failing returns why p fails now; empty if it does not. A pod that crashes after
// running for long does not count.
func (p *Pod) Failing(now time.Time) StuckReason {
	crashed := time.Unix(int64(p.CrashedAt), 0)
	switch {
	case p.Crashes > 0 && crashed.Sub(p.BoundAt) > time.Duration(p.Crashes)*RolloutTimeout:
		return ""
	case p.Trouble != 0:
		return p.Trouble.Reason()
	case p.Crashes > crashesIgnored && now.Sub(crashed) < crashRemembered:
		return StuckCrashing
	default:
		return ""
	}
}

// Recovers returns when p, which fails now, stops counting as failing if nothing else
// happens; zero if it does not.
func (p *Pod) Recovers() time.Time {
	if p.Trouble != 0 {
		return time.Time{}
	}
	return time.Unix(int64(p.CrashedAt), 0).UTC().Add(crashRemembered)
}

// Unseen returns the annotations of w that ask for more than Headwater supports, for
// what its pods mount.
func (w *Workload) Unseen(of optin.Preferences) []optin.Fault {
	for _, asked := range of.Asks {
		reloader, is := asked.(*optin.ReloaderOptIn)
		if !is || !reloader.Classes {
			continue
		}
		for _, r := range w.References {
			if r.Mode == refs.Provided {
				return []optin.Fault{{Annotation: mark.ReloaderAuto, InPart: true, Problem: optin.UnseenClasses + ": " + string(r.Kind) + " " + r.Name}}
			}
		}
	}
	return nil
}

// StampReverted reports whether the stamp of the last restart, at restartedAt, was removed
// from w: by its owner, or by a schema that drops unknown fields. It is false once a leader
// has recorded that every pod was replaced nevertheless.
func (w *Workload) StampReverted(restartedAt string) bool {
	return !w.IsOwnStamp() && !w.IsTarget() && restartedAt != "" && w.Stamp == 0 && w.Annotations[mark.RestartChecked] != restartedAt
}

// IsOwnStamp reports whether a stamp on w stays until a person or a tool removes it: w
// has no controller, and its kind keeps annotations.
func (w *Workload) IsOwnStamp() bool {
	declared := w.custom != nil && !kinds.IsKnown(w.Kind)
	return w.Owner == nil && !declared
}

// StartedAfter reports whether pod was bound in a later second than written; false if
// written is unknown.
func (p *Pod) StartedAfter(written time.Time) bool {
	return !written.IsZero() && p.BoundAt.Truncate(time.Second).After(written)
}

// Preferences reads the owner's preferences from the annotations of w.
func (w *Workload) Preferences(settings spec.Settings) optin.Preferences {
	of, _ := optin.ReadPreferences(&w.ObjectMeta, w.ThirdParty, settings)
	return of
}

// IsTarget reports whether w is of a kind without a pod template, and annotated by a
// rule. Its baseline and stamp are annotations of the object itself.
func (w *Workload) IsTarget() bool { return w.custom != nil && w.custom.StampAt() == nil }

// Templated reports whether w holds a pod template.
func (w *Workload) Templated() bool { return !w.NoTemplate && !w.IsTarget() }
