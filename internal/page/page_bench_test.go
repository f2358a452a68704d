package page

import (
	"fmt"
	"testing"

	"github.com/headwater-k8s/headwater/internal/page/grid"
)

// What a large cluster costs while somebody looks: 10 rules, 10,000 namespaces.
func BenchmarkGrid(b *testing.B) {
	var rules []string
	var places []grid.Place
	for row := range 10 {
		rules = append(rules, fmt.Sprintf("rule-%d", row))
		for slot := range 10_000 {
			places = append(places, at(rules[row], fmt.Sprintf("team-%d", slot), grid.Current))
		}
	}
	g := grid.NewGrid(rules)
	b.Run("fill", func(b *testing.B) {
		for b.Loop() {
			g.Fill(places, noon)
		}
	})
	b.Run("snapshot", func(b *testing.B) {
		for b.Loop() {
			message("grid", g.Snapshot())
		}
	})
	b.Run("a change of every cell of a rule, and its delta", func(b *testing.B) {
		for b.Loop() {
			for _, place := range places[:10_000] {
				place.State = grid.Behind + grid.State(b.N%2)
				g.Set(place.Target, []grid.Place{place}, noon)
			}
			message("delta", g.Take())
		}
	})
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			g.List(grid.Filter{Most: listMost})
		}
	})
}
