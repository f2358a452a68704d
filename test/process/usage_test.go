package process

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheCPUTimeOfAProcessIsReadPastItsName(t *testing.T) {
	for what, one := range map[string]struct {
		stat string
		want time.Duration
	}{
		"user and system time are summed": {"7 (etcd) S 1 7 7 0 -1 4194560 9 0 0 0 150 50 0 0 20 0 9 0 1 1 1", 2 * time.Second},
		"a name with blanks and brackets": {"7 (a) b (c) S 1 7 7 0 -1 4194560 9 0 0 0 1 2 0 0 20 0 9 0 1 1 1", 30 * time.Millisecond},
	} {
		t.Run(what, func(t *testing.T) {
			got, err := cpuTime(one.stat)
			require.NoError(t, err)
			require.Equal(t, one.want, got)
		})
	}
	_, err := cpuTime("7 (etcd) S 1")
	require.ErrorContains(t, err, "no /proc/PID/stat")
}

func TestWhatThisProcessUsesIsRead(t *testing.T) {
	_, err := CPUTime(os.Getpid())
	require.NoError(t, err)
	bytes, err := MemoryBytes(os.Getpid(), Peak)
	require.NoError(t, err)
	require.Greater(t, bytes, int64(1<<20))
	load, err := LoadAverage()
	require.NoError(t, err)
	require.Regexp(t, `^\d+\.\d\d$`, load)
}
