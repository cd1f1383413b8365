// Package process runs programs that end with the process that started them, even if that is
// killed with SIGKILL.
//
// A shell between the two reads from a pipe. When the parent ends, the pipe is closed, and the shell
// stops the program with SIGTERM. This works on every Unix and needs nothing but sh.
package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// guard runs a program, and sends it SIGTERM at the end of the shell's standard input.
const guard = `exec 3<&0
"$@" 3<&- </dev/null &
program=$!
(cat <&3 >/dev/null; kill "$program") 2>/dev/null &
wait "$program"`

// A Process is a running program in its own process group, so that signals from a terminal do
// not reach it.
type Process struct {
	command  *exec.Cmd
	lifeline io.Closer
	ended    chan struct{}
	err      error // how it ended; valid after ended
}

// Start runs a program with its output, both kinds, appended to a file. The
// caller may close the file afterwards.
func Start(output *os.File, argv ...string) (*Process, error) {
	command := exec.Command("sh", append([]string{"-c", guard, "sh"}, argv...)...)
	command.Stdout, command.Stderr = output, output
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	lifeline, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	p := &Process{command: command, lifeline: lifeline, ended: make(chan struct{})}
	go func() {
		p.err = command.Wait()
		close(p.ended)
	}()
	return p, nil
}

// Ended is closed when the program has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Err returns how the program ended: nil for exit status 0. It must not be called before Ended
// is closed.
func (p *Process) Err() error { return p.err }

// Stop sends SIGTERM, and SIGKILL after some seconds, and returns how the program ended. It may
// be called more than once.
func (p *Process) Stop() error {
	p.lifeline.Close()
	select {
	case <-p.ended:
		return p.err
	case <-time.After(10 * time.Second):
		return errors.Join(errors.New("it did not end within ten seconds of SIGTERM"), p.Kill())
	}
}

// Kill sends SIGKILL and returns when the program has ended. The error is how it ended.
func (p *Process) Kill() error {
	// The group is the shell and its children. An error means that all of them have ended.
	_ = syscall.Kill(-p.command.Process.Pid, syscall.SIGKILL)
	<-p.ended
	return p.err
}
