package process

import "syscall"

// endWithParent also keeps the child out of our process group: an interrupt at
// the terminal is for us, and we stop the components in their order.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
