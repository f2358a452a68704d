// Package flock is a lock between processes that ends with its holder, however
// that ends.
package flock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const pollInterval = 50 * time.Millisecond

type mode int

const (
	exclusive mode = iota
	shared
)

// Lock is held until Release, or until the process ends.
type Lock struct{ file *os.File }

// Held says whether somebody holds the lock on the file at path. Asking is not
// holding: two who ask do not see each other.
func Held(path string) (bool, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("open the lock: %w", err)
	}
	defer func() { _ = file.Close() }()
	free, err := tryLock(file, shared)
	if err != nil {
		return false, fmt.Errorf("ask for the lock %s: %w", path, err)
	}
	return !free, nil
}

// try returns nil, nil when somebody else holds the lock.
func try(path string) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("make the folder of the lock: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	locked, err := tryLock(file, exclusive)
	if err != nil || !locked {
		_ = file.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if !locked {
		return nil, nil
	}
	return &Lock{file: file}, nil
}

// Acquire takes the lock on the file at path, which it creates, and waits for it while ctx allows. It calls busy, once,
// when there is somebody to wait for.
func Acquire(ctx context.Context, path string, busy func()) (*Lock, error) {
	var lock *Lock
	waiting := false
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(context.Context) (bool, error) {
		var err error
		lock, err = try(path)
		if lock == nil && err == nil && !waiting {
			waiting = true
			busy()
		}
		return lock != nil, err
	})
	if err != nil {
		return nil, fmt.Errorf("wait for the lock %s: %w", path, err)
	}
	return lock, nil
}

// Write replaces what the locked file says. The lock itself does not need it.
func (l *Lock) Write(content string) error {
	if err := l.file.Truncate(0); err != nil {
		return fmt.Errorf("truncate %s: %w", l.file.Name(), err)
	}
	if _, err := l.file.WriteAt([]byte(content), 0); err != nil {
		return fmt.Errorf("write %s: %w", l.file.Name(), err)
	}
	return nil
}

// Release gives the lock back. The file stays: removing it would let two holders in.
func (l *Lock) Release() error {
	return l.file.Close()
}
