package fails

import "testing"

func TestFine(t *testing.T) { t.Log("of no interest") }

func TestTable(t *testing.T) {
	t.Run("a row that fails", func(t *testing.T) { t.Error("one is not two") })
	t.Run("a row that passes", func(*testing.T) {})
}
