// Package keeper writes RuleStatuses: the leader keeps one for each rule.
//
// In: what the modules know, from memory, through a source. Out: at most one write for
// each rule and Interval, and none if nothing changed: each status is compared with
// the object in the cluster first. Headwater works without the kind; the keeper then
// says so once and looks for it again, every 10 minutes at least.
package keeper
