package mark

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Restarts are the times of Headwater's latest restarts of a workload, oldest first:
// the last one, regardless of its age, and those in the hour before it.
type Restarts []time.Time

const (
	// RestartsKept is how long before the last one a restart stays recorded.
	RestartsKept = time.Hour
	// maxRestarts bounds the record.
	maxRestarts = 60
)

// ParseRestarts reads the values of RestartedAt and RestartedBefore. What it
// cannot read counts as not there.
func ParseRestarts(at, before string) Restarts {
	last := ParseTime(at)
	if last.IsZero() {
		return nil
	}
	restarts := Restarts{last}
	for text := range strings.SplitSeq(before, ",") {
		seconds, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			continue
		}
		restarts = append(restarts, last.Add(-time.Duration(seconds)*time.Second))
	}
	return restarts.sorted()
}

// With is r and one restart more, the last. What is later was noted by a clock that
// was ahead, and does not count any more.
func (r Restarts) With(at time.Time) Restarts {
	kept := slices.DeleteFunc(slices.Clone(r.Since(at.Add(-RestartsKept))), func(noted time.Time) bool { return noted.After(at) })
	kept = kept[max(0, len(kept)-maxRestarts+1):]
	return append(kept, at)
}

// Last is the last of r; zero where there is none.
func (r Restarts) Last() time.Time {
	if len(r) == 0 {
		return time.Time{}
	}
	return r[len(r)-1]
}

// Since are those of r that came after that time.
func (r Restarts) Since(after time.Time) Restarts {
	for i, at := range r {
		if at.After(after) {
			return r[i:]
		}
	}
	return nil
}

// Format is the inverse of ParseRestarts. Each value is empty where there is
// nothing to say.
func (r Restarts) Format() (at, before string) {
	if len(r) == 0 {
		return "", ""
	}
	last := r[len(r)-1]
	var ago []string
	for i := len(r) - 2; i >= 0; i-- {
		ago = append(ago, strconv.Itoa(int(last.Sub(r[i]).Round(time.Second).Seconds())))
	}
	return FormatTime(last), strings.Join(ago, ",")
}

func (r Restarts) sorted() Restarts {
	slices.SortFunc(r, time.Time.Compare)
	return r
}
