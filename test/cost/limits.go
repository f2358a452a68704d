package main

import "math"

const (
	mib = 1 << 20
	gib = 1 << 30
)

// limit is where a resource ends.
type limit struct {
	what   string
	amount float64 // bytes
	use    func(forecast) float64
}

// limits are those of a cluster as it is by default. chart is the memory limit
// of Headwater's container, machine what a control plane's machine has.
func limits(chart, machine float64) []limit {
	return []limit{
		{"etcd's quota by default, 2 GiB", 2 * gib, func(f forecast) float64 { return f.etcd + f.change }},
		{"etcd's suggested maximum, 8 GiB", 8 * gib, func(f forecast) float64 { return f.etcd + f.change }},
		{"Headwater's memory limit in the chart, " + bytes(chart), chart, func(f forecast) float64 { return f.resident }},
		{"an API server's machine of " + bytes(machine), machine, func(f forecast) float64 { return f.apiResident }},
	}
}

// strain is how much of a limit a forecast takes, and how many clones of that
// payload would take it whole.
type strain struct {
	limit limit
	share float64
	// clones is infinite where more of them never reach the limit.
	clones float64
}

// strains holds a scenario against every limit.
func (m *model) strains(s scenario, all []limit) []strain {
	f := m.foretell(s)
	empty := s
	empty.namespaces = 0
	none := m.foretell(empty)
	out := make([]strain, 0, len(all))
	for _, l := range all {
		one := strain{limit: l, share: l.use(f) / l.amount, clones: math.Inf(1)}
		if grows := l.use(f) - l.use(none); grows > 0 {
			one.clones = max(0, (l.amount-l.use(none))/grows*s.clones())
		}
		out = append(out, one)
	}
	return out
}

// first is the limit that is reached with the fewest clones.
func first(all []strain) strain {
	least := all[0]
	for _, s := range all[1:] {
		if s.clones < least.clones {
			least = s
		}
	}
	return least
}

// settings are what to give a scenario.
type settings struct {
	// quota is etcd's, memory is Headwater's limit, api is what an API server needs.
	quota, memory, api float64
	// beyond: etcd is not made for so much.
	beyond bool
}

// advise leaves room of a half above what is foretold.
func advise(f forecast) settings {
	const spare = 1.5
	s := settings{
		quota:  roundUp(spare*(f.etcd+f.change), gib),
		memory: max(128*mib, roundUp(spare*f.resident, 64*mib)),
		api:    roundUp(spare*f.apiResident, gib),
	}
	s.quota = max(s.quota, 2*gib)
	s.beyond = s.quota > 8*gib
	return s
}

func roundUp(amount, step float64) float64 { return math.Ceil(amount/step) * step }
