package output

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/util/jsonpath"
)

// customColumns begins the format of columns that the user names, as with kubectl:
// custom-columns=HEADER:.path,HEADER:.path. Its own printer is not in a library.
const customColumns = "custom-columns="

// noValue stands where a row lacks a field.
const noValue = "<none>"

var errColumns = errors.New("write custom-columns=HEADER:.path,HEADER:.path")

type column struct {
	header string
	path   *jsonpath.JSONPath
}

func parseColumns(text string) ([]column, error) {
	var columns []column
	for part := range strings.SplitSeq(text, ",") {
		header, path, found := strings.Cut(part, ":")
		if !found || header == "" || path == "" {
			return nil, fmt.Errorf("%q is no column: %w", part, errColumns)
		}
		parsed := jsonpath.New(header).AllowMissingKeys(true)
		if err := parsed.Parse("{" + strings.Trim(path, "{}") + "}"); err != nil {
			return nil, fmt.Errorf("column %s: %w", header, err)
		}
		columns = append(columns, column{header, parsed})
	}
	return columns, nil
}

// of returns what the column shows of a row.
func (c column) of(row any) (string, error) {
	found, err := c.path.FindResults(row)
	if err != nil {
		return "", fmt.Errorf("column %s: %w", c.header, err)
	}
	var values []string
	for _, results := range found {
		for _, value := range results {
			values = append(values, fmt.Sprint(value.Interface()))
		}
	}
	if len(values) == 0 {
		return noValue, nil
	}
	return strings.Join(values, ","), nil
}

// columns writes a row for each entry of the document's list. A document with no list
// of objects, or with several, is one row.
func (o Options) columns(document map[string]any) (string, error) {
	columns, err := parseColumns(strings.TrimPrefix(string(o.Format), customColumns))
	if err != nil {
		return "", err
	}
	var headers []string
	for _, column := range columns {
		headers = append(headers, column.header)
	}
	var rows [][]string
	for _, entry := range entriesOf(document) {
		var row []string
		for _, column := range columns {
			cell, err := column.of(entry)
			if err != nil {
				return "", err
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	var table strings.Builder
	o.Writer(&table).Rows(rows, headers)
	return table.String(), nil
}

func entriesOf(document map[string]any) []any {
	var lists [][]any
	for _, value := range document {
		list, is := value.([]any)
		if !is || len(list) == 0 {
			continue
		}
		if _, is := list[0].(map[string]any); is {
			lists = append(lists, list)
		}
	}
	if len(lists) == 1 {
		return lists[0]
	}
	return []any{document}
}

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
