package breaks

import "testing"

func TestPanics(*testing.T) { panic("out of order") }
