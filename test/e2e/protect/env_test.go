package protect

import (
	"os"
	"testing"

	"github.com/headwater-k8s/headwater/test/lab"
)

func TestMain(m *testing.M) {
	if target := os.Getenv(floodVariable); target != "" {
		if err := sendFlood(target); err != nil {
			panic(err)
		}
		return
	}
	lab.Main(m)
}

// env is lab.Env in the words of these tests.
type env struct{ *lab.Env }

func newEnv(t *testing.T) *env { return &env{lab.Parallel(t)} }
