package daemon

import (
	"encoding/json"
	"errors"
	stdlog "log"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
)

// The Kubernetes libraries log at the level debug, with a verbosity of up to 4; errors are always
// logged.
func TestKlogHandler(t *testing.T) {
	for level, want := range map[slog.Level]string{
		slog.LevelDebug: "DEBUG v0 DEBUG v2 DEBUG v4 ERROR broken",
		slog.LevelInfo:  "ERROR broken",
	} {
		var out strings.Builder
		log := logr.FromSlogHandler(klogHandler{Handler: slog.NewTextHandler(&out, &slog.HandlerOptions{
			Level: level,
			ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.LevelKey || a.Key == slog.MessageKey {
					return a
				}
				return slog.Attr{}
			},
		}), repeated: &repeated{seen: map[string]time.Time{}}}).WithName("leaderelection").WithValues("lease", "gitfleet")
		log.Info("v0")
		log.V(2).Info("v2")
		log.V(4).Info("v4")
		log.V(5).Info("v5")
		log.Error(errors.New("denied"), "broken")
		if got := strings.Join(strings.Fields(strings.NewReplacer("level=", "", "msg=", "").Replace(out.String())), " "); got != want {
			t.Errorf("at %s: logged %q, want %q", level, got, want)
		}
	}
}

// An error that differs only in times, durations and ports of one outage is repeated; one about another member is not, also if
// their names differ only in a digit.
func TestRepeatedErrors(t *testing.T) {
	const first = `Get "https://member-1.example.com:6443/api?timeout=5.2s": dial tcp 10.0.0.5:41234->10.0.0.1:6443: i/o timeout after 3 attempts at 2027-01-15T12:00:00.123Z`
	for text, want := range map[string]bool{
		first: true,
		strings.NewReplacer("41234", "50100", "5.2s", "9.98s", "3 attempts", "17 attempts", "12:00:00.123", "12:00:07.9").Replace(first): true,
		strings.Replace(first, "member-1", "member-2", 1):   false,
		strings.Replace(first, "10.0.0.1:", "10.0.0.2:", 1): false,
		strings.Replace(first, ":6443/", ":6444/", 1):       false,
	} {
		seen := &repeated{seen: map[string]time.Time{}}
		at := time.Date(2027, 1, 15, 12, 0, 0, 0, time.UTC)
		seen.again(slog.NewRecord(at, slog.LevelError, first, 0))
		if got := seen.again(slog.NewRecord(at.Add(time.Minute), slog.LevelError, text, 0)); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

// With logFormat json every line of the log is JSON, also what libraries log in their own ways.
func TestLibrariesLogInTheFormatOfTheDaemon(t *testing.T) {
	before, flags := stdlog.Writer(), stdlog.Flags()
	t.Cleanup(func() {
		stdlog.SetOutput(before)
		stdlog.SetFlags(flags)
		klog.ClearLogger()
	})
	var out strings.Builder
	logLibraries(settings.Config{LogFormat: "json"}.Logger(&out))
	stdlog.Print("http: TLS handshake error from 127.0.0.1:1")
	klog.ErrorS(nil, "cannot renew")
	klog.Error("cannot renew either")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for _, line := range lines {
		var record struct{ Level, Msg string }
		if err := json.Unmarshal([]byte(line), &record); err != nil || record.Level == "" || record.Msg == "" {
			t.Errorf("%q: %v", line, err)
		}
	}
	if len(lines) != 3 {
		t.Errorf("%d lines instead of 3:\n%s", len(lines), &out)
	}
}

// However many TLS handshakes fail, or connections send frames that are not valid, few lines are logged, and how many there were.
// Panics are all there, and so is why no connection can be accepted.
func TestFailedConnectionsAreCounted(t *testing.T) {
	for _, text := range []string{
		"http: TLS handshake error from 10.0.0.5:40123: EOF",
		"http2: server connection error from 10.0.0.5:40123: connection error: PROTOCOL_ERROR",
		"http2: server: error reading preface from client 10.0.0.5:40123: bogus greeting \"http: panic serving\"",
		"http2: received GOAWAY [FrameHeader GOAWAY len=8], starting graceful shutdown",
		"timeout waiting for SETTINGS frames from 10.0.0.5:40123",
	} {
		var out strings.Builder
		at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		l := stdlog.New(&rateLimitedWriter{next: &out, now: func() time.Time { return at }}, "", 0)
		for range 10_000 {
			l.Print(text)
		}
		l.Print("http: panic serving 10.0.0.5:40124: oh")
		l.Print("http: Accept error: accept tcp [::]:8080: accept4: too many open files; retrying in 5ms")
		at = at.Add(time.Minute)
		l.Print(text)
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != maxLinesPerMinute+4 || !strings.Contains(out.String(), "too many open files; retrying in 5ms\n") || !strings.Contains(out.String(), "40124: oh\n") || !strings.Contains(out.String(), "dropped 9990 more lines of HTTP servers and clients since 2026-03-01T12:00:00Z\n") {
			t.Errorf("%d lines:\n%s", len(lines), &out)
		}
	}
}

// An error of the configuration is in the format of the log, too.
func TestErrorsOfTheConfigurationHaveTheFormatOfTheLog(t *testing.T) {
	for name, text := range map[string]string{
		"an unknown setting": "logFormat: json\nnonsense: 1\n",
		"an invalid value":   "logFormat: json\nsource: {url: \"https://git.example.com/fleet\"}\nlogLevel: loud\n",
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "gitfleet.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			run := NewRun()
			run.SetArgs([]string{"--config", file})
			run.SetErr(&out)
			run.SilenceErrors, run.SilenceUsage = true, true
			err := run.Execute()
			var record struct{ Level, Msg, Err string }
			if json.Unmarshal([]byte(out.String()), &record) != nil || record.Err == "" || !errors.Is(err, exit.Failed) {
				t.Errorf("%v: %q", err, &out)
			}
		})
	}
}

// An error of a library that is repeated during an outage is logged once; after a while without it, it is another outage.
func TestRepeatedErrorsAreLoggedOnce(t *testing.T) {
	p := &repeated{seen: map[string]time.Time{}}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		after   time.Duration
		message string
		again   bool
	}{
		{0, "read tcp 127.0.0.1:4001->10.0.0.1:6443: reset", false},
		{2 * time.Second, "read tcp 127.0.0.1:4002->10.0.0.1:6443: reset", true},
		{2 * time.Second, "Unauthorized", false},
		{4 * time.Minute, "read tcp 127.0.0.1:4003->10.0.0.1:6443: reset", true},
		{outageEnds, "read tcp 127.0.0.1:4004->10.0.0.1:6443: reset", false},
	} {
		at = at.Add(step.after)
		r := slog.NewRecord(at, slog.LevelError, "error retrieving resource lock", 0)
		r.Add("err", step.message)
		if got := p.again(r); got != step.again {
			t.Errorf("%s after %s: %t", step.message, step.after, got)
		}
	}
}
