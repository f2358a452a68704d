package spec

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Windows are the times in which restarts may start; empty means always.
type Windows []openings

// openings is a compiled Window.
type openings struct {
	schedule cron.Schedule
	stays    time.Duration
}

// OpensNext returns when the next window opens, in now's location. It is zero inside a
// window, and if there are no windows.
func (w Windows) OpensNext(now time.Time) time.Time {
	var next time.Time
	for _, window := range w {
		// The first opening that has not ended.
		opens := window.schedule.Next(now.Add(-window.stays))
		switch {
		case opens.IsZero():
		case !opens.After(now):
			return time.Time{}
		case next.IsZero() || opens.Before(next):
			next = opens
		}
	}
	return next
}

// maxSteps limits the search for a time at which several Windows are open.
const maxSteps = 100

// AllOpen returns when all are open at once next; zero if they are now. If that is far
// away, it is a time at which to ask again.
func AllOpen(all []Windows, now time.Time) time.Time {
	at := now
	for range maxSteps {
		next := at
		for _, windows := range all {
			if opens := windows.OpensNext(next); !opens.IsZero() {
				next = opens
			}
		}
		if next.Equal(at) {
			break
		}
		at = next
	}
	if at.Equal(now) {
		return time.Time{}
	}
	return at
}

// maxWindows and maxWindowsText bound what owners of workloads write.
const (
	maxWindows     = 10
	maxWindowsText = 1024
)

// ParseWindows parses the windows of an annotation: a list in JSON with the keys of the
// configuration.
func ParseWindows(text string) (Windows, error) {
	var all []Window
	decoder := json.NewDecoder(strings.NewReader(text[:min(len(text), maxWindowsText)]))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&all); err != nil || decoder.More() || len(all) == 0 || len(all) > maxWindows {
		return nil, fmt.Errorf(`write a list of 1 to %d windows, such as [{"schedule": "0 2 * * 6", "duration": "4h", "timeZone": "Europe/Berlin"}]`, maxWindows)
	}
	defaultWindows(all)
	if errs := validateWindows(field.NewPath("windows"), all); len(errs) > 0 {
		return nil, errs[0]
	}
	return compileWindows(all), nil
}

func defaultWindows(all []Window) {
	for i := range all {
		all[i].TimeZone = cmp.Or(all[i].TimeZone, defaultTimeZone)
	}
}

func validateWindows(at *field.Path, all []Window) (errs field.ErrorList) {
	for i, window := range all {
		errs = append(errs, window.validate(at.Index(i))...)
	}
	return errs
}

// compileWindows compiles validated windows.
func compileWindows(all []Window) Windows {
	var compiled Windows
	for _, window := range all {
		if schedule, err := window.parse(); err == nil {
			compiled = append(compiled, openings{schedule, window.Duration.Duration})
		}
	}
	return compiled
}

func (w Window) validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if w.Duration.Duration < minWindow || w.Duration.Duration > maxWindow {
		errs = append(errs, field.Invalid(at.Child("duration"), w.Duration.Duration.String(),
			"must be between "+minWindow.String()+" and "+maxWindow.String()))
	}
	// Local depends on the machine that Headwater runs on.
	if _, err := time.LoadLocation(w.TimeZone); err != nil || strings.EqualFold(w.TimeZone, "local") {
		errs = append(errs, field.Invalid(at.Child("timeZone"), w.TimeZone, "write a name of the IANA database, such as Europe/Berlin"))
		w.TimeZone = defaultTimeZone
	}
	if _, err := w.parse(); err != nil {
		errs = append(errs, field.Invalid(at.Child("schedule"), w.Schedule, err.Error()))
	}
	return errs
}

const (
	minWindow = time.Minute
	maxWindow = 7 * 24 * time.Hour
)

var (
	errNotCron = errors.New(`write a cron expression of five fields, such as "0 2 * * 6": minute, hour, day of the month, month, day of the week`)
	errNever   = errors.New("never comes")
)

// parse parses the schedule in the window's time zone.
func (w Window) parse() (cron.Schedule, error) {
	// The parser also accepts a time zone and intervals.
	if strings.Contains(w.Schedule, "TZ=") || strings.HasPrefix(w.Schedule, "@every") {
		return nil, errNotCron
	}
	parsed, err := cron.ParseStandard(w.Schedule)
	if err != nil {
		return nil, wrongCron(w.Schedule)
	}
	schedule, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, errNotCron
	}
	if schedule.Location, err = time.LoadLocation(w.TimeZone); err != nil {
		return nil, err
	}
	// The parser searches five years ahead; this start includes a 29 February.
	if schedule.Next(time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, errNever
	}
	return schedule, nil
}

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
