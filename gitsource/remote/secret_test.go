package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/gitsource/objects"
)

// No way to print a Secret shows its value.
func TestASecretIsNeverShown(t *testing.T) {
	s := Secret{"canary"}
	type holder struct {
		S  Secret
		P  *Secret
		In []Secret
	}
	h := holder{s, &s, []Secret{s}}
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10s", "%T %v"} {
		args := []any{s, &s, h, &h, map[string]Secret{"k": s}}
		for _, a := range args {
			if strings.Count(verb, "%") == 2 {
				fmt.Fprintf(&out, verb, a, a)
				continue
			}
			fmt.Fprintf(&out, verb, a)
		}
	}
	encoded, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(encoded)
	fmt.Fprintln(&out, s.String(), fmt.Errorf("with %v", s))
	for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(handler).Info("line", "secret", s, "holder", h, "headers", headerAuth{s})
	}
	for _, form := range []string{"canary", fmt.Sprintf("%x", "canary"), fmt.Sprintf("%X", "canary")} {
		if strings.Contains(out.String(), form) {
			t.Errorf("shown as %s: %s", form, out.String())
		}
	}
	if !strings.Contains(out.String(), masked) || s.Reveal() != "canary" {
		t.Error("the secret is lost")
	}
}

// A secret is read at each use, so that replacing the file rotates it.
func TestASecretIsReadAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	environment := map[string]string{"TOKEN": "from-env\n"}
	getenv := func(name string) string { return environment[name] }
	file := SecretSource{File: path}
	for _, content := range []string{"first", "second\n", "third\r\n"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := file.Read(getenv)
		if want := strings.TrimSpace(content); err != nil || got.Reveal() != want {
			t.Errorf("%q (%v), want %q", got.Reveal(), err, want)
		}
	}
	if got, err := (SecretSource{Env: "TOKEN"}).Read(getenv); err != nil || got.Reveal() != "from-env" {
		t.Errorf("%q (%v)", got.Reveal(), err)
	}
	_, err := SecretSource{Env: "OTHER"}.Read(getenv)
	if err == nil || !strings.Contains(err.Error(), "environment variable OTHER is empty") {
		t.Error(err)
	}
	if err := os.WriteFile(path, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = file.Read(getenv)
	if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "is empty") {
		t.Error(err)
	}
	if err := os.WriteFile(path, make([]byte, maxSecret+1), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = file.Read(getenv)
	if !errors.Is(err, objects.ErrTooLarge) || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
}

// Texts of others are shown without the credentials in URLs and on one line.
func TestRedact(t *testing.T) {
	tests := map[string]string{
		`Get "https://user:canary@example.com/a?token=canary#canary": EOF`: `Get "https://example.com/a": EOF`,
		"https://canary@example.com/a":                                     "https://example.com/a",
		"ssh://git:canary@h:22/a b":                                        "ssh://h:22/a b",
		"two\nlines\x1b[31m and\ttabs":                                     "two lines [31m and tabs",
		"\xff":                                                             "\uFFFD",
		strings.Repeat("a", 2*maxText):                                     strings.Repeat("a", maxText) + "…",
	}
	for in, want := range tests {
		if got := Redact(in); got != want {
			t.Errorf("redact(%q) = %q, want %q", in, got, want)
		}
	}
}
