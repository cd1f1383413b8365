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

// terminable is a program that prints its process ID, and "asked" when it gets SIGTERM.
const terminable = `echo "$$"; trap 'echo asked; exit 0' TERM; while :; do sleep 0.01; done`

func TestMain(m *testing.M) {
	if path := os.Getenv("PROCESS_TEST_LOG"); path != "" {
		log, err := os.Create(path)
		if err == nil {
			_, err = process.Start(log, "sh", "-c", terminable)
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

// readLog waits until a log has a line, and returns all of it.
func readLog(t *testing.T, path string) string {
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
	line, _, _ := strings.Cut(readLog(t, log), "\n")
	n, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// waitForEnd waits until a process has ended.
func waitForEnd(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return
		}
	}
	syscall.Kill(pid, syscall.SIGKILL)
	t.Errorf("process %d is still running", pid)
}

func TestStopSendsSIGTERMFirst(t *testing.T) {
	log := logFile(t)
	p, err := process.Start(log, "sh", "-c", terminable)
	if err != nil {
		t.Fatal(err)
	}
	program := pid(t, log.Name())
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	waitForEnd(t, program)
	if text := readLog(t, log.Name()); !strings.HasSuffix(text, "asked\n") {
		t.Errorf("log is %q", text)
	}
	if err := p.Stop(); err != nil {
		t.Errorf("stopped again: %v", err)
	}
}

func TestKillSendsSIGKILL(t *testing.T) {
	log := logFile(t)
	p, err := process.Start(log, "sh", "-c", terminable)
	if err != nil {
		t.Fatal(err)
	}
	program := pid(t, log.Name())
	if err := p.Kill(); err == nil {
		t.Error("a killed process has exit status 0")
	}
	waitForEnd(t, program)
	if text := readLog(t, log.Name()); strings.Contains(text, "asked") {
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

// The program ends if the process that started it is killed.
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
	waitForEnd(t, program)
	if text := readLog(t, log); !strings.HasSuffix(text, "asked\n") {
		t.Errorf("log is %q", text)
	}
}
