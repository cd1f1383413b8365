package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// A process is one running program with a log file.
type process struct {
	name     string // for messages: "member-1 kube-apiserver"
	log      string
	logStart int64 // offset in the log at which this run begins
	cmd      *exec.Cmd
	done     chan struct{} // closed when it has ended
	err      error         // exit error; valid after done
	wanted   atomic.Bool   // whether stop was called
}

// A launcher starts processes that end with this process.
//
// On Linux the kernel kills a child when the thread that started it ends (Pdeathsig), so all
// children are started from one goroutine that keeps its thread as long as the process lives.
type launcher struct {
	starts chan func()
}

func newLauncher() *launcher {
	l := &launcher{starts: make(chan func())}
	go func() {
		runtime.LockOSThread()
		for start := range l.starts {
			start()
		}
	}()
	return l
}

// start runs argv with its output appended to the file log, and returns at once.
func (l *launcher) start(name, log string, argv []string) (*process, error) {
	if err := os.MkdirAll(filepath.Dir(log), 0o700); err != nil {
		return nil, err
	}
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	info, err := out.Stat()
	if err != nil {
		return nil, err
	}

	p := &process{name: name, log: log, logStart: info.Size(), done: make(chan struct{})}
	p.cmd = exec.Command(argv[0], argv[1:]...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.Env = append(os.Environ(), parentVariable+"="+strconv.Itoa(os.Getpid()))
	p.cmd.SysProcAttr = processAttributes()

	started := make(chan error)
	l.starts <- func() { started <- p.cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// stop sends SIGTERM to the process, SIGKILL after grace, and returns when it has ended.
func (p *process) stop(grace time.Duration) {
	p.wanted.Store(true)
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(grace):
		p.signal(syscall.SIGKILL)
		<-p.done
	}
}

// signal ignores the error: the process may have ended already.
func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// watch reports an unexpected end.
func (p *process) watch(lost func(error)) {
	<-p.done
	if !p.wanted.Load() {
		lost(p.failure())
	}
}

// failure describes an unexpected end, with the last lines of the log. It must not be called
// before done is closed.
func (p *process) failure() error {
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	return fmt.Errorf("%s ended: %s; %s", p.name, how, p.tail())
}

// tail returns the end of what this run has logged.
func (p *process) tail() string {
	const lines = 20
	data, err := os.ReadFile(p.log)
	if err != nil {
		return "its log cannot be read: " + err.Error()
	}
	text := strings.TrimSpace(string(data[min(p.logStart, int64(len(data))):]))
	if text == "" {
		return "its log " + p.log + " is empty"
	}
	all := strings.Split(text, "\n")
	last := all[max(0, len(all)-lines):]
	return "the end of " + p.log + ":\n    " + strings.Join(last, "\n    ")
}
