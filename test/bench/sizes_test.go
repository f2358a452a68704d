package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCrowdsAreFewAndThenAllConsumers(t *testing.T) {
	require.Equal(t, []int{50, 1000}, crowdSizes(1000))
	require.Equal(t, []int{50}, crowdSizes(50))
	require.Equal(t, []int{30}, crowdSizes(30))
}

func TestScalesGrowToTheNumberOfClones(t *testing.T) {
	for name, test := range map[string]struct {
		clones, consumers int
		want              []int
	}{
		"fewer than the first": {30, 30, []int{30}},
		"a scale":              {1000, 1000, []int{100, 1000}},
		"between two":          {2500, 1000, []int{100, 1000, 2500}},
		"all":                  {10000, 1000, []int{100, 1000, 10000}},
		"consumers between":    {1000, 200, []int{100, 200, 1000}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, scales(options{clones: test.clones, consumers: test.consumers}))
		})
	}
}
