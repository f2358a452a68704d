package migrate

import (
	"fmt"
	"strings"
)

// Summary says in a few lines what came of it.
func (r Result) Summary() string {
	var out strings.Builder
	var off []migratedRule
	noted := 0
	for _, rule := range r.Rules {
		switch {
		case rule.Off != "":
			off = append(off, rule)
		case len(rule.Notes) > 0:
			noted++
		}
	}
	fmt.Fprintf(&out, "rules in force: %d, %d of them with notes on what is not as it was; as comments: %d; not carried over: %d\n",
		len(r.Rules)-len(off), noted, len(off), len(r.Left))
	r.countSections(&out)
	for _, rule := range r.Rules {
		switch {
		case rule.Off != "":
			fmt.Fprintf(&out, "rule %s is a comment: %s (%s)\n", rule.Name, rule.Off, strings.Join(rule.From, "; "))
		case rule.Reload != nil && rule.Reload.Off != "":
			fmt.Fprintf(&out, "rule %s has its reload section as a comment: %s\n", rule.Name, rule.Reload.Off)
		}
	}
	for _, section := range r.Sections {
		if section.Off != "" {
			fmt.Fprintf(&out, "a section of reload.namespaces is a comment: %s (%s)\n", section.Off, strings.Join(section.From, "; "))
		}
	}
	for _, left := range r.Left {
		fmt.Fprintf(&out, "not carried over: %s: %s\n", left.From, left.Why)
	}
	return out.String() + r.Unreadable()
}

// countSections writes how many sections of reload.namespaces are in force.
func (r Result) countSections(out *strings.Builder) {
	if len(r.Sections) == 0 {
		return
	}
	inForce := 0
	for _, section := range r.Sections {
		if section.Off == "" {
			inForce++
		}
	}
	fmt.Fprintf(out, "sections of reload.namespaces in force: %d; as comments: %d\n", inForce, len(r.Sections)-inForce)
}

// Unreadable tells line by line what could not be read: where, and why.
func (r Result) Unreadable() string {
	var out strings.Builder
	for _, unread := range r.Unread {
		fmt.Fprintf(&out, "%s: %s\n", unread.From, unread.Why)
	}
	return out.String()
}
