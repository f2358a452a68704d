// Package process runs a program as a child that never outlives its parent.
package process

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const tailLines = 12

// Spec says what to run.
type Spec struct {
	Name, Binary string
	Args         []string
	// Env is the whole environment: nothing of the caller's is passed on.
	Env []string
	Dir string
	// LogFile gets what the program prints, after what is there already.
	LogFile string
	// Alone gives the program process ids and mounts of its own, so that all it
	// starts and mounts ends with it. It is process 1 there, which must wait for
	// orphans. It takes Linux, and root.
	Alone bool
	// Ended is called, once, if the process ends without having been asked to.
	Ended func()
}

// Process is a running child. It ends with us, however we end.
type Process struct {
	spec  Spec
	cmd   *exec.Cmd
	asked atomic.Bool
	done  chan struct{}
	err   error // how it ended; to be read after done
}

// Start starts the program.
func Start(spec Spec) (*Process, error) {
	p := &Process{spec: spec, done: make(chan struct{})}
	log, err := os.OpenFile(spec.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", spec.Name, err)
	}
	defer func() { _ = log.Close() }()
	p.cmd = exec.Command(spec.Binary, spec.Args...)
	p.cmd.Dir = spec.Dir
	p.cmd.Env = append([]string{}, spec.Env...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = attributes(spec.Alone)
	started := make(chan error, 1)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	return p, nil
}

// run stays on one thread of the operating system from start to end, because
// the kernel ends the child together with the thread that started it.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	started <- nil
	p.err = p.cmd.Wait()
	close(p.done)
	if !p.asked.Load() && p.spec.Ended != nil {
		p.spec.Ended()
	}
}

// PID is the child's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// ExitCode is the code of a process that has ended; -1 while it runs or when a
// signal ended it.
func (p *Process) ExitCode() int {
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	default:
		return -1
	}
}

// Interrupt asks the process to end, as Ctrl-C does, and does not wait.
func (p *Process) Interrupt() error {
	p.asked.Store(true)
	return p.cmd.Process.Signal(syscall.SIGINT)
}

// Stop asks the process to end, makes it end after grace, and waits for it.
func (p *Process) Stop(grace time.Duration) {
	p.asked.Store(true)
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		p.Kill()
	}
}

// Kill ends the process with SIGKILL and waits for it.
func (p *Process) Kill() {
	p.asked.Store(true)
	_ = p.cmd.Process.Kill()
	<-p.done
}

// Pause stops the process where it is, without its knowing, until Resume.
func (p *Process) Pause() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume has a paused process go on.
func (p *Process) Resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// Failure is nil while the process runs, and when it was asked to end;
// otherwise it quotes the end of its log.
func (p *Process) Failure() error {
	select {
	case <-p.done:
	default:
		return nil
	}
	if p.asked.Load() {
		return nil
	}
	content, err := os.ReadFile(p.spec.LogFile)
	if err != nil {
		return fmt.Errorf("%s ended (%s), and its log cannot be read: %w", p.spec.Name, p.state(), err)
	}
	err = fmt.Errorf("%s ended (%s); its log is %s, which says last:\n%s",
		p.spec.Name, p.state(), p.spec.LogFile, LastLines(content))
	if bytes.Contains(content, []byte("address already in use")) {
		return &PortTakenError{err}
	}
	return err
}

func (p *Process) state() string {
	if p.err != nil {
		return p.err.Error()
	}
	return p.cmd.ProcessState.String()
}

// PortTakenError says that another process was faster to listen on a port that
// was free before.
type PortTakenError struct{ error }

// Unwrap returns the failure itself.
func (e *PortTakenError) Unwrap() error { return e.error }

// LastLines is the end of a log.
func LastLines(content []byte) string {
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}
