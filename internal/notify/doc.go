// Package notify sends reports of Events to Slack, Teams or a webhook. It
// receives the Events of all modules, groups those with the same reason and
// rule into one report, and sends it in the background. Reports are kept in
// memory only: they are lost when the process ends.
package notify
