package track

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNothingIsLostWhileChangesKeepComing(t *testing.T) {
	var p Pending
	k := inNamespace("ns", "w")
	p.Add(k, birth, birth, time.Second)
	var changing sync.WaitGroup
	stop := make(chan struct{})
	changing.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				p.Add(k, birth, birth.Add(time.Duration(i)), time.Second)
			}
		}
	})
	defer changing.Wait()
	defer close(stop)
	for i := range 20000 {
		version := strconv.Itoa(i)
		p.Rewritten(k, version)
		require.Equal(t, version, p.Template(k))
	}
}
