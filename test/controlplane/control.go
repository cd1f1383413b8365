package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The control socket is a Unix socket that takes one line per connection, "VERB NAME", and
// answers with one paragraph: "ok", or an error.

// listenControl opens the socket in dir. It fails if another up already listens there.
func listenControl(dir string) (net.Listener, error) {
	path := controlPath(dir)
	if connection, err := net.Dial("unix", path); err == nil {
		connection.Close()
		return nil, fmt.Errorf("--dir: another set of control planes runs in %s; stop it, or use another directory", dir)
	}
	if err := os.RemoveAll(path); err != nil {
		return nil, err
	}
	// Unix limits the path of a socket to about a hundred bytes.
	if len(path) > 100 {
		return nil, fmt.Errorf("--dir: %s is too long for the name of a socket; use a path of at most %d characters", dir, 100-len("/control"))
	}
	return net.Listen("unix", path)
}

func controlPath(dir string) string { return filepath.Join(dir, "control") }

// serveControl executes commands until the listener is closed. Commands in progress are
// cancelled when ctx is done.
func serveControl(ctx context.Context, listener net.Listener, s *set, timeout time.Duration) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer connection.Close()
			line, err := bufio.NewReader(connection).ReadString('\n')
			if err != nil {
				return
			}
			answer := "ok"
			if err := s.obey(ctx, strings.Fields(line), timeout); err != nil {
				answer = err.Error()
			}
			fmt.Fprintln(connection, answer)
		}()
	}
}

// obey executes one command for one cluster, and returns when it is done.
func (s *set) obey(ctx context.Context, words []string, timeout time.Duration) error {
	if len(words) != 2 {
		return fmt.Errorf("want a verb and a cluster, got %q", words)
	}
	c, err := s.cluster(words[1])
	if err != nil {
		return err
	}
	switch words[0] {
	case "start":
		return c.start(ctx, timeout)
	case "stop":
		c.stop()
	case "pause":
		c.suspend()
	case "resume":
		c.resume()
	default:
		return fmt.Errorf("no verb %q; there are start, stop, pause and resume", words[0])
	}
	return nil
}

func (s *set) cluster(name string) (*cluster, error) {
	var names []string
	for _, c := range s.clusters {
		if c.name == name {
			return c, nil
		}
		names = append(names, c.name)
	}
	return nil, fmt.Errorf("no cluster %q; there are %s", name, strings.Join(names, ", "))
}

// runCtl sends a command to the set in a directory, and waits for the result.
func runCtl(args []string) error {
	flags := flag.NewFlagSet("controlplane ctl --dir DIR start|stop|pause|resume NAME", flag.ContinueOnError)
	dir := flags.String("dir", "", "directory of a running set (required)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *dir == "" {
		return errors.New("--dir: required; name the directory that was given to up")
	}
	return tell(*dir, strings.Join(flags.Args(), " "))
}

func tell(dir, order string) error {
	connection, err := net.Dial("unix", controlPath(dir))
	if err != nil {
		return fmt.Errorf("no set of control planes answers in %s: %w", dir, err)
	}
	defer connection.Close()
	if _, err := fmt.Fprintln(connection, order); err != nil {
		return err
	}
	answer, err := io.ReadAll(connection)
	if err != nil {
		return err
	}
	if text := strings.TrimSpace(string(answer)); text != "ok" {
		return fmt.Errorf("%s: %s", order, text)
	}
	return nil
}
