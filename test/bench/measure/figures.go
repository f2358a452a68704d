package measure

import (
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/test/figures"
)

// Figures are the rows that have a key, as documents state them.
func (t *Table) Figures() []figures.Row {
	var all []figures.Row
	for _, row := range t.rows {
		if row.results.key != "" {
			row.figure.Key = row.results.key
			all = append(all, row.figure)
		}
	}
	return all
}

// figureOfRounds compares each round with the floor of the same round.
func figureOfRounds(ours, floor []time.Duration) figures.Row {
	row := figureOfSamples(ours, floor)
	all := Ratios(ours, floor)
	row.Ratio = &figures.Ratio{Median: Median(all), Least: slices.Min(all), Greatest: slices.Max(all)}
	return row
}

// figureOfSamples has no ratio: samples are no pairs. floor may be empty.
func figureOfSamples(ours, floor []time.Duration) figures.Row {
	row := figures.Row{Unit: "ms", Samples: len(ours), Value: valuesOf(ours)}
	if len(floor) > 0 {
		values := valuesOf(floor)
		row.Floor = &values
	}
	return row
}

func valuesOf(all []time.Duration) figures.Values {
	return figures.Values{Median: ms(Median(all)), P99: ms(Percentile(all, 99)), Max: ms(slices.Max(all))}
}

func figureOfNumber(value float64, unit Unit) figures.Row {
	name := unit.name
	if unit == MiB {
		name = "MiB"
	}
	if unit == MS {
		name = "ms"
	}
	return figures.Row{Unit: name, Value: figures.Values{Median: value}}
}
