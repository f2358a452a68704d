package events

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// diary is an agenda with its own time, and what it had written of it.
type diary struct {
	*throttle

	now     time.Time
	dropped int
	written []string
}

func newDiary() *diary {
	d := &diary{now: time.Unix(1e9, 0)}
	d.throttle = newThrottle(func() { d.dropped++ })
	return d
}

func (d *diary) tell(about, note string) {
	event := Event{About: &corev1.ObjectReference{Name: about}, Reason: "CloneFailed", Note: note, at: d.now}
	d.write(d.add(event, d.now))
}

func (d *diary) pass(pause time.Duration) {
	d.now = d.now.Add(pause)
	for _, s := range d.due(d.now) {
		d.write(s)
	}
}

func (d *diary) write(s *series) {
	if s != nil {
		d.written = append(d.written, fmt.Sprintf("%s: %s x%d", s.About.Name, s.Note, s.count))
	}
}

func TestANewNoteIsWrittenAndARepeatCounted(t *testing.T) {
	d := newDiary()
	d.tell("a", "quota")
	d.tell("a", "policy")
	d.tell("b", "policy")
	d.tell("a", "policy")
	require.Equal(t, []string{"a: quota x1", "a: policy x1", "b: policy x1", "a: policy x2"}, d.written)

	for range 100 {
		d.tell("a", "policy")
	}
	require.Len(t, d.written, subjectBurst+1, "those about a, and one about b")
	d.written = nil
	d.pass(subjectInterval)
	require.Equal(t, []string{"a: policy x102"}, d.written)
	d.pass(time.Hour)
	require.Len(t, d.written, 1, "nothing new")
}

func TestOfANoteThatKeepsChangingOnlyTheLatestWaits(t *testing.T) {
	d := newDiary()
	for i := range 1000 {
		d.tell("a", fmt.Sprint("try ", i))
	}
	require.Len(t, d.written, subjectBurst)
	require.Equal(t, 1000-subjectBurst-1, d.dropped)
	d.tell("b", "other")
	require.Equal(t, "b: other x1", d.written[subjectBurst], "one thing delays no other")
	d.pass(subjectInterval)
	require.Equal(t, "a: try 999 x1", d.written[subjectBurst+1])
	d.pass(time.Hour)
	require.Len(t, d.written, subjectBurst+2)
}

func TestWhatWasDroppedIsNoRepeatLater(t *testing.T) {
	d := newDiary()
	for i := range subjectBurst {
		d.tell("a", fmt.Sprint("try ", i))
	}
	d.tell("a", "dropped")
	d.tell("a", "kept")
	d.tell("a", "kept")
	d.written = nil
	d.pass(subjectInterval)
	require.Equal(t, []string{"a: kept x2"}, d.written)
	d.pass(time.Hour)
	d.tell("a", "dropped")
	require.Equal(t, "a: dropped x1", d.written[1])
}
