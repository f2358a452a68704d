package page

import (
	"fmt"
	"testing"

	"github.com/headwater-k8s/headwater/internal/page/grid"
)

// What a large cluster costs while somebody looks: 10 rules, 10,000 namespaces.
func BenchmarkGrid(b *testing.B) {
	var rules, namespaces []string
	places := map[string][]grid.Place{}
	for row := range 10 {
		rules = append(rules, fmt.Sprintf("rule-%d", row))
	}
	for slot := range 10_000 {
		namespace := fmt.Sprintf("team-%d", slot)
		namespaces = append(namespaces, namespace)
		for _, rule := range rules {
			places[namespace] = append(places[namespace], at(rule, namespace, grid.Current))
		}
	}
	g := grid.NewGrid(rules)
	b.Run("fill", func(b *testing.B) {
		for b.Loop() {
			for _, namespace := range namespaces {
				g.Set(namespace, places[namespace])
			}
		}
	})
	b.Run("snapshot", func(b *testing.B) {
		for b.Loop() {
			message("grid", g.Snapshot())
		}
	})
	b.Run("a change of every cell of a rule, and its delta", func(b *testing.B) {
		for b.Loop() {
			for _, namespace := range namespaces {
				places[namespace][0].State = grid.Behind + grid.State(b.N%2)
				g.Set(namespace, places[namespace])
			}
			message("delta", g.Take())
		}
	})
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			grid.ListOf(grid.Filter{Most: listMost}, func(report func(grid.Place)) {
				for _, namespace := range namespaces {
					for _, place := range places[namespace] {
						report(place)
					}
				}
			})
		}
	})
}
