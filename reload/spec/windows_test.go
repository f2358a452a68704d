package spec_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/headwater-k8s/headwater/reload/spec"
)

func window(schedule string, duration time.Duration, zone string) spec.Window {
	return spec.Window{Schedule: schedule, Duration: metav1.Duration{Duration: duration}, TimeZone: zone}
}

func TestWhenTheNextWindowOpens(t *testing.T) {
	saturday := window("0 2 * * 6", 4*time.Hour, "UTC")
	tests := map[string]struct {
		windows   []spec.Window
		now, next string
	}{
		"no windows are always open":          {nil, "2026-01-02T03:04:05Z", ""},
		"before the only one":                 {[]spec.Window{saturday}, "2026-01-02T03:04:05Z", "2026-01-03T02:00:00Z"},
		"a moment before":                     {[]spec.Window{saturday}, "2026-01-03T01:59:59Z", "2026-01-03T02:00:00Z"},
		"as it opens":                         {[]spec.Window{saturday}, "2026-01-03T02:00:00Z", ""},
		"inside":                              {[]spec.Window{saturday}, "2026-01-03T05:59:59Z", ""},
		"as it closes":                        {[]spec.Window{saturday}, "2026-01-03T06:00:00Z", "2026-01-10T02:00:00Z"},
		"the first of two":                    {[]spec.Window{saturday, window("30 12 * * *", time.Hour, "UTC")}, "2026-01-02T13:30:00Z", "2026-01-03T02:00:00Z"},
		"inside of the second of two":         {[]spec.Window{saturday, window("30 12 * * *", time.Hour, "UTC")}, "2026-01-02T13:29:00Z", ""},
		"a window across midnight":            {[]spec.Window{window("0 23 * * 5", 2*time.Hour, "UTC")}, "2026-01-03T00:30:00Z", ""},
		"windows that overlap themselves":     {[]spec.Window{window("0 * * * *", 90*time.Minute, "UTC")}, "2026-01-03T00:45:00Z", ""},
		"by the clock of its time zone":       {[]spec.Window{window("0 2 * * *", time.Hour, "Europe/Berlin")}, "2026-01-02T00:59:00Z", "2026-01-02T01:00:00Z"},
		"and that in summer":                  {[]spec.Window{window("0 2 * * *", time.Hour, "Europe/Berlin")}, "2026-07-01T23:00:00Z", "2026-07-02T00:00:00Z"},
		"a day on which its hour is left out": {[]spec.Window{window("30 2 * * *", time.Hour, "Europe/Berlin")}, "2026-03-29T00:59:00Z", "2026-03-30T00:30:00Z"},
		"a day that comes every four years":   {[]spec.Window{window("0 0 29 2 *", time.Hour, "UTC")}, "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			next := withDefaults(spec.Settings{Windows: test.windows}).Compile().OpenWindows.OpensNext(at(t, test.now))
			if test.next == "" {
				require.Zero(t, next)
				return
			}
			require.Equal(t, at(t, test.next), next)
		})
	}
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	return parsed
}

func TestWindowsThatCannotBe(t *testing.T) {
	tests := map[string]struct {
		window spec.Window
		field  string
		want   string
	}{
		"not cron":                 {window("weekly", time.Hour, "UTC"), "schedule", "five fields"},
		"seconds":                  {window("0 0 2 * * 6", time.Hour, "UTC"), "schedule", "five fields"},
		"no schedule":              {window("", time.Hour, "UTC"), "schedule", "five fields"},
		"an interval":              {window("@every 1h", time.Hour, "UTC"), "schedule", "five fields"},
		"a zone in the schedule":   {window("CRON_TZ=UTC 0 2 * * *", time.Hour, "UTC"), "schedule", "five fields"},
		"a day that there is not":  {window("0 0 30 2 *", time.Hour, "UTC"), "schedule", "never comes"},
		"a zone that there is not": {window("0 2 * * *", time.Hour, "Europe/Bärlin"), "timeZone", "IANA"},
		"the machine's own zone":   {window("0 2 * * *", time.Hour, "Local"), "timeZone", "IANA"},
		"no time":                  {window("0 2 * * *", 0, "UTC"), "duration", "between 1m0s"},
		"longer than a week":       {window("0 2 * * *", 200*time.Hour, "UTC"), "duration", "168h0m0s"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			errs := withDefaults(spec.Settings{Windows: []spec.Window{test.window}}).Validate(field.NewPath("w"))
			require.Len(t, errs, 1)
			require.Equal(t, "w.windows[0]."+test.field, errs[0].Field)
			require.Contains(t, errs[0].Detail, test.want)
		})
	}
	require.Empty(t, withDefaults(spec.Settings{Windows: []spec.Window{window("@daily", time.Hour, "America/New_York")}}).Validate(field.NewPath("w")))
}

func TestSeveralWindowsMustBeOpenTogether(t *testing.T) {
	compiled := func(text string) spec.Windows {
		windows, err := spec.ParseWindows(text)
		require.NoError(t, err)
		return windows
	}
	nights, saturdays := compiled(`[{"schedule": "0 2 * * *", "duration": "2h"}]`), compiled(`[{"schedule": "0 3 * * 6", "duration": "4h"}]`)
	for now, want := range map[string]string{
		"2026-01-01T00:00:00Z": "2026-01-03T03:00:00Z", "2026-01-03T02:30:00Z": "2026-01-03T03:00:00Z", "2026-01-03T05:00:00Z": "2026-01-10T03:00:00Z",
	} {
		require.Equal(t, at(t, want), spec.AllOpen([]spec.Windows{nil, nights, saturdays}, at(t, now)), now)
	}
	require.Zero(t, spec.AllOpen([]spec.Windows{nights, nil, saturdays}, at(t, "2026-01-03T03:30:00Z")))
	require.Zero(t, spec.AllOpen(nil, at(t, "2026-01-01T00:00:00Z")))
	never := compiled(`[{"schedule": "0 12 * * *", "duration": "1h"}]`)
	require.NotZero(t, spec.AllOpen([]spec.Windows{nights, never}, at(t, "2026-01-01T00:00:00Z")), "they are never open together")
}

func TestWindowsOfAnAnnotationThatCannotBe(t *testing.T) {
	for text, problem := range map[string]string{
		"":   "write a list of 1 to 10 windows",
		"[]": "write a list of 1 to 10 windows",
		`[{"schedule": "0 2 * * 6", "duration": "4h", "zone": "UTC"}]`:            "write a list of 1 to 10 windows",
		`[{"schedule": "0 2 * * 6", "duration": "4h"}] []`:                        "write a list of 1 to 10 windows",
		`[{"schedule": "0 2 * * 6", "duration": "4s"}]`:                           "windows[0].duration",
		`[{"schedule": "0 2 * *", "duration": "4h"}]`:                             "windows[0].schedule",
		"[" + strings.Repeat(`{"schedule": "0 2 * * 6", "duration": "4h"},`, 100): "write a list of 1 to 10 windows",
	} {
		_, err := spec.ParseWindows(text)
		require.ErrorContains(t, err, problem, text)
	}
}
