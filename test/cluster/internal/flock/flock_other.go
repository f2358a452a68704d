//go:build !unix

package flock

import (
	"errors"
	"os"
)

func tryLock(*os.File, mode) (bool, error) {
	return false, errors.ErrUnsupported
}
