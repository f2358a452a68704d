package sync

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheLongestFailuresAreNamedFirst(t *testing.T) {
	now, targets, f := time.Unix(1000, 0), places(0, 3), failures{}
	f.add(targets[2], "blog", errors.New("quota"), now)
	f.add(targets[0], "blog", errors.New("quota"), now.Add(time.Second))
	f.add(targets[1], "blog", errors.New("quota"), now.Add(time.Second))
	f.add(targets[2], "blog", errors.New("quota again"), now.Add(time.Minute))
	require.Equal(t, targets[2:], f.first(1))
	require.Len(t, f.first(9), 3)
}
