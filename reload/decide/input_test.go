package decide_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
)

func TestWhatAChangeMeans(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	by := func(mode refs.Mode) decide.Input { return secret(h, "s", mode, reloadtest.Data{"a": "1"}) }
	restart := func(reason spec.Reason) decide.Outcome { return decide.Outcome{spec.StepRestart, reason} }
	nothing := func(reason spec.Reason) decide.Outcome { return decide.Outcome{spec.StepNothing, reason} }
	refresh := decide.Outcome{spec.StepRefresh, spec.ReasonMounted}
	tests := map[string]struct {
		consumed decide.Input
		want     decide.Outcome
	}{
		"a variable restarts":                               {by(refs.Env), restart(spec.ReasonReadAtStart)},
		"all keys as variables restart":                     {by(refs.EnvFrom), restart(spec.ReasonReadAtStart)},
		"a subPath mount restarts":                          {by(refs.SubPath), restart(spec.ReasonReadAtStart)},
		"a volume of an init container restarts":            {by(refs.InitVolume), restart(spec.ReasonReadByInit)},
		"under Refresh an init container's is nothing":      {under(by(refs.InitVolume), spec.Refresh), nothing(spec.ReasonOnlyRefresh)},
		"what the owner lists restarts":                     {by(refs.Listed), restart(spec.ReasonListed)},
		"a mounted volume is refreshed":                     {by(refs.Volume), refresh},
		"an immutable volume restarts":                      {frozen(by(refs.Volume)), restart(spec.ReasonImmutable)},
		"a variable of what is immutable restarts":          {frozen(by(refs.Env)), restart(spec.ReasonImmutable)},
		"what the owner lists restarts, immutable or not":   {frozen(by(refs.Listed)), restart(spec.ReasonListed)},
		"a pull secret is nothing":                          {by(refs.ImagePull), nothing(spec.ReasonReadByNode)},
		"a pull secret is nothing under Restart":            {under(by(refs.ImagePull), spec.Restart), nothing(spec.ReasonReadByNode)},
		"a CSI driver's secret is nothing":                  {by(refs.CSI), nothing(spec.ReasonReadByNode)},
		"what a volume is mounted with is nothing":          {by(refs.Mount), nothing(spec.ReasonReadByNode)},
		"under Restart a mounted volume restarts":           {under(by(refs.Volume), spec.Restart), restart(spec.ReasonAsked)},
		"under Restart an immutable volume restarts":        {under(frozen(by(refs.Volume)), spec.Restart), restart(spec.ReasonImmutable)},
		"under Refresh a variable is nothing":               {under(by(refs.Env), spec.Refresh), nothing(spec.ReasonOnlyRefresh)},
		"under Refresh an immutable volume is nothing":      {under(frozen(by(refs.Volume)), spec.Refresh), nothing(spec.ReasonOnlyRefresh)},
		"under Refresh a mounted volume is refreshed":       {under(by(refs.Volume), spec.Refresh), refresh},
		"switched off is nothing":                           {under(by(refs.Env), spec.None), nothing(spec.ReasonOff)},
		"what no rule reloads is nothing":                   {ungoverned(by(refs.Env)), nothing(spec.ReasonUngoverned)},
		"a volume whose rule is not about it is nothing":    {ungoverned(by(refs.Volume)), nothing(spec.ReasonUngoverned)},
		"a pull secret that no rule is about is ungoverned": {ungoverned(by(refs.ImagePull)), nothing(spec.ReasonUngoverned)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, test.consumed.OnChange()) })
	}
}
