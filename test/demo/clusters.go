package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// members are the names of the clusters, as in examples/quickstart.
var members = []string{"member-1", "member-2", "member-3"}

// clusters are the running control planes: a process that ends with the demo, and all of its
// child processes with it.
type clusters struct {
	command *exec.Cmd
	output  lines
	ended   chan struct{}
	err     error // valid after ended
	dir     string
}

func (d *demo) startClusters(ctx context.Context) (string, error) {
	c := &clusters{ended: make(chan struct{}), dir: d.file("clusters")}
	c.output.ready = make(chan struct{})
	c.command = exec.Command(d.controlPlane, "up", "--dir="+c.dir, "--names="+strings.Join(members, ","),
		"--controllers=all", "--exit-with-parent="+strconv.Itoa(os.Getpid()))
	c.command.Stdout, c.command.Stderr = &c.output, &c.output
	// Ctrl-C in the terminal must not reach it: the daemon is stopped first.
	c.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.command.Start(); err != nil {
		return "", err
	}
	d.clusters = c
	go func() {
		c.err = c.command.Wait()
		close(c.ended)
	}()
	select {
	case <-c.output.ready:
	case <-c.ended:
		return "", c.failure()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	for _, name := range members {
		m, err := openMember(name, d.kubeconfigs())
		if err != nil {
			return "", err
		}
		go m.playKubelet(ctx)
	}
	return strings.Join(members, ", "), nil
}

// kubeconfigs is the directory with one kubeconfig for each cluster, kubeconfig
// the file with all.
func (d *demo) kubeconfigs() string { return d.file("clusters", "kubeconfigs") }
func (d *demo) kubeconfig() string  { return d.file("clusters", "kubeconfig") }

// failure returns the last output of the control planes after they ended.
func (c *clusters) failure() error {
	return fmt.Errorf("%v\n%s", c.err, strings.TrimSpace(c.output.String()))
}

func (c *clusters) stop() error {
	// An error means that the process has already ended, as intended.
	_ = c.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.ended:
		return nil
	case <-time.After(20 * time.Second):
		_ = c.command.Process.Kill()
		<-c.ended
		return errors.New("the clusters did not end when asked to, and were killed")
	}
}

// lines collects the output of a process, and notices when it is ready.
type lines struct {
	ready chan struct{}

	mu   sync.Mutex
	text bytes.Buffer
	once sync.Once
}

// Write never fails.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	if strings.Contains("\n"+l.text.String(), "\nready: ") {
		l.once.Do(func() { close(l.ready) })
	}
	return len(p), nil
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
