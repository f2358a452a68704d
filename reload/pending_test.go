package reload

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNothingIsLostWhileChangesKeepComing(t *testing.T) {
	var p pending
	k := inNamespace("ns", "w")
	p.add(k, birth, birth, time.Second)
	var changing sync.WaitGroup
	stop := make(chan struct{})
	changing.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				p.add(k, birth, birth.Add(time.Duration(i)), time.Second)
			}
		}
	})
	defer changing.Wait()
	defer close(stop)
	for i := range 20000 {
		version := strconv.Itoa(i)
		p.rewritten(k, version)
		require.Equal(t, version, p.template(k))
	}
}
