package decide_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// history is one workload's, with two objects.
type history struct {
	*require.Assertions

	dice    *rand.Rand
	hasher  *digest.Hasher
	told    []string
	clock   int
	objects [2]struct {
		data      reloadtest.Data // nil while it is not there
		immutable bool
		writtenAt int
		goneAt    int
	}
	uses      []*use
	started   bool
	startedAt int
	// places are what is consumed, in whatever mode.
	places map[string]*knowledge
	// stored is Headwater's record, and restarts how often it made some.
	stored   string
	restarts int
}

// use is what the pod template consumes of an object, under a rule.
type use struct {
	decide.Input
	*knowledge

	of int
}

// knowledge is of some keys of an object, in whatever mode they are consumed.
type knowledge struct {
	// read is what the containers read when they started.
	read reloadtest.Data
	// recorded is what Headwater knows that they read, where others replaced the
	// pods since.
	recorded *reloadtest.Data
	// sighted is true once Headwater could know that, and kept once it could that
	// kubelets keep what was immutable.
	sighted, kept bool
}

func newHistory(t *testing.T, seed uint64) *history {
	t.Helper()
	h := &history{dice: rand.New(rand.NewPCG(seed, seed)), hasher: reloadtest.Hasher(t, 1), places: map[string]*knowledge{}}
	h.Assertions = require.New(t)
	h.tell("seed %d", seed)
	for i := range h.objects {
		h.write(i)
	}
	for range 1 + h.dice.IntN(3) {
		h.refer()
	}
	return h
}

func (h *history) tell(format string, args ...any) {
	h.told = append(h.told, fmt.Sprintf(format, args...))
}

func pick[T any](h *history, from ...T) T { return from[h.dice.IntN(len(from))] }

func (h *history) write(i int) {
	o := &h.objects[i]
	content := reloadtest.Data{}
	for _, key := range []string{"a", "b"} {
		if value := pick(h, "", "1", "2", "3"); value != "" {
			content[key] = value
		}
	}
	if o.data != nil && o.immutable || o.data == nil {
		o.immutable = h.dice.IntN(6) == 0 // the object is recreated
	}
	o.data, o.writtenAt = content, h.clock
	h.tell("%d: object %d is %v, immutable %t", h.clock, i, content, o.immutable)
}

// refer has the pod template consume something.
func (h *history) refer() {
	of := h.dice.IntN(2)
	u := &use{of: of}
	u.Reference = refs.Reference{Kind: object.Secret, Name: fmt.Sprint("s", of), Mode: pick(h, refs.Env, refs.EnvFrom, refs.SubPath, refs.Volume, refs.InitVolume), Optional: h.dice.IntN(2) == 0}
	switch {
	case u.Mode == refs.Env || u.Mode == refs.SubPath:
		u.Keys = []string{pick(h, "a", "b")}
	case u.Mode == refs.Volume && h.dice.IntN(2) == 0:
		u.Keys = []string{"a"}
	}
	if !u.Optional {
		u.Required = u.Keys
	}
	u.Object = object.Ref{Kind: object.Secret, Namespace: "ns", Name: u.Name}
	u.Rule, u.Action = "r", spec.Auto
	for _, other := range h.uses { // rules and wishes are about objects
		if other.of == of {
			u.Rule, u.Action = other.Rule, other.Action
		}
	}
	place := fmt.Sprint(of, u.Keys)
	if h.places[place] == nil {
		h.places[place] = &knowledge{}
	}
	u.knowledge = h.places[place]
	h.uses = append(h.uses, u)
	h.tell("%d: consumes %s of %d as %s, optional %t", h.clock, u.Keys, of, u.Mode, u.Optional)
	h.roll()
}

// reads is what a container of now reads.
func (h *history) reads(u *use) reloadtest.Data {
	content := h.objects[u.of].data
	if u.Keys == nil || content == nil {
		return content
	}
	part := reloadtest.Data{}
	for _, key := range u.Keys {
		if value, found := content[key]; found {
			part[key] = value
		}
	}
	return part
}

// behind reports whether u was read as it no longer is. What is not there is as
// good as empty.
func (h *history) behind(u *use) bool { return !maps.Equal(u.read, h.reads(u)) }

func (h *history) startable() bool {
	return !slices.ContainsFunc(h.uses, func(u *use) bool {
		content := h.objects[u.of].data
		return content == nil && !u.Optional ||
			content != nil && slices.ContainsFunc(u.Required, func(key string) bool { _, found := content[key]; return !found })
	})
}

// readNothing reports whether pods that start now need one of the objects, and read no value
// of it.
func (h *history) readNothing(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		same := slices.DeleteFunc(slices.Clone(h.uses), func(u *use) bool { return u.Object.String() != name || u.Mode == refs.Listed })
		needs := func(u *use) bool { return !u.Optional }
		value := func(u *use) bool { return len(h.reads(u)) > 0 } // no value of these objects is empty
		return slices.ContainsFunc(same, needs) && !slices.ContainsFunc(same, value)
	})
}

// roll replaces all pods, once they can start.
func (h *history) roll() {
	h.started = false
	h.start()
}

func (h *history) start() {
	if h.started || !h.startable() {
		return
	}
	h.started, h.startedAt = true, h.clock
	for _, u := range h.uses {
		if u.recorded == nil {
			u.recorded = new(u.read)
		}
		u.read = h.reads(u)
	}
}

// happen has one thing happen.
func (h *history) happen() {
	h.clock++
	i := h.dice.IntN(2)
	switch h.dice.IntN(12) {
	case 0, 1, 2, 3, 4:
		h.write(i)
	case 5, 6:
		if h.objects[i].data != nil {
			h.objects[i].data, h.objects[i].goneAt = nil, h.clock
		}
		h.tell("%d: object %d is gone", h.clock, i)
	case 7:
		h.govern(i, "r", pick(h, spec.Auto, spec.Restart, spec.Refresh, spec.None))
	case 8:
		h.govern(i, pick(h, "", "r", "r"), spec.Auto)
	case 9:
		if len(h.uses) < 4 {
			h.refer()
		}
	case 10:
		if len(h.uses) > 1 {
			h.uses = slices.Delete(h.uses, 0, 1)
			h.tell("%d: consumes the first no more", h.clock)
			h.roll()
		}
	default:
		h.tell("%d: its owner rolls it out", h.clock)
		h.roll()
	}
	h.start()
}

func (h *history) govern(i int, rule string, action spec.Action) {
	if rule == "" {
		action = spec.None
	}
	h.tell("%d: object %d under %q %s", h.clock, i, rule, action)
	for _, u := range h.uses {
		if u.of == i {
			u.Rule, u.Action = rule, action
		}
	}
}

// consumed is what Headwater sees.
func (h *history) consumed() []decide.Input {
	var all []decide.Input
	for _, u := range h.uses {
		o := h.objects[u.of]
		c := u.Input
		c.Exists, c.Absent = o.data != nil, o.data == nil
		c.StartedWithout, c.StartedAfterDelete = c.Absent && c.Optional && h.started, h.lacked(u)
		if c.Exists {
			c.Digests, c.Immutable = reloadtest.Digests(h.hasher, o.data), o.immutable
		}
		all = append(all, c)
	}
	return all
}

// lacked reports whether the pods started after what they use had gone.
func (h *history) lacked(u *use) bool {
	o := h.objects[u.of]
	return o.data == nil && u.Optional && h.started && h.startedAt >= o.goneAt
}
