package facts

import (
	"slices"

	"github.com/headwater-k8s/headwater/internal/rulestatus"
	reloaddecide "github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/track"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// waits groups the restarts that wait for rule by their reason.
func (r Source) waits(rule string) []rulestatus.Wait {
	byReason := map[reloaddecide.WaitReason]*rulestatus.Wait{}
	for _, waiting := range r.Reload.Waiting() {
		if waiting.Rule != rule {
			continue
		}
		wait := byReason[waiting.Reason]
		if wait == nil {
			wait = &rulestatus.Wait{Held: waiting.Reason == reloaddecide.WaitMissing, Why: r.Why(waiting), First: waiting.Consumer}
			byReason[waiting.Reason] = wait
		}
		wait.Consumers++
		if waiting.Consumer < wait.First {
			wait.First, wait.Why = waiting.Consumer, r.Why(waiting)
		}
	}
	var waits []rulestatus.Wait
	for _, reason := range reloaddecide.WaitReasons() {
		if wait := byReason[reason]; wait != nil {
			waits = append(waits, *wait)
		}
	}
	return waits
}

// stuck groups the stuck rollouts of a rule by reason, in the order of the reasons.
func (r Source) stuck(rule string) (all []rulestatus.Stuck) {
	stuck := slices.DeleteFunc(r.Reload.Stuck(), func(one track.StuckRollout) bool { return one.Rule != rule })
	for _, reason := range workload.StuckReasons() {
		group := rulestatus.Stuck{Reason: string(reason)}
		for _, one := range stuck {
			if one.Reason != reason {
				continue
			}
			if group.Consumers++; group.Consumers == 1 {
				group.First, group.Pod = one.Consumer, one.Pod
			}
		}
		if group.Consumers > 0 {
			all = append(all, group)
		}
	}
	return all
}
