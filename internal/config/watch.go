package config

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// quiet is how long the directory must be still before the file is read:
	// one save is several events.
	quiet = 30 * time.Millisecond
	// patience bounds the wait for quiet in a busy directory.
	patience = 10 * quiet
	// recheck is how often the file is read even though nothing was heard:
	// some file systems report nothing, and events can be lost.
	recheck = time.Minute
)

// Watch calls onChange after each change of the content of the file at path,
// until ctx ends; then it returns nil. A change since the Config of that
// revision was read is reported at once.
//
// The file's directory is watched, so that a file that is replaced is seen as
// well as one that is written to, and so is a mounted ConfigMap, of which only
// a symbolic link changes. While the file is absent nothing is reported.
// onChange is called from Watch's goroutine, and what happens meanwhile is
// seen after it returns. An error means that the directory cannot be watched.
func Watch(ctx context.Context, path, revision string, onChange func()) error {
	w := watcher{path: path, known: revision, recheck: recheck, onChange: onChange, checked: func() {}}
	return w.run(ctx)
}

type watcher struct {
	path     string
	known    string
	recheck  time.Duration
	onChange func()
	// checked is called after the file was compared with what is known.
	checked func()
}

func (w *watcher) run(ctx context.Context) error {
	directory := filepath.Dir(w.path)
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch %s: %w", directory, err)
	}
	defer func() { _ = events.Close() }()
	if err := events.Add(directory); err != nil {
		return fmt.Errorf("watch %s: %w", directory, err)
	}
	w.check()

	ticker := time.NewTicker(w.recheck)
	defer ticker.Stop()
	settle := settler{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-events.Events:
			settle.disturb()
		case <-events.Errors: //nolint:errcheck // events were lost; the file itself says what is true
			settle.disturb()
		case <-settle.done():
			settle = settler{}
			w.check()
		case <-ticker.C:
			// The directory may have been replaced, which ends its watch. If
			// it is gone now, the next tick tries again.
			_ = events.Add(directory)
			w.check()
		}
	}
}

func (w *watcher) check() {
	defer w.checked()
	current, err := currentRevision(w.path)
	if err != nil || current == w.known {
		return
	}
	w.known = current
	w.onChange()
}

func currentRevision(path string) (string, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	return revision(raw), nil
}

// settler waits for quiet, but never longer than patience.
type settler struct {
	timer *time.Timer
	since time.Time
}

func (s *settler) disturb() {
	if s.timer == nil {
		s.since = time.Now()
		s.timer = time.NewTimer(quiet)
		return
	}
	s.timer.Reset(min(quiet, patience-time.Since(s.since)))
}

func (s *settler) done() <-chan time.Time {
	if s.timer == nil {
		return nil
	}
	return s.timer.C
}
