package output

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"github.com/headwater-k8s/headwater/internal/text"
)

// Printable can be printed in every format but Name: as data by its fields in JSON.
type Printable interface {
	Table(out *Writer)
}

// named is a Printable that lists things with names that commands accept.
type named interface {
	Names() []string
}

// errNoNames is the error of -o name for a Printable without names.
var errNoNames = errors.New("this command lists nothing that has a name; use another --output")

// Options say how to print.
type Options struct {
	Format    Format
	NoHeaders bool
}

// Print writes what to out.
func (o Options) Print(out io.Writer, what Printable) error {
	text, err := o.Text(what)
	if err != nil || text == "" {
		return err
	}
	_, err = io.WriteString(out, text)
	return err
}

// Text returns what as lines, of which none is empty at either end.
func (o Options) Text(what Printable) (string, error) {
	printed, err := o.text(what)
	if err != nil {
		return "", fmt.Errorf("print: %w", err)
	}
	if printed = text.Printable(strings.Trim(printed, "\n")); printed != "" {
		printed += "\n"
	}
	return printed, nil
}

func (o Options) text(what Printable) (string, error) {
	switch {
	case o.Format.IsTable():
		var table strings.Builder
		what.Table(o.Writer(&table))
		return table.String(), nil
	case o.Format == JSON:
		text, err := json.MarshalIndent(what, "", "  ")
		return string(text), err
	case o.Format == YAML:
		text, err := yaml.Marshal(what)
		return string(text), err
	case o.Format == Name:
		named, is := what.(named)
		if !is {
			return "", errNoNames
		}
		return strings.Join(named.Names(), "\n"), nil
	}
	text, err := json.Marshal(what)
	if err != nil {
		return "", err
	}
	var document map[string]any
	if err := json.Unmarshal(text, &document); err != nil {
		return "", err
	}
	if strings.HasPrefix(string(o.Format), customColumns) {
		return o.columns(document)
	}
	return o.Format.fields(document)
}

// fields returns what a JSONPath format selects.
func (f Format) fields(document map[string]any) (string, error) {
	printer, err := f.printer()
	if err != nil {
		return "", err
	}
	var selected strings.Builder
	err = printer.PrintObj(&unstructured.Unstructured{Object: document}, &selected)
	return selected.String(), err
}

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
