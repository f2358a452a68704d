package figures

import (
	"fmt"
	"strings"
)

// in returns a number in its unit. A time has three digits and is written in
// seconds, milliseconds or microseconds.
func in(unit string, n float64) string {
	switch {
	case unit == "ms" && n >= 10_000:
		return fmt.Sprintf("%.3g s", n/1000)
	case unit == "ms" && n >= 1000:
		return fmt.Sprintf("%.1f s", n/1000)
	case unit == "ms" && n < 1:
		return fmt.Sprintf("%.0f µs", n*1000)
	case unit == "ms":
		return fmt.Sprintf("%.0f ms", n)
	default:
		return fmt.Sprintf("%.0f %s", n, unit)
	}
}

// whole returns a number without a unit, its thousands apart.
func whole(n float64) string { return grouped(fmt.Sprintf("%.0f", n)) }

func grouped(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func (r *Ratio) String() string {
	if r == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f (%.2f to %.2f)", r.Median, r.Least, r.Greatest)
}

// atMost adds the greatest to a median.
func atMost(unit string, v Values) string {
	return fmt.Sprintf("%s, at most %s", in(unit, v.Median), in(unit, v.Max))
}

// table is one of Markdown.
func table(header []string, rows [][]string) string {
	lines := []string{"| " + strings.Join(header, " | ") + " |", strings.Repeat("|---", len(header)) + "|"}
	for _, row := range rows {
		lines = append(lines, "| "+strings.Join(row, " | ")+" |")
	}
	return strings.Join(lines, "\n")
}
