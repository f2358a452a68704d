package config

import (
	"context"
	"fmt"
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
	// recheckDeaf is how often where nothing can be heard.
	recheckDeaf = 10 * time.Second
)

// Watch calls onChange after each change of the content of the file at path, and
// whenever again is received from, until ctx ends. A change since the file had that
// revision is reported at once.
//
// The file's directory is watched, so that a file that is replaced is seen as
// well as one that is written to, and so is a mounted ConfigMap, of which only
// a symbolic link changes. While the file is absent nothing is reported. Where
// the directory cannot be watched, such as on a node that has run out of
// watches, deaf is told why, and the file is read every ten seconds until it
// can. onChange is called from Watch's goroutine, and what happens meanwhile is
// seen after it returns.
func Watch(ctx context.Context, path, revision string, again <-chan struct{}, onChange func(), deaf func(error)) {
	w := watcher{path: path, again: again, known: revision, recheck: recheck, recheckDeaf: recheckDeaf, listen: listen, onChange: onChange, deaf: deaf, checked: func() {}}
	w.run(ctx)
}

type watcher struct {
	path  string
	known string
	again <-chan struct{}
	// recheck and recheckDeaf are how often the file is read in any case.
	recheck, recheckDeaf time.Duration
	listen               func(directory string) (*fsnotify.Watcher, error)
	onChange             func()
	deaf                 func(error)
	// checked is called after the file was compared with what is known.
	checked func()
}

func listen(directory string) (*fsnotify.Watcher, error) {
	heard, err := fsnotify.NewWatcher()
	if err == nil {
		err = heard.Add(directory)
	}
	if err != nil {
		if heard != nil {
			_ = heard.Close()
		}
		return nil, fmt.Errorf("watch %s: %w", directory, err)
	}
	return heard, nil
}

func (w *watcher) run(ctx context.Context) {
	directory := filepath.Dir(w.path)
	heard, err := w.listen(directory) // nil while nothing can be heard
	defer func() {
		if heard != nil {
			_ = heard.Close()
		}
	}()
	ticker := time.NewTicker(w.recheck)
	defer ticker.Stop()
	if err != nil {
		w.deaf(err)
		ticker.Reset(w.recheckDeaf)
	}
	w.check()
	settle := settler{}
	for {
		var events <-chan fsnotify.Event
		var lost <-chan error
		if heard != nil {
			events, lost = heard.Events, heard.Errors
		}
		select {
		case <-ctx.Done():
			return
		case <-events:
			settle.disturb()
		case <-lost: //nolint:errcheck // the file itself says what is true
			settle.disturb()
		case <-w.again:
			w.onChange()
		case <-settle.done():
			settle = settler{}
			w.check()
		case <-ticker.C:
			heard = w.listenAgain(heard, directory, ticker)
			w.check()
		}
	}
}

func (w *watcher) listenAgain(heard *fsnotify.Watcher, directory string, ticker *time.Ticker) *fsnotify.Watcher {
	if heard != nil {
		// The directory may have been replaced, which ends its watch. If it is gone now, the
		// next tick tries again.
		_ = heard.Add(directory)
		return heard
	}
	heard, err := w.listen(directory)
	if err == nil {
		ticker.Reset(w.recheck)
	}
	return heard
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
	raw, err := readFile(path)
	if err != nil {
		return "", err
	}
	return RevisionOf(raw), nil
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
