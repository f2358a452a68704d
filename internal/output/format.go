package output

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
)

// Format is the value of the flag --output.
type Format string

// The formats without an argument. Wide is Table with more columns.
const (
	Table Format = "table"
	Wide  Format = "wide"
	JSON  Format = "json"
	YAML  Format = "yaml"
	Name  Format = "name"
)

// Formats lists the values to choose from. Those that end in = take an argument.
func Formats() []string {
	formats := []string{string(Table), string(Wide), string(JSON), string(YAML), string(Name)}
	for _, format := range jsonPath().AllowedFormats() {
		formats = append(formats, format+"=")
	}
	return append(formats, customColumns)
}

// Set implements pflag.Value. It fails if the argument of the format is invalid.
func (f *Format) Set(text string) error {
	name, argument, hasArgument := strings.Cut(text, "=")
	if hasArgument {
		name += "="
	}
	if !slices.Contains(Formats(), name) {
		return fmt.Errorf("use one of %s", strings.Join(Formats(), ", "))
	}
	var err error
	switch {
	case name == customColumns:
		_, err = parseColumns(argument)
	case hasArgument:
		_, err = Format(text).printer()
	}
	if err == nil {
		*f = Format(text)
	}
	return err
}

// Type implements pflag.Value.
func (f *Format) Type() string { return "format" }

func (f *Format) String() string { return string(*f) }

// IsTable reports whether f is for people.
func (f Format) IsTable() bool { return f == Table || f == Wide || f == "" }

// printer returns kubectl's printer of a JSONPath format.
func (f Format) printer() (printers.ResourcePrinter, error) { return jsonPath().ToPrinter(string(f)) }

func jsonPath() *genericclioptions.JSONPathPrintFlags {
	return genericclioptions.NewJSONPathPrintFlags("", true)
}
