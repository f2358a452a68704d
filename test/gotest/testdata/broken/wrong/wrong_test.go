package wrong

import "testing"

func TestNever(t *testing.T) { t.Log(missing) }
