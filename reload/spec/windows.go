package spec

import (
	"errors"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Windows are the times in which restarts may begin; none means always.
type Windows []openings

// openings are those of one Window.
type openings struct {
	schedule cron.Schedule
	stays    time.Duration
}

// OpensNext returns when the next window opens, in now's own location. Inside
// of a window, and where there are none, that is the zero time.
func (w Windows) OpensNext(now time.Time) time.Time {
	var next time.Time
	for _, window := range w {
		// The first opening that is not over.
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

// compileWindows prepares windows that were validated.
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
	// Local is what the machine that Headwater happens to run on has.
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

// parse reads the schedule in the window's time zone.
func (w Window) parse() (cron.Schedule, error) {
	// The parser would take a time zone and seconds between two openings, too.
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
	// It looks five years ahead; from here on that includes a 29 February.
	if schedule.Next(time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, errNever
	}
	return schedule, nil
}
