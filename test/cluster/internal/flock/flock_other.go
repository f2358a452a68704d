//go:build !unix

package flock

import (
	"errors"
	"os"
)

func tryLock(*os.File) (bool, error) {
	return false, errors.ErrUnsupported
}
