package stages

import (
	"fmt"
	"hash/fnv"
	"path"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Stages are the compiled stages of a delivery. The last one has the namespaces
// that no other takes.
type Stages struct {
	Gate Gate

	all []stage
}

type stage struct {
	Stage

	selector labels.Selector
}

// Compile prepares the stages of a validated delivery.
func Compile(delivery Delivery) (*Stages, error) {
	stages := &Stages{Gate: delivery.Gate}
	for _, one := range delivery.Stages {
		compiled := stage{Stage: one, selector: labels.Everything()}
		if one.Namespaces != nil && one.Namespaces.Selector != nil {
			var err error
			if compiled.selector, err = metav1.LabelSelectorAsSelector(one.Namespaces.Selector); err != nil {
				return nil, fmt.Errorf("stage %s: %w", one.Name, err)
			}
		}
		stages.all = append(stages.all, compiled)
	}
	stages.all = append(stages.all, stage{Stage: Stage{Name: lastStage, Soak: delivery.Rest.Soak, Approval: delivery.Rest.Approval}})
	return stages, nil
}

// Of returns the index of the stage that the namespace belongs to: the first that
// takes it.
func (s *Stages) Of(namespace string, nsLabels map[string]string) int {
	return slices.IndexFunc(s.all, func(one stage) bool { return one.takes(namespace, nsLabels) })
}

func (s stage) takes(namespace string, nsLabels map[string]string) bool {
	switch {
	case s.Name == lastStage:
		return true
	case s.Percent > 0:
		return percentile(s.Name, namespace) < s.Percent
	default:
		return s.includes(namespace) && s.selector.Matches(labels.Set(nsLabels))
	}
}

func (s stage) includes(namespace string) bool {
	return len(s.Namespaces.Include) == 0 || slices.ContainsFunc(s.Namespaces.Include, func(glob string) bool {
		matched, err := path.Match(glob, namespace)
		return err == nil && matched
	})
}

// percentile returns a number from 0 to 99 that is the same for each revision. The
// stage's name is part of it, so that two stages choose independently.
func percentile(stage, namespace string) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(stage + "/" + namespace))
	// The low bits of FNV of similar names are similar; this mixes in the high ones.
	sum := h.Sum64()
	sum ^= sum >> 33
	sum *= 0xff51afd7ed558ccd
	sum ^= sum >> 33
	return int(sum % 100)
}

// NeedsEvidence reports whether a stage passes only on what its consumers show. Without
// stages, for which s is nil, none is asked for.
func (s *Stages) NeedsEvidence() bool { return s != nil && s.Gate.Consumers != GateNone }

// Index returns the index of the stage with that name; -1 for a name that the
// configuration does not have.
func (s *Stages) Index(name string) int {
	return slices.IndexFunc(s.all, func(one stage) bool { return one.Name == name })
}

// Name returns the name of a stage.
func (s *Stages) Name(index int) string { return s.all[index].Name }

// Names returns the names of all stages in order.
func (s *Stages) Names() []string {
	names := make([]string, 0, len(s.all))
	for _, one := range s.all {
		names = append(names, one.Name)
	}
	return names
}

// Last returns the index of the last stage.
func (s *Stages) Last() int { return len(s.all) - 1 }

// Soak returns how long the gate of a stage must hold.
func (s *Stages) Soak(index int) time.Duration { return s.all[index].Soak.Duration }

// Restart reports whether consumers of the stage are restarted even if they only mount
// the object.
func (s *Stages) Restart(index int) bool { return s.all[index].Restart }

// Restarts reports whether Restart is true for any stage.
func (s *Stages) Restarts() bool {
	return slices.ContainsFunc(s.all, func(one stage) bool { return one.Restart })
}

// NeedsApproval reports whether the stage after this one waits for somebody.
func (s *Stages) NeedsApproval(index int) bool { return s.all[index].Approval }
