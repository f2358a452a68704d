package spec

import (
	"errors"
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
