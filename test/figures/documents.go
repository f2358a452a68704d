package figures

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// A block begins and ends with a line of its own, a comment of Markdown or YAML.
var (
	beginMark = regexp.MustCompile(`^(?:<!-- figures: (\S+); make figures writes them -->|# figures: (\S+); make figures writes them)$`)
	endMark   = regexp.MustCompile(`^(?:<!-- end of figures -->|# end of figures)$`)
)

// Write puts the figures of file into every document of a repository.
func Write(root string, file File) error {
	for _, name := range Documents {
		path := filepath.Join(root, name)
		content, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("write figures: %w", err)
		}
		fresh, _, err := Rewrite(string(content), file)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(path, []byte(fresh), 0o644); err != nil {
			return fmt.Errorf("write figures: %w", err)
		}
	}
	return nil
}

// Rewrite returns a document with the figures of file between its marks, and
// what of it is outside of them.
func Rewrite(document string, file File) (fresh, outside string, err error) {
	var out, rest []string
	within := ""
	for text := range strings.SplitSeq(document, "\n") {
		switch begin := beginMark.FindStringSubmatch(text); {
		case begin != nil && within == "":
			within = begin[1] + begin[2]
			block, err := blockOf(within, begin[2] != "", file)
			if err != nil {
				return "", "", err
			}
			out = append(out, text)
			out = append(out, block...)
		case endMark.MatchString(text) && within != "":
			within = ""
			out = append(out, text)
		case within == "":
			out, rest = append(out, text), append(rest, text)
		}
	}
	if within != "" {
		return "", "", fmt.Errorf("the figures %s have lost the mark of their end", within)
	}
	return strings.Join(out, "\n"), strings.Join(rest, "\n"), nil
}

// blockOf returns the lines between the marks of this name. Markdown wants empty
// lines about a table; in YAML each line is a comment.
func blockOf(name string, isYAML bool, file File) ([]string, error) {
	write, known := blocks[name]
	if !known {
		return nil, fmt.Errorf("there are no figures %s", name)
	}
	text, err := write(file)
	if err != nil {
		return nil, fmt.Errorf("figures %s: %w", name, err)
	}
	lines := strings.Split(text, "\n")
	if !isYAML {
		return append(append([]string{""}, lines...), ""), nil
	}
	for i := range lines {
		lines[i] = "# " + lines[i]
	}
	return lines, nil
}
