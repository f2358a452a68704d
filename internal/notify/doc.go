// Package notify reports what Events tell to where people read: Slack, Teams, a
// webhook. It hears the Events of all modules, gathers those that say the same
// of many objects into one report, and sends it apart from all other work. A
// report is a courtesy: it is not written down, and is lost with the process.
package notify
