package mark

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/text"
)

// RestartedBecause on a workload says in one line why Headwater last restarted it; see
// Because.
const RestartedBecause = Domain + "restarted-because"

// ReloadAction on a clone is the action of its rule's section reload, for people who may
// not read the configuration. Another value is no reason to write. It is absent if the
// action is not the same for every consumer.
const ReloadAction = Domain + "reload-action"

// maxBecause bounds the value of RestartedBecause, in bytes, and maxEditor the name of the
// field manager in it.
const (
	maxBecause = 256
	maxEditor  = 40
)

// Because is why a workload was restarted. Its text form is
//
//	objects=ConfigMap/app@123,Secret/db@45 rule=settings revision=7 at=2026-01-02T03:04:05Z stamp=3f by=kubectl-edit
//
// without what is not known, and with objects=…,+2 if that is too long.
type Because struct {
	// Objects are the changed ones, in the namespace of the workload. More counts those
	// that are left out.
	Objects []ObjectVersion `json:"objects"`
	More    int             `json:"more,omitempty"`
	// Rule is empty for an opt-in. Revision is 0 if the rule records none.
	Rule     string    `json:"rule,omitempty"`
	Revision int       `json:"revision,omitempty"`
	At       time.Time `json:"at"`
	// Stamp identifies the stamp on the pod template; 0 if there is none.
	Stamp uint64 `json:"-"`
	// By is the field manager that last edited the source; empty if that is not known.
	By string `json:"by,omitempty"`
}

// ObjectVersion is an object at one resourceVersion.
type ObjectVersion struct {
	Kind    object.Kind `json:"kind"`
	Name    string      `json:"name"`
	Version string      `json:"resourceVersion"`
}

// Format returns the value of RestartedBecause, of at most 256 bytes.
func (b Because) Format() string {
	var objects []string
	for _, one := range b.Objects {
		objects = append(objects, string(one.Kind)+"/"+one.Name+"@"+one.Version)
	}
	rest := ""
	if b.Rule != "" {
		rest += " rule=" + b.Rule
	}
	if b.Revision > 0 {
		rest += " revision=" + strconv.Itoa(b.Revision)
	}
	rest += " at=" + FormatTime(b.At)
	if b.Stamp != 0 {
		rest += " stamp=" + strconv.FormatUint(b.Stamp, 16)
	}
	if b.By != "" {
		rest += " by=" + text.Truncate(strings.Map(visible, b.By), maxEditor)
	}
	for more := b.More; ; more++ {
		shown := objects
		if more > 0 {
			shown = append(slices.Clone(objects), "+"+strconv.Itoa(more))
		}
		value := "objects=" + strings.Join(shown, ",") + rest
		if len(value) <= maxBecause || len(objects) == 0 {
			return value
		}
		objects = objects[:len(objects)-1]
	}
}

func visible(r rune) rune {
	if unicode.IsGraphic(r) {
		return r
	}
	return -1
}

// ParseBecause is the inverse of Format; ok is false for anything else: the owner of a
// workload may write what they want.
func ParseBecause(value string) (b Because, ok bool) {
	value, b.By, _ = strings.Cut(value, " by=")
	for field := range strings.SplitSeq(value, " ") {
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "objects":
			ok = b.parseObjects(value)
		case "rule":
			b.Rule = value
		case "revision":
			b.Revision, _ = strconv.Atoi(value)
		case "at":
			b.At = ParseTime(value)
		case "stamp":
			b.Stamp, _ = strconv.ParseUint(value, 16, 64)
		}
	}
	return b, ok && !b.At.IsZero()
}

func (b *Because) parseObjects(value string) bool {
	for one := range strings.SplitSeq(value, ",") {
		if more, found := strings.CutPrefix(one, "+"); found {
			b.More, _ = strconv.Atoi(more)
			continue
		}
		name, version, versioned := strings.Cut(one, "@")
		kind, name, named := strings.Cut(name, "/")
		if !versioned || !named || !slices.Contains(object.Kinds, object.Kind(kind)) {
			return false
		}
		b.Objects = append(b.Objects, ObjectVersion{object.Kind(kind), name, version})
	}
	return true
}

// String returns b in words, without the time.
func (b Because) String() string {
	var names, facts []string
	for _, one := range b.Objects {
		names = append(names, string(one.Kind)+"/"+one.Name)
	}
	if b.More > 0 {
		names = append(names, fmt.Sprintf("%d more", b.More))
	}
	if b.Rule != "" {
		facts = append(facts, "rule "+b.Rule)
	}
	if b.Revision > 0 {
		facts = append(facts, fmt.Sprintf("revision %d", b.Revision))
	}
	if b.By != "" {
		facts = append(facts, "edited by "+b.By)
	}
	said := strings.Join(names, ", ") + " changed"
	if len(facts) > 0 {
		said += " (" + strings.Join(facts, ", ") + ")"
	}
	return said
}
