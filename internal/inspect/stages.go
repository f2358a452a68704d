package inspect

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/headwater-k8s/headwater/internal/plural"
	"github.com/headwater-k8s/headwater/reload/explain"
	"github.com/headwater-k8s/headwater/sync/spec"
)

// stageSize is a stage of a rule, with how many namespaces it has now.
type stageSize struct {
	Name       string `json:"name"`
	Namespaces int    `json:"namespaces"`
	// Readers counts the consumers there, and Idle those of them that only a person or a
	// schedule moves; nil if they are not known, or if the gate asks for no evidence.
	Readers *int `json:"readers,omitempty"`
	Idle    *int `json:"idle,omitempty"`
}

// stages returns the stages of rule; none if it has none, or no source. consumers may be nil.
func (i *Inspector) stages(ctx context.Context, rule *spec.Rule, consumers *explain.Explainer) (sizes []stageSize, err error) {
	sources := i.reader.Sources(rule.Base)
	if rule.Stages == nil || len(sources) == 0 {
		return nil, nil
	}
	for stage, targets := range i.reader.StageTargets(rule, sources[0]) {
		size := stageSize{Name: rule.Stages.Name(stage), Namespaces: len(targets)}
		if consumers != nil && rule.Stages.NeedsEvidence() {
			size.Readers, size.Idle = new(int), new(int)
			for _, target := range targets {
				readers, idle, err := consumers.CountReaders(ctx, target, time.Now())
				if err != nil {
					return nil, err
				}
				*size.Readers, *size.Idle = *size.Readers+readers, *size.Idle+idle
			}
		}
		sizes = append(sizes, size)
	}
	return sizes, nil
}

// describeStages returns a sentence about the stages of a rule. A stage before the last one
// without a consumer that runs what it gets proves nothing.
func describeStages(stages []stageSize) string {
	var all []string
	for i, stage := range stages {
		text, proves := fmt.Sprintf("%s has %s", stage.Name, plural.Of(stage.Namespaces, "namespace")), stage.Namespaces > 0
		if stage.Readers != nil {
			text += " and " + plural.Of(*stage.Readers, "consumer")
			if *stage.Idle > 0 {
				text += fmt.Sprintf(", %d of them idle", *stage.Idle)
			}
			proves = *stage.Readers > *stage.Idle
		}
		if !proves && i < len(stages)-1 {
			text += ", so nothing can prove a value there: check what it selects"
		}
		all = append(all, text)
	}
	return "stages: " + strings.Join(all, "; ")
}
