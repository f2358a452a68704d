package output

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
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
	text, err := o.text(what)
	if err != nil {
		return "", fmt.Errorf("print: %w", err)
	}
	if text = strings.Trim(text, "\n"); text != "" {
		text += "\n"
	}
	return text, nil
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
