// Package rulestatus is the API kind RuleStatus: its Go types, and the pure function
// that derives one from what the leader knows of a rule.
//
// In: Facts, the status as it is stored, and the time. Out: a Status without any value of
// a source. The schema is crd.yaml of the chart. There is one object per rule, and its
// size does not grow with the number of clones.
package rulestatus
