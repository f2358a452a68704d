package mark

import (
	"slices"
	"strings"
)

// maxUnknown bounds how many unknown annotations of one object are kept.
const maxUnknown = 3

// OwnerAnnotations are those by which the owner of a workload says to Headwater
// what to reload it for.
func OwnerAnnotations() []string {
	return []string{Reload, ReloadOn, ReloadKeys, ReloadDebounce, ReloadWindows}
}

// known are all of Headwater's labels and annotations.
var known = append(OwnerAnnotations(),
	CloneLabel, Rule, Source, SourceUID, SourceVersion, Target, OnRuleRemoved,
	Baseline, RestartedAt, RestartedBefore, RestartedFor, RestartedAfter, RestartChecked, RestartedBecause, ReloadAction, RefreshedFor, RefreshConfirmed, InstalledAt,
	Revision, DigestKey, Verdict, Reason, Stage, StageSince, Passed, Paused, Pinned, PinnedOver, Approved, EditedBy, SourceImmutable, ChangedKeys, Evidence, Soaked, Waited, Lacked, Emptied, HeldUntil, AllAtOnceValue, SkipsStages, Protocol, Unproven, Delivery, Consumers)

// Unknown returns the first of the annotations that have Headwater's prefix and
// that no Headwater of this version reads or writes, in order; mostly none.
func Unknown(annotations map[string]string) []string {
	var unknown []string
	for key := range annotations {
		if strings.HasPrefix(key, Domain) && !slices.Contains(known, key) {
			unknown = append(unknown, key)
		}
	}
	slices.Sort(unknown)
	return unknown[:min(len(unknown), maxUnknown)]
}
