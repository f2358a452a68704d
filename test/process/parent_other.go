//go:build !linux

package process

import "syscall"

// endWithParent can do nothing here: only Linux ends a child with its parent.
func endWithParent() *syscall.SysProcAttr {
	return nil
}
