package consumerhealth

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/reload/workload"
)

const (
	// readinessReturns is how long a pod may be without its readiness before it fails.
	readinessReturns = 30 * time.Second
	// crashesIgnored is how many crashes do not count: what a pod needs may start a little
	// later.
	crashesIgnored = 1
	// crashRemembered is how long a pod that crashed more often fails while its containers
	// run. It exceeds the longest back-off of a kubelet.
	crashRemembered = 6 * time.Minute
)

// NotReady is the reason of a pod that lost its readiness for too long.
const NotReady = "NotReady"

// Past is what this process observed of one consumer while its clone held the revision.
// Its zero value is a consumer that was not seen before.
type Past struct {
	uid  types.UID
	pods map[types.UID]pastPod
	ran  State
}

// pastPod is what was observed of a pod that holds the revision, by the clock of this
// process alone.
type pastPod struct {
	// wasReady is true once it was ready. lostAt is since when it is not any more.
	wasReady bool
	lostAt   time.Time
	// ignored are crashes from before it held the revision, or that are forgiven. crashes
	// is the last count, and crashedAt when it last grew.
	ignored, crashes uint16
	crashedAt        time.Time
}

// after returns p after a look at pod.
func (p pastPod) after(pod Pod, known bool, now time.Time) pastPod {
	if !known {
		p.ignored = crashesIgnored
		if !pod.Started { // they may be from before
			p.ignored += pod.Crashes
			p.crashes = pod.Crashes
		}
	}
	if pod.Crashes > p.crashes {
		p.crashes, p.crashedAt = pod.Crashes, now
	}
	switch {
	case pod.Readiness != workload.NotReady:
		p.wasReady, p.lostAt = p.wasReady || pod.Readiness == workload.Ready, time.Time{}
	case p.wasReady && p.lostAt.IsZero():
		p.lostAt = now
	}
	return p
}

// failing returns why a pod fails; empty if it does not. again is when passing time changes
// that; zero if it does not.
func (p pastPod) failing(pod Pod, now time.Time) (reason string, again time.Time) {
	lost, recovered := p.lostAt.Add(readinessReturns), p.crashedAt.Add(crashRemembered)
	switch {
	case pod.Trouble != 0:
		return string(pod.Trouble.Reason()), time.Time{}
	case p.crashes > p.ignored && now.Before(recovered):
		return string(workload.StuckCrashing), recovered
	case p.lostAt.IsZero():
		return "", time.Time{}
	case now.Before(lost):
		return "", lost
	default:
		return NotReady, time.Time{}
	}
}

// observed returns p after a look at the pods of c that hold the revision.
func (p Past) observed(c Consumer, now time.Time) Past {
	next := Past{uid: c.UID}
	if p.uid == c.UID {
		next.ran = p.ran
	} else {
		p = Past{}
	}
	for _, pod := range c.Pods {
		if pod.holds() {
			if next.pods == nil {
				next.pods = map[types.UID]pastPod{}
			}
			before, known := p.pods[pod.UID]
			next.pods[pod.UID] = before.after(pod, known, now)
		}
	}
	return next
}

// firstFailing returns the first failing pod of c that holds the revision, by name, and
// why it fails; empty if none does. One that the revision is blamed for comes before others.
func (p Past) firstFailing(c Consumer, now time.Time) (name, reason string, again time.Time) {
	for _, pod := range c.Pods {
		past, holds := p.pods[pod.UID]
		if !holds {
			continue
		}
		why, due := past.failing(pod, now)
		again = sooner(again, due)
		blamed, was := c.isBlamedFor(why), c.isBlamedFor(reason)
		if why != "" && (name == "" || blamed && !was || blamed == was && pod.Name < name) {
			name, reason = pod.Name, why
		}
	}
	return name, reason, again
}

// isRecovering reports whether a pod of c that holds the revision lost its readiness, or
// crashed and is not ready again. It does not fail yet, and shows nothing meanwhile.
func (p Past) isRecovering(c Consumer) bool {
	for _, pod := range c.Pods {
		past, holds := p.pods[pod.UID]
		if holds && (!past.lostAt.IsZero() || !past.crashedAt.IsZero() && pod.Readiness == workload.NotReady) {
			return true
		}
	}
	return false
}

func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
