// Package reported implements the commands that go by RuleStatuses, which the running
// service writes: status, history, approve, and those that steer deliveries. They read no
// Secret.
package reported
