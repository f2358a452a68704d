package spec

import (
	"fmt"
	"strings"

	"github.com/robfig/cron/v3"
)

// cronFields are the fields of a cron expression in order, with their valid values.
var cronFields = []struct{ name, values string }{
	{"minute", "0 to 59"},
	{"hour", "0 to 23"},
	{"day of the month", "1 to 31"},
	{"month", "1 to 12, or JAN to DEC"},
	{"day of the week", "0 (Sunday) to 6, or SUN to SAT"},
}

// wrongCron explains why a schedule cannot be parsed.
func wrongCron(schedule string) error {
	written := strings.Fields(schedule)
	if len(written) != len(cronFields) {
		return errNotCron
	}
	for i, field := range cronFields {
		alone := []string{"*", "*", "*", "*", "*"}
		alone[i] = written[i]
		if _, err := cron.ParseStandard(strings.Join(alone, " ")); err != nil {
			return fmt.Errorf("%q cannot be the %s; write %s, *, or a list, range or step of these", written[i], field.name, field.values)
		}
	}
	return errNotCron
}
