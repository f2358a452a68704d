package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAWriteHasOneRightOutcome(t *testing.T) {
	denied := errors.New(`admission webhook "secrets.protect.headwater.dev" denied the request: no`)
	byPolicy := errors.New(`secrets "shared" is forbidden: ValidatingAdmissionPolicy 'headwater-bench' with binding 'headwater-bench' denied request`)
	unasked := errors.New(`failed calling webhook "secrets.protect.headwater.dev": connection refused`)
	for sentence, tc := range map[string]struct {
		refused        bool
		err            error
		passed, failed int
	}{
		"one that may passes":                           {},
		"one that may is refused":                       {err: denied, failed: 1},
		"one that may fails, since nobody answered":     {err: unasked, failed: 1},
		"one that may not is refused by the webhook":    {refused: true, err: denied},
		"one that may not is refused by a policy":       {refused: true, err: byPolicy},
		"one that may not fails, since nobody answered": {refused: true, err: unasked, failed: 1},
		"one that may not passes":                       {refused: true, passed: 1},
		"one that may not is refused by the API server": {refused: true, err: errors.New("cannot patch resource"), failed: 1},
	} {
		t.Run(sentence, func(t *testing.T) {
			writes := &traffic{}
			writes.try(t.Context(), write{sentence, func(context.Context) error { return tc.err }, tc.refused})
			require.Equal(t, 1, writes.tally.all)
			require.Equal(t, tc.passed, writes.tally.passed)
			require.Equal(t, tc.failed, writes.tally.failed)
			require.Equal(t, tc.passed+tc.failed, writes.tally.wrong())
			require.Equal(t, tc.passed+tc.failed > 0, writes.tally.why != nil, "an example is told")
		})
	}
}

func TestAnOutageLastsFromTheFirstToTheLastThatFailed(t *testing.T) {
	began, why := time.Now(), errors.New("nobody answered")
	var one, all tally
	for _, at := range []time.Duration{3, 1, 2} {
		one.fail(began.Add(at*time.Second), why)
	}
	require.Equal(t, 2*time.Second, one.outage())
	all.add(one)
	all.add(tally{all: 5})
	require.Equal(t, 2*time.Second, all.longest)
	require.Equal(t, 3, all.failed)
	require.Equal(t, 5, all.all)
}
