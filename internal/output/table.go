package output

import (
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
)

// Writer writes the form for people.
type Writer struct {
	io.Writer

	options Options
}

// Writer returns a Writer on out.
func (o Options) Writer(out io.Writer) *Writer { return &Writer{out, o} }

// Wide reports whether the user asked for more columns.
func (w *Writer) Wide() bool { return w.options.Format == Wide }

// Rows writes rows below their headers. The last columns, with the headers wide, are
// only shown if the user asked for more columns.
func (w *Writer) Rows(rows [][]string, headers []string, wide ...string) {
	table := &metav1.Table{}
	for _, header := range headers {
		table.ColumnDefinitions = append(table.ColumnDefinitions, metav1.TableColumnDefinition{Name: header, Type: "string"})
	}
	for _, header := range wide {
		table.ColumnDefinitions = append(table.ColumnDefinitions, metav1.TableColumnDefinition{Name: header, Type: "string", Priority: 1})
	}
	for _, row := range rows {
		cells := make([]any, 0, len(row))
		for _, cell := range row {
			cells = append(cells, cell)
		}
		table.Rows = append(table.Rows, metav1.TableRow{Cells: cells})
	}
	printer := printers.NewTablePrinter(printers.PrintOptions{NoHeaders: w.options.NoHeaders, Wide: w.Wide()})
	var text strings.Builder
	_ = printer.PrintObj(table, &text) // fails only if the writer does
	for line := range strings.Lines(text.String()) {
		_, _ = fmt.Fprintln(w, strings.TrimRight(line, " \n"))
	}
}
