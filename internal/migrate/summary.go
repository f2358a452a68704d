package migrate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headwater-k8s/headwater/internal/migrate/ir"
)

// origin is what a rule, or part of it, comes from: a rule of a policy, or an object
// with annotations.
type origin struct {
	From string
	// InForce reports whether some of it is; Why says what is not, or is left out.
	InForce bool
	Why     []ir.Reason
}

// account adds what became of f.
func (b *builder) account(f ir.Finding, off ir.Reason) {
	at := slices.IndexFunc(b.result.Origins, func(o origin) bool { return o.From == f.From })
	if at < 0 {
		at = len(b.result.Origins)
		b.result.Origins = append(b.result.Origins, origin{From: f.From})
	}
	o := &b.result.Origins[at]
	for _, note := range f.Notes {
		if note.Loss && off.None() {
			o.Why = ir.Distinct(o.Why, []ir.Reason{note})
		}
	}
	if off.None() {
		o.InForce = true
	} else {
		o.Why = ir.Distinct(o.Why, []ir.Reason{off})
	}
}

// counts says how much is carried over. It counts what a tool was told: rules of
// policies, and objects with annotations.
func (r Result) counts() string {
	var carried, partly, not int
	for _, o := range r.Origins {
		switch {
		case !o.InForce:
			not++
		case len(o.Why) > 0:
			partly++
		default:
			carried++
		}
	}
	return fmt.Sprintf("carried over: %d, partly: %d, not: %d", carried, partly, not)
}

// Summary says what came of it: how much is carried over, then why the rest is not.
func (r Result) Summary() string {
	var out strings.Builder
	if len(r.Origins) > 0 {
		out.WriteString(r.counts() + "\n")
	}
	if len(r.Others) > 0 {
		fmt.Fprintf(&out, "rules that do other jobs, and stay with Kyverno: %d\n", len(r.Others))
	}
	for _, o := range r.Origins {
		outcome := "not"
		if o.InForce {
			outcome = "partly"
		}
		for _, reason := range o.Why {
			fmt.Fprintf(&out, "%s carried over: %s: %s\n", outcome, o.From, reason)
		}
	}
	return out.String() + r.Unreadable()
}

// Unreadable tells line by line what could not be read: where, and why.
func (r Result) Unreadable() string {
	var out strings.Builder
	for _, unread := range r.Unread {
		fmt.Fprintf(&out, "%s: %s\n", unread.At, unread.Why)
	}
	return out.String()
}
