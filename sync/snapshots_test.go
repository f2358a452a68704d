package sync

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReadersShareOneSurveyThatBlocksNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s snapshots
		now, proceed, surveys := time.Unix(1000, 0), make(chan struct{}), 0
		survey := func() *snapshot {
			surveys++
			<-proceed
			return &snapshot{until: now}
		}
		read := make(chan *snapshot, 3)
		for range cap(read) {
			go func() { read <- s.load(now, survey) }()
		}
		synctest.Wait()
		require.Empty(t, read, "all wait for the survey")

		shown := &snapshot{until: now.Add(time.Second)}
		s.store(shown)
		require.Same(t, shown, s.load(now, survey), "the page surveyed in the meantime")

		close(proceed)
		synctest.Wait()
		require.Equal(t, 1, surveys)
		first := <-read
		require.Same(t, first, <-read)
		require.Same(t, first, <-read)
		s.load(now, survey)
		require.Equal(t, 2, surveys, "it has expired")
	})
}
