package counts

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReadersShareOneCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s snapshots
		now, proceed, taken := time.Unix(1000, 0), make(chan struct{}), 0
		count := func() *Snapshot {
			taken++
			<-proceed
			return &Snapshot{until: now}
		}
		read := make(chan *Snapshot, 3)
		for range cap(read) {
			go func() { read <- s.load(now, count) }()
		}
		synctest.Wait()
		require.Empty(t, read, "all wait for the count")

		close(proceed)
		synctest.Wait()
		require.Equal(t, 1, taken)
		first := <-read
		require.Same(t, first, <-read)
		require.Same(t, first, <-read)
		s.load(now, count)
		require.Equal(t, 2, taken, "it has expired")
	})
}
