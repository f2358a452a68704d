package main

import "github.com/headwater-k8s/headwater/test/figures"

// figures are the slopes of all lines; times in milliseconds, all else in bytes
// or numbers.
func (m *model) figures() []figures.Row {
	var rows []figures.Row
	for _, e := range m.order {
		row := figures.Row{Key: "cost/" + string(e.per) + "/" + string(e.of), Samples: len(m.points[e])}
		slope := m.line(e.per, e.of).slope
		switch unitOf(e.of) {
		case inSeconds:
			row.Unit, row.Value.Median = "ms", slope*1000
		case inNumber:
			row.Unit, row.Value.Median = "requests", slope
		default:
			row.Unit, row.Value.Median = "bytes", slope
		}
		rows = append(rows, row)
	}
	large := m.foretell(scenarios()[0])
	return append(rows,
		figures.Row{Key: figures.PredictedResident, Unit: "MiB", Value: figures.Values{Median: large.resident / mib}},
		figures.Row{Key: figures.PredictedChange, Unit: "ms", Value: figures.Values{Median: large.wall * 1000}})
}
