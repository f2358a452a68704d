package mark

import (
	"slices"
	"strings"
)

// maxUnknown bounds how many unknown annotations of one object are kept.
const maxUnknown = 3

// OwnerAnnotations are those by which the owner of a workload says to Headwater
// what to reload it for.
func OwnerAnnotations() []string { return []string{Reload, ReloadOn, ReloadKeys} }

// known are all of Headwater's labels and annotations.
var known = append(OwnerAnnotations(),
	CloneLabel, Rule, Source, SourceUID, SourceVersion, OnRuleRemoved,
	Baseline, RestartedAt, RestartedBefore, RestartedFor, RestartedAfter, RestartChecked, RefreshedFor, RefreshConfirmed, InstalledAt,
	Revision, Verdict, Reason, Stage, StageSince, HealthySince, Paused, Pinned, PinnedOver, Approved, EditedBy, SourceImmutable, Delivery, Consumers, ConsumersKnown)

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
