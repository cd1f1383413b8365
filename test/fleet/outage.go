package fleet

import (
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
)

// Stop makes a cluster refuse connections: its processes end. It returns when
// they are gone.
func (f *Fleet) Stop(name string) error { return f.tell("stop", name) }

// Start brings a stopped cluster back, on the same port with the same data. It
// returns when the cluster is ready.
func (f *Fleet) Start(name string) error { return f.tell("start", name) }

// Pause makes a cluster accept connections and never answer.
func (f *Fleet) Pause(name string) error { return f.tell("pause", name) }

// Resume ends a Pause.
func (f *Fleet) Resume(name string) error { return f.tell("resume", name) }

func (f *Fleet) tell(verb, name string) error {
	connection, err := net.Dial("unix", filepath.Join(f.dir, "control"))
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, name, err)
	}
	defer connection.Close()
	if _, err := fmt.Fprintln(connection, verb, name); err != nil {
		return fmt.Errorf("%s %s: %w", verb, name, err)
	}
	answer, err := io.ReadAll(connection)
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, name, err)
	}
	if text := strings.TrimSpace(string(answer)); text != "ok" {
		return fmt.Errorf("%s %s: %s", verb, name, text)
	}
	return nil
}
