package mark

import "time"

// FormatTime formats a time as the value of an annotation: RFC 3339, in UTC,
// to the millisecond.
func FormatTime(at time.Time) string {
	return at.UTC().Truncate(time.Millisecond).Format(time.RFC3339Nano)
}

// ParseTime is the inverse of FormatTime. What it cannot read is the zero
// time, as if there were no annotation.
func ParseTime(text string) time.Time {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return at
}
