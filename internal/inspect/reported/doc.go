// Package reported shows the state of rules that the service reports in RuleStatuses.
//
// In: RuleStatuses, and the Lease if the user may read it. Out: a Report for the command
// status. It reads no Secret, and does not check whether a RuleStatus is right.
package reported
