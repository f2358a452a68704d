package decide

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
)

func TestWhatAChangeMeans(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	by := func(mode refs.Mode) Input { return secret(h, "s", mode, reloadtest.Data{"a": "1"}) }
	restart := func(reason spec.Reason) Outcome { return Outcome{spec.StepRestart, reason} }
	nothing := func(reason spec.Reason) Outcome { return Outcome{spec.StepNothing, reason} }
	refresh := Outcome{spec.StepRefresh, spec.ReasonMounted}
	tests := map[string]struct {
		consumed Input
		want     Outcome
	}{
		"a variable restarts":                               {by(refs.Env), restart(spec.ReasonReadAtStart)},
		"all keys as variables restart":                     {by(refs.EnvFrom), restart(spec.ReasonReadAtStart)},
		"a subPath mount restarts":                          {by(refs.SubPath), restart(spec.ReasonReadAtStart)},
		"a volume of an init container restarts":            {by(refs.InitVolume), restart(spec.ReasonReadByInit)},
		"under Refresh an init container's is nothing":      {by(refs.InitVolume).under(spec.Refresh), nothing(spec.ReasonOnlyRefresh)},
		"what the owner lists restarts":                     {by(refs.Listed), restart(spec.ReasonListed)},
		"a mounted volume is refreshed":                     {by(refs.Volume), refresh},
		"an immutable volume restarts":                      {by(refs.Volume).frozen(), restart(spec.ReasonImmutable)},
		"a variable of what is immutable restarts":          {by(refs.Env).frozen(), restart(spec.ReasonImmutable)},
		"what the owner lists restarts, immutable or not":   {by(refs.Listed).frozen(), restart(spec.ReasonListed)},
		"a pull secret is nothing":                          {by(refs.ImagePull), nothing(spec.ReasonReadByNode)},
		"a pull secret is nothing under Restart":            {by(refs.ImagePull).under(spec.Restart), nothing(spec.ReasonReadByNode)},
		"a CSI driver's secret is nothing":                  {by(refs.CSI), nothing(spec.ReasonReadByNode)},
		"what a volume is mounted with is nothing":          {by(refs.Mount), nothing(spec.ReasonReadByNode)},
		"under Restart a mounted volume restarts":           {by(refs.Volume).under(spec.Restart), restart(spec.ReasonAsked)},
		"under Restart an immutable volume restarts":        {by(refs.Volume).frozen().under(spec.Restart), restart(spec.ReasonImmutable)},
		"under Refresh a variable is nothing":               {by(refs.Env).under(spec.Refresh), nothing(spec.ReasonOnlyRefresh)},
		"under Refresh an immutable volume is nothing":      {by(refs.Volume).frozen().under(spec.Refresh), nothing(spec.ReasonOnlyRefresh)},
		"under Refresh a mounted volume is refreshed":       {by(refs.Volume).under(spec.Refresh), refresh},
		"switched off is nothing":                           {by(refs.Env).under(spec.None), nothing(spec.ReasonOff)},
		"what no rule reloads is nothing":                   {by(refs.Env).ungoverned(), nothing(spec.ReasonUngoverned)},
		"a volume whose rule is not about it is nothing":    {by(refs.Volume).ungoverned(), nothing(spec.ReasonUngoverned)},
		"a pull secret that no rule is about is ungoverned": {by(refs.ImagePull).ungoverned(), nothing(spec.ReasonUngoverned)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, test.consumed.OnChange()) })
	}
}
