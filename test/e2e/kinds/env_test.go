package kinds

import (
	"testing"

	"github.com/headwater-k8s/headwater/test/lab"
)

func TestMain(m *testing.M) { lab.Main(m) }

// env is lab.Env in the words of these tests.
type env struct{ *lab.Env }

func newEnv(t *testing.T) *env { return &env{lab.Parallel(t)} }
