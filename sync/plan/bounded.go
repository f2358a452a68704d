package plan

import (
	"cmp"
	"maps"
	"slices"
)

const (
	// maxRecord bounds the bytes of a record, since a ConfigMap takes at most 1 MiB.
	maxRecord = 900 << 10
	// bytesPerHash and bytesPerTime are what a removal takes in it, in base64, and what those that
	// passed at one time take together.
	bytesPerHash = 11
	bytesPerTime = 120
)

// bounded returns record with its newest removals, as many as a ConfigMap takes. A new leader
// judges the others again. What is held, or replaced, is small, and always stored.
func bounded(record map[string]RemovalLog) map[string]RemovalLog {
	type removal struct {
		rule string
		hash uint64
		Passed
	}
	most := 0
	for _, log := range record {
		most += len(log.removed)
	}
	if most*(bytesPerHash+bytesPerTime) <= maxRecord {
		return record
	}
	all := make([]removal, 0, most)
	for rule, log := range record {
		for hash, passed := range log.removed {
			all = append(all, removal{rule, hash, passed})
		}
	}
	slices.SortFunc(all, func(a, b removal) int {
		return cmp.Or(b.compare(a.Passed), cmp.Compare(a.rule, b.rule), cmp.Compare(a.hash, b.hash))
	})
	kept, size, before := maps.Clone(record), 0, removal{}
	for rule, log := range kept {
		kept[rule] = log.clone()
	}
	for _, one := range all {
		size += bytesPerHash
		if one.rule != before.rule || one.compare(before.Passed) != 0 {
			size += bytesPerTime
		}
		if before = one; size > maxRecord {
			delete(kept[one.rule].removed, one.hash)
		}
	}
	return kept
}
