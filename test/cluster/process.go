package cluster

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

// process is one running component. It ends with us, however we end.
type process struct {
	name    string
	logFile string
	cmd     *exec.Cmd
	asked   atomic.Bool
	done    chan struct{}
	err     error // how it ended; to be read after done
}

// startProcess calls ended, once, if the process ends without having been asked to.
func startProcess(binary, name, dir string, args []string, ended func()) (*process, error) {
	p := &process{name: name, logFile: logPath(dir, name), done: make(chan struct{})}
	log, err := os.OpenFile(p.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", name, err)
	}
	defer func() { _ = log.Close() }()
	p.cmd = exec.Command(binary, args...)
	p.cmd.Dir = dir
	// Nothing of the caller's environment: etcd, for one, takes settings from it.
	p.cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = endWithParent()
	started := make(chan error, 1)
	go p.run(started, ended)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// run stays on one thread of the operating system from start to end, because
// the kernel ends the child together with the thread that started it.
func (p *process) run(started chan<- error, ended func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	started <- nil
	p.err = p.cmd.Wait()
	close(p.done)
	if !p.asked.Load() {
		ended()
	}
}

// stop asks the process to end, makes it end after grace, and waits for it.
func (p *process) stop(grace time.Duration) {
	p.asked.Store(true)
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		p.kill()
	}
}

func (p *process) kill() {
	p.asked.Store(true)
	_ = p.cmd.Process.Kill()
	<-p.done
}

// failure is nil while the process runs, and when it was asked to end.
func (p *process) failure() error {
	select {
	case <-p.done:
	default:
		return nil
	}
	if p.asked.Load() {
		return nil
	}
	content, err := os.ReadFile(p.logFile)
	if err != nil {
		return fmt.Errorf("%s ended (%s), and its log cannot be read: %w", p.name, p.state(), err)
	}
	err = fmt.Errorf("%s ended (%s); its log is %s, which says last:\n%s",
		p.name, p.state(), p.logFile, lastLines(content))
	if bytes.Contains(content, []byte("address already in use")) {
		return &portTakenError{err}
	}
	return err
}

func (p *process) state() string {
	if p.err != nil {
		return p.err.Error()
	}
	return p.cmd.ProcessState.String()
}

// portTakenError says that another process was faster to listen on a port that was free before.
type portTakenError struct{ error }

func (e *portTakenError) Unwrap() error { return e.error }

func lastLines(content []byte) string {
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}
