//go:build !linux

package process

import "syscall"

// attributes can do nothing here: only Linux ends a child with its parent, and
// has namespaces.
func attributes(bool) *syscall.SysProcAttr {
	return nil
}
