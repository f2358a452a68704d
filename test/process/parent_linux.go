package process

import "syscall"

// attributes make the child end with us. They also keep it out of our process
// group: an interrupt at the terminal is for us, and we stop the components in
// their order.
func attributes(alone bool) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if alone {
		attributes.Cloneflags = syscall.CLONE_NEWPID
		attributes.Unshareflags = syscall.CLONE_NEWNS // which also keeps mounts from spreading
	}
	return attributes
}
