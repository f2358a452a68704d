package reload

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatAChangeMeans(t *testing.T) {
	h := testHasher(t, 1)
	by := func(mode Mode) Consumed { return secret(h, "s", mode, data{"a": "1"}) }
	restart := func(reason Reason) Outcome { return Outcome{StepRestart, reason} }
	nothing := func(reason Reason) Outcome { return Outcome{StepNothing, reason} }
	refresh := Outcome{StepRefresh, ReasonMounted}
	tests := map[string]struct {
		consumed Consumed
		want     Outcome
	}{
		"a variable restarts":                               {by(Env), restart(ReasonReadAtStart)},
		"all keys as variables restart":                     {by(EnvFrom), restart(ReasonReadAtStart)},
		"a subPath mount restarts":                          {by(SubPath), restart(ReasonReadAtStart)},
		"a volume of an init container restarts":            {by(InitVolume), restart(ReasonReadByInit)},
		"under Refresh an init container's is nothing":      {by(InitVolume).under(Refresh), nothing(ReasonOnlyRefresh)},
		"what the owner lists restarts":                     {by(Listed), restart(ReasonListed)},
		"a mounted volume is refreshed":                     {by(Volume), refresh},
		"an immutable volume restarts":                      {by(Volume).frozen(), restart(ReasonImmutable)},
		"a variable of what is immutable restarts":          {by(Env).frozen(), restart(ReasonImmutable)},
		"what the owner lists restarts, immutable or not":   {by(Listed).frozen(), restart(ReasonListed)},
		"a pull secret is nothing":                          {by(ImagePull), nothing(ReasonReadByNode)},
		"a pull secret is nothing under Restart":            {by(ImagePull).under(Restart), nothing(ReasonReadByNode)},
		"a CSI driver's secret is nothing":                  {by(CSI), nothing(ReasonReadByNode)},
		"what a volume is mounted with is nothing":          {by(Mount), nothing(ReasonReadByNode)},
		"under Restart a mounted volume restarts":           {by(Volume).under(Restart), restart(ReasonAsked)},
		"under Restart an immutable volume restarts":        {by(Volume).frozen().under(Restart), restart(ReasonImmutable)},
		"under Refresh a variable is nothing":               {by(Env).under(Refresh), nothing(ReasonOnlyRefresh)},
		"under Refresh an immutable volume is nothing":      {by(Volume).frozen().under(Refresh), nothing(ReasonOnlyRefresh)},
		"under Refresh a mounted volume is refreshed":       {by(Volume).under(Refresh), refresh},
		"switched off is nothing":                           {by(Env).under(None), nothing(ReasonOff)},
		"what no rule reloads is nothing":                   {by(Env).ungoverned(), nothing(ReasonUngoverned)},
		"a volume whose rule is not about it is nothing":    {by(Volume).ungoverned(), nothing(ReasonUngoverned)},
		"a pull secret that no rule is about is ungoverned": {by(ImagePull).ungoverned(), nothing(ReasonUngoverned)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, test.consumed.onChange()) })
	}
}
