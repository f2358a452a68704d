//go:build unix

package flock

import (
	"errors"
	"os"
	"syscall"
)

func tryLock(file *os.File, how mode) (bool, error) {
	operation := map[mode]int{exclusive: syscall.LOCK_EX, shared: syscall.LOCK_SH}[how]
	err := syscall.Flock(int(file.Fd()), operation|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}
