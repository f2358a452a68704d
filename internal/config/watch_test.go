package config

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

const deadline = time.Minute

// watched is a file that holds "one" at first, and what its watcher says.
type watched struct {
	t       *testing.T
	path    string
	changes chan string
	checks  chan struct{}
}

func watch(t *testing.T, path string, recheck time.Duration) *watched {
	t.Helper()
	return watchWith(t, path, watcher{recheck: recheck, recheckDeaf: time.Hour, listen: listen, deaf: func(err error) { require.NoError(t, err) }})
}

func watchWith(t *testing.T, path string, under watcher) *watched {
	t.Helper()
	leaks := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, leaks) })
	w := &watched{t: t, path: path, changes: make(chan string, 100), checks: make(chan struct{}, 100)}
	under.path, under.known, under.onChange, under.checked = path, RevisionOf([]byte("one")), w.changed, w.checked
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		under.run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		receive(t, ended)
	})
	receive(t, w.checks)
	return w
}

func (w *watched) changed() {
	if raw, err := os.ReadFile(w.path); err == nil {
		w.changes <- string(raw)
	}
}

func (w *watched) checked() {
	select {
	case w.checks <- struct{}{}:
	default:
	}
}

// mount lays out a directory as the kubelet does.
func mount(t *testing.T, content string) (path string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "..1"), 0o700))
	write(t, filepath.Join(dir, "..1", "headwater.yaml"), content)
	require.NoError(t, os.Symlink("..1", filepath.Join(dir, "..data")))
	path = filepath.Join(dir, "headwater.yaml")
	require.NoError(t, os.Symlink(filepath.Join("..data", "headwater.yaml"), path))
	return path
}

func write(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

// replace renames a new file over path, as editors do.
func replace(t *testing.T, path, content string) {
	t.Helper()
	write(t, path+".tmp", content)
	require.NoError(t, os.Rename(path+".tmp", path))
}

// swap points ..data at a new directory, as the kubelet does.
func swap(t *testing.T, path, content string) {
	t.Helper()
	dir := filepath.Dir(path)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "..2"), 0o700))
	write(t, filepath.Join(dir, "..2", "headwater.yaml"), content)
	require.NoError(t, os.Symlink("..2", filepath.Join(dir, "..data_tmp")))
	require.NoError(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "..1")))
}

func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(deadline):
		require.FailNow(t, "nothing happened")
		panic("unreachable")
	}
}

// requireChange waits for content. A file may be seen half-written before.
func (w *watched) requireChange(content string) {
	w.t.Helper()
	for receive(w.t, w.changes) != content {
	}
}

func TestWatchSees(t *testing.T) {
	tests := map[string]func(t *testing.T, path, content string){
		"a file replaced by another": replace,
		"a ConfigMap's swap":         swap,
		"a file written in place": func(t *testing.T, path, content string) {
			replace(t, path, "no longer a link")
			write(t, path, content)
		},
		"a file that was absent for a moment": func(t *testing.T, path, content string) {
			require.NoError(t, os.Remove(path))
			write(t, path, content)
		},
	}
	for name, edit := range tests {
		t.Run(name, func(t *testing.T) {
			w := watch(t, mount(t, "one"), time.Hour)
			edit(t, w.path, "two")
			w.requireChange("two")
		})
	}
}

func TestWatchSeesOneEditAfterTheOther(t *testing.T) {
	w := watch(t, mount(t, "one"), time.Hour)
	for _, content := range []string{"two", "three", "two"} {
		replace(t, w.path, content)
		w.requireChange(content)
	}
}

func TestWatchIsSilentWhen(t *testing.T) {
	tests := map[string]func(t *testing.T, path string){
		"the content stays the same": func(t *testing.T, path string) { swap(t, path, "one") },
		"the file is absent":         func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) },
		"another file changes":       func(t *testing.T, path string) { write(t, path+".bak", "two") },
	}
	for name, edit := range tests {
		t.Run(name, func(t *testing.T) {
			w := watch(t, mount(t, "one"), time.Hour)
			edit(t, w.path)
			receive(t, w.checks)
			require.Empty(t, w.changes)
		})
	}
}

func TestWatchOutlivesItsDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config", "headwater.yaml")
	require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
	write(t, path, "one")
	w := watch(t, path, time.Millisecond)

	require.NoError(t, os.RemoveAll(filepath.Dir(path)))
	require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
	replace(t, path, "two")
	w.requireChange("two")
}

func TestWatchFromReportsWhatChangedBefore(t *testing.T) {
	path := mount(t, "two")
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	Watch(ctx, path, RevisionOf([]byte("one")), nil, func() {
		calls++
		cancel()
	}, func(err error) { require.NoError(t, err) })
	require.Equal(t, 1, calls)
}

func TestWatchEndsWithItsContext(t *testing.T) {
	leaks := goleak.IgnoreCurrent()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	unwanted := func() { require.Fail(t, "nothing has changed") }
	Watch(ctx, mount(t, "one"), RevisionOf([]byte("one")), nil, unwanted, func(err error) { require.NoError(t, err) })
	goleak.VerifyNone(t, leaks)
}

func TestADirectoryThatCannotBeWatchedIsReadUntilItCan(t *testing.T) {
	path := filepath.Join(t.TempDir(), "headwater.yaml")
	write(t, path, "one")
	var refused atomic.Bool
	refused.Store(true)
	heard, told := make(chan struct{}, 1), make(chan error, 1)
	w := watchWith(t, path, watcher{
		recheck: time.Hour, recheckDeaf: time.Millisecond, deaf: func(err error) { told <- err },
		listen: func(directory string) (*fsnotify.Watcher, error) {
			if refused.Load() {
				return nil, syscall.EMFILE
			}
			defer func() { heard <- struct{}{} }()
			return listen(directory)
		},
	})
	require.ErrorIs(t, receive(t, told), syscall.EMFILE)
	replace(t, path, "two")
	w.requireChange("two")
	refused.Store(false)
	receive(t, heard)
	replace(t, path, "three")
	w.requireChange("three")
	require.Empty(t, told, "once")
}

func TestADirectoryThatIsNotThereIsNotWatched(t *testing.T) {
	leaks := goleak.IgnoreCurrent()
	_, err := listen(filepath.Join(t.TempDir(), "missing"))
	require.ErrorIs(t, err, os.ErrNotExist)
	goleak.VerifyNone(t, leaks)
}

func TestSettlerWaitsForQuietButNotForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var once settler
		once.disturb()
		<-once.done()
		require.Equal(t, quiet, time.Since(start))

		start = time.Now()
		var busy settler
		busy.disturb()
		for settled := false; !settled; {
			select {
			case <-busy.done():
				settled = true
			case <-time.After(quiet / 2):
				busy.disturb()
			}
		}
		require.InDelta(t, patience, time.Since(start), float64(quiet))
	})
}
