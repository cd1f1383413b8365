package process_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/test/process"
)

// A program that says who it is, and that it was asked to end.
const polite = `echo "$$"; trap 'echo asked; exit 0' TERM; while :; do sleep 0.01; done`

func TestMain(m *testing.M) {
	if path := os.Getenv("PROCESS_TEST_LOG"); path != "" {
		log, err := os.Create(path)
		if err == nil {
			_, err = process.Start(log, "sh", "-c", polite)
		}
		fmt.Println("started", err)
		time.Sleep(time.Minute) // until we are killed
		return
	}
	os.Exit(m.Run())
}

func logFile(t *testing.T) *os.File {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	return log
}

// said waits until a log begins with a line, and returns all of it.
func said(t *testing.T, path string) string {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), "\n") {
			return string(text)
		}
	}
	t.Fatalf("%s stays empty", path)
	return ""
}

func pid(t *testing.T, log string) int {
	t.Helper()
	line, _, _ := strings.Cut(said(t, log), "\n")
	n, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func gone(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return
		}
	}
	syscall.Kill(pid, syscall.SIGKILL)
	t.Errorf("process %d is still there", pid)
}

func TestStopSendsSIGTERMFirst(t *testing.T) {
	log := logFile(t)
	p, err := process.Start(log, "sh", "-c", polite)
	if err != nil {
		t.Fatal(err)
	}
	program := pid(t, log.Name())
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	gone(t, program)
	if text := said(t, log.Name()); !strings.HasSuffix(text, "asked\n") {
		t.Errorf("log is %q", text)
	}
	if err := p.Stop(); err != nil {
		t.Errorf("stopped again: %v", err)
	}
}

func TestKillSendsSIGKILL(t *testing.T) {
	log := logFile(t)
	p, err := process.Start(log, "sh", "-c", polite)
	if err != nil {
		t.Fatal(err)
	}
	program := pid(t, log.Name())
	if err := p.Kill(); err == nil {
		t.Error("killed, and ended well")
	}
	gone(t, program)
	if text := said(t, log.Name()); strings.Contains(text, "asked") {
		t.Errorf("log is %q", text)
	}
}

func TestExitStatusIsReported(t *testing.T) {
	p, err := process.Start(logFile(t), "sh", "-c", "exit 7")
	if err != nil {
		t.Fatal(err)
	}
	<-p.Ended()
	if err := p.Err(); err == nil || err.Error() != "exit status 7" {
		t.Errorf("ended with %v", err)
	}
}

// Whoever started a program may be killed without warning: the program ends.
func TestProgramEndsWithItsParent(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), "PROCESS_TEST_LOG="+log)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	program := pid(t, log)
	parent.Process.Kill()
	parent.Wait()
	gone(t, program)
	if text := said(t, log); !strings.HasSuffix(text, "asked\n") {
		t.Errorf("log is %q", text)
	}
}
