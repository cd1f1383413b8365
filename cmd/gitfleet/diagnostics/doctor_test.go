package diagnostics

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/test/sopsfile"
)

// doctorConfig writes a configuration for a repository that is a directory.
func doctorConfig(t *testing.T, repository, state string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "gitfleet.yaml")
	text := "fleetName: prod\nstateDir: " + state + "\nsource: {url: \"file://" + repository + "\", allowFile: true, branch: main}\nmembers: {kubeconfigDir: " + t.TempDir() + "}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// doctor runs the command, and returns its exit code and what it prints.
func doctor(t *testing.T, args ...string) (exit.Code, string) {
	t.Helper()
	var out bytes.Buffer
	cmd := NewDoctor()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	var code exit.Code
	if err := cmd.ExecuteContext(t.Context()); err != nil && !errors.As(err, &code) {
		t.Fatalf("doctor %v: %v\n%s", args, err, &out)
	}
	return code, out.String()
}

// doctorSays runs doctor and returns its checks.
func doctorSays(t *testing.T, wantCode exit.Code, args ...string) []check {
	t.Helper()
	code, out := doctor(t, append([]string{"-o", "json"}, args...)...)
	if code != wantCode {
		t.Errorf("exit code %d, want %d\n%s", code, wantCode, out)
	}
	var d doctorDocument
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return d.Checks
}

// found returns the state and the message of the first check of a name.
func found(checks []check, name string) (state, message string) {
	for _, c := range checks {
		if c.Check == name {
			return c.State, c.Message
		}
	}
	return "", ""
}

// Everything that a daemon depends on has a line, and every problem has a fix.
func TestDoctor(t *testing.T) {
	repository := filepath.Join(t.TempDir(), "none")
	state := t.TempDir()
	config := doctorConfig(t, repository, state)

	checks := doctorSays(t, exit.Attention, "--config", config)
	for name, want := range map[string]string{"config": checkOK, "state": checkOK, "repository": checkFail, "member": checkWarn} {
		if got, message := found(checks, name); got != want {
			t.Errorf("%s is %s: %s, want %s", name, got, message, want)
		}
	}
	for _, c := range checks {
		if c.State != checkOK && c.Fix == "" {
			t.Errorf("%s has no fix: %s", c.Check, c.Message)
		}
	}
	if _, message := found(checks, "state"); !strings.Contains(message, "no daemon uses it") || !strings.Contains(message, "free") {
		t.Errorf("of the state it says %q", message)
	}

	store, err := ledger.Open(filepath.Join(state, "ledger"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, message := found(doctorSays(t, exit.Attention, "--config", config), "state"); !strings.Contains(message, "a running daemon uses it") {
		t.Errorf("of the state of a running daemon it says %q", message)
	}
}

// The configuration may be named by the environment. Without one the fix says how to name it.
func TestDoctorFindsTheConfiguration(t *testing.T) {
	for _, c := range doctorSays(t, exit.Attention) {
		if c.Check != "config" || !strings.Contains(c.Fix, "$GITFLEET_CONFIG") {
			t.Errorf("without a configuration: %+v", c)
		}
	}
	config := doctorConfig(t, filepath.Join(t.TempDir(), "none"), t.TempDir())
	t.Setenv(settings.ConfigEnv, config)
	if c := doctorSays(t, exit.Attention)[0]; c.Subject != config || c.State != checkOK {
		t.Errorf("of the environment: %+v", c)
	}
	if c := doctorSays(t, exit.Attention, "--config", config+".gone")[0]; c.State != checkFail {
		t.Errorf("of the flag, which takes precedence: %+v", c)
	}
}

// What is encrypted for keys that are not configured fails the check, with the file and the recipient.
func TestDoctorMissesKeys(t *testing.T) {
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: shop}\nstringData: {password: canary}\n"
	for name, test := range map[string]struct{ text, want string }{
		"plain":          {secret, ""},
		"values":         {sopsfile.Encrypt(secret, "^stringData$", "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"), "what is encrypted in the newest commit cannot be decrypted: 1 problem, such as secret.yaml:1: "},
		"whole document": {sopsfile.Encrypt(secret, "", "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"), "for age age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"},
	} {
		s, err := hub.NewLoader(hub.Options{}).Load(hub.Commit{Hash: "c1"}, fstest.MapFS{"secret.yaml": {Data: []byte(test.text)}})
		if err != nil {
			t.Fatal(err)
		}
		got := checkDecryption(s)
		if len(got) > 1 || (len(got) == 1) != (test.want != "") || test.want != "" && (got[0].State != checkFail || got[0].Fix == "" || !strings.Contains(got[0].Message, test.want)) {
			t.Errorf("%s: %+v, want %q", name, got, test.want)
		}
	}
}

// If the configuration is invalid, its problems are listed and nothing else is checked.
func TestDoctorOfAnInvalidConfiguration(t *testing.T) {
	checks := doctorSays(t, exit.Attention, "--url", "https://git.example.com/fleet", "--listen", "nowhere")
	if len(checks) != 2 {
		t.Errorf("got %+v, want one check each for listen and members", checks)
	}
	for _, c := range checks {
		if c.Check != "config" || c.State != checkFail {
			t.Errorf("got %+v", c)
		}
	}
	code, out := doctor(t, "--url", "https://git.example.com/fleet", "--listen", "nowhere")
	if code != exit.Attention || !strings.HasPrefix(out, "fail  config: listen: ") || !strings.Contains(out, "\n      fix: ") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// The clock of a server is compared with the middle of the time between a request and its
// response.
func TestClockSkew(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	for date, want := range map[string]time.Duration{
		"Fri, 02 Jan 2026 03:04:01 GMT": 0, "Fri, 02 Jan 2026 03:05:01 GMT": time.Minute, "Fri, 02 Jan 2026 03:03:01 GMT": -time.Minute,
	} {
		c := &clock{}
		c.compare(date, began, began.Add(2*time.Second))
		if got, known := c.skew(); !known || got != want {
			t.Errorf("%s: %s, want %s", date, got, want)
		}
	}
	c := &clock{}
	if c.compare("yesterday", began, began); c.found {
		t.Error("a time that is none counts")
	}
}
