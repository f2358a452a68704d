package unsure

import "testing"

func TestLate(t *testing.T) { t.Skip("INCONCLUSIVE: the machine was late by 3s") }

func TestLeftOut(t *testing.T) { t.Skip("needs root") }
