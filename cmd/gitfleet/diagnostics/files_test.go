package diagnostics

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/test/tempfile"
)

// certificateFor writes a certificate that is valid for some time, and its key.
func certificateFor(t *testing.T, valid time.Duration) settings.ServerConfig {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-1000 * time.Hour), NotAfter: time.Now().Add(valid)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	file := func(name, typ string, data []byte) string {
		return tempfile.Write(t, name, string(pem.EncodeToMemory(&pem.Block{Type: typ, Bytes: data})))
	}
	return settings.ServerConfig{CertFile: file("tls.crt", "CERTIFICATE", der), KeyFile: file("tls.key", "PRIVATE KEY", raw)}
}

// The files that a configuration names must be readable. A certificate is reported two weeks before
// it expires.
func TestDoctorChecksFiles(t *testing.T) {
	year, week := certificateFor(t, 365*24*time.Hour), certificateFor(t, 7*24*time.Hour)
	for name, test := range map[string]struct {
		server settings.ServerConfig
		state  string // empty if there is no check
		says   string
	}{
		"none":                  {settings.ServerConfig{}, "", ""},
		"a valid certificate":   {year, checkOK, "certificate is valid until "},
		"one that soon expires": {week, checkWarn, "certificate is valid until "},
		"one that has expired":  {certificateFor(t, -time.Hour), checkFail, "certificate has expired on "},
		"of another key":        {settings.ServerConfig{CertFile: year.CertFile, KeyFile: week.KeyFile}, checkFail, "private key does not match public key"},
		"a missing file":        {settings.ServerConfig{CertFile: year.CertFile, KeyFile: "no/such/file"}, checkFail, "open no/such/file: no such file or directory"},
		"a missing token file":  {settings.ServerConfig{TokenFile: "no/such/file"}, checkFail, "open no/such/file: no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			got := checkFiles(settings.Config{Server: test.server})
			if test.state == "" {
				if len(got) > 0 {
					t.Errorf("%+v", got)
				}
				return
			}
			if len(got) != 1 || got[0].State != test.state || !strings.Contains(got[0].Message, test.says) || (got[0].Fix == "") != (test.state == checkOK) {
				t.Errorf("%+v, want %s: %s", got, test.state, test.says)
			}
		})
	}
}

// A state directory that the daemon can create is no problem; one that it cannot write, or a ledger
// that it cannot read, is.
func TestDoctorChecksTheStateDirectory(t *testing.T) {
	parent := t.TempDir()
	damaged := t.TempDir()
	if err := os.Mkdir(filepath.Join(damaged, "ledger"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(damaged, "ledger", "ledger.db"), []byte("this is no database"), 0o600); err != nil {
		t.Fatal(err)
	}
	unreadable := t.TempDir()
	if err := os.Mkdir(filepath.Join(unreadable, "ledger"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("ledger.db", filepath.Join(unreadable, "ledger", "ledger.db")); err != nil { // to itself
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ dir, state, says, fix string }{
		"writable":                       {parent, checkOK, "writable; no daemon uses it", ""},
		"to be created":                  {filepath.Join(parent, "state"), checkOK, "does not exist yet; the daemon creates it", ""},
		"without a parent":               {filepath.Join(parent, "no", "state"), checkFail, "no such file or directory", "create it, owned by the daemon's user"},
		"no directory":                   {tempfile.Write(t, "file", ""), checkFail, "not a directory", "let the daemon's user write it"},
		"a damaged ledger":               {damaged, checkFail, "the file is damaged (invalid database)", ledger.Remedy},
		"a ledger that cannot be opened": {unreadable, checkFail, "open ledger: ", "mend the file system or its permissions, and leave the ledger where it is: it may be whole"},
	} {
		t.Run(name, func(t *testing.T) {
			got := checkState(settings.Config{StateDir: test.dir})[0]
			lowDisk := test.state == checkOK && got.State == checkWarn && strings.HasPrefix(got.Fix, "make room")
			if got.State != test.state && !lowDisk || !strings.Contains(got.Message, test.says) || got.Fix != test.fix && !lowDisk {
				t.Errorf("%+v, want %s: %s, %s", got, test.state, test.says, test.fix)
			}
		})
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v in the state directory: %v", left, err)
	}
}

// The fix for an error of the forge depends on its HTTP status.
func TestForgeFix(t *testing.T) {
	status := func(code int) error { return &forge.StatusError{Status: code} }
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"no answer":           {errors.New("connection refused"), "check forge.url, its certificate"},
		"a wrong token":       {status(http.StatusUnauthorized), "make another token"},
		"a missing right":     {status(http.StatusForbidden), "give the token the missing permission"},
		"a rate limit":        {&forge.StatusError{Status: http.StatusForbidden, RetryAfter: time.Minute}, "try again later"},
		"no repository":       {status(http.StatusNotFound), "check forge.repository"},
		"moved":               {status(http.StatusMovedPermanently), "set forge.url and forge.repository to where the repository is now"},
		"an error of its own": {status(http.StatusBadGateway), "try again later"},
	} {
		if got := forgeFix(test.err); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// Members are checked as the repository declares them; a missing declaration is a warning.
func TestDoctorWithoutMembers(t *testing.T) {
	got := checkMembers(t.Context(), settings.Config{}, &hub.Snapshot{})
	if len(got) != 1 || got[0].State != checkWarn || got[0].Message != "the repository declares no member" || got[0].Fix == "" {
		t.Errorf("%+v", got)
	}
}

// Only warnings and successes make an exit code of 0. Texts from elsewhere stay on one line.
func TestDoctorDocument(t *testing.T) {
	for want, states := range map[bool][]string{false: {checkOK, checkWarn}, true: {checkWarn, checkFail, checkOK}} {
		var d doctorDocument
		for _, s := range states {
			d.Checks = append(d.Checks, check{State: s})
		}
		if d.failed() != want {
			t.Errorf("%v: %t", states, d.failed())
		}
	}
	d := doctorDocument{Checks: []check{{"member", "east\nok  x", checkFail, "a\033[2J", "grant\nit"}, {Check: "state", State: checkOK, Message: "writable"}}}
	const want = "fail  member east\\nok  x: a\\x1b[2J\n      fix: grant\\nit\nok    state: writable\n"
	if got := d.text(output.Page{Width: 16}); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	const folded = "fail  member\n      east\\nok\n      x:\n      a\\x1b[2J\n      fix:\n      grant\\nit\nok    state:\n      writable\n"
	if got := d.text(output.Page{Width: 16, Terminal: true}); got != folded {
		t.Errorf("on a narrow terminal %q, want %q", got, folded)
	}
}

// The first response decides about the clock: later ones may be old.
func TestClockIsReadOnce(t *testing.T) {
	c := &clock{}
	dates := []string{"yesterday", "Fri, 02 Jan 2026 03:04:10 GMT", "Fri, 02 Jan 2026 09:00:00 GMT"}
	began := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	for _, date := range dates {
		c.compare(date, began, began)
	}
	if skew, known := c.skew(); !known || skew != 10*time.Second {
		t.Errorf("%s, %t", skew, known)
	}
}

// A report has the errors of what could not be collected, no secret, and replaces no file.
func TestBundle(t *testing.T) {
	b := &bundle{redactor: &redactor{}}
	b.add("report.json", nil, errors.New("no daemon answers"))
	b.add("metrics.txt", []byte("up 1"), nil)
	b.add("partial.txt", []byte("half"), errors.New("it ended early"))
	if len(b.files) != 2 || len(b.errs) != 2 || b.errs[0].Error() != "report.json: no daemon answers" {
		t.Errorf("files %+v, errors %v", b.files, b.errs)
	}
	file := filepath.Join(t.TempDir(), "it.tar.gz")
	if err := b.write(file, time.Now()); err != nil {
		t.Fatal(err)
	}
	if last := b.files[len(b.files)-1]; last.name != "errors.txt" || string(last.text) != "report.json: no daemon answers\npartial.txt: it ended early\n" {
		t.Errorf("%s has %q", last.name, last.text)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := b.write(file, time.Now()); !errors.Is(err, os.ErrExist) {
		t.Errorf("it replaces the file: %v", err)
	}
}

// Keys for decryption may be in a directory. Those that cannot be used, and files for paths that are not there, are named.
func TestDoctorChecksKeys(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"good.agekey": "# no key yet\n", "bad.agekey": "hunter2\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	empty, part := t.TempDir(), t.TempDir()
	for name, size := range map[string]int{"dev.agekey": 0, "prod.agekey": 2 << 20} {
		if err := os.WriteFile(filepath.Join(part, name), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		config settings.DecryptionConfig
		want   string
	}{
		"none":      {settings.DecryptionConfig{}, ""},
		"one file":  {settings.DecryptionConfig{KeyFile: filepath.Join(dir, "good.agekey")}, ""},
		"no file":   {settings.DecryptionConfig{KeyFile: filepath.Join(dir, "gone")}, "no such file or directory"},
		"no key":    {settings.DecryptionConfig{KeyFile: filepath.Join(dir, "bad.agekey")}, "line 1 is no age identity (AGE-SECRET-KEY-1…)"},
		"empty":     {settings.DecryptionConfig{KeyFile: empty, Paths: []string{"prod=prod.agekey"}}, empty + " is a directory without files, and so without keys"},
		"too large": {settings.DecryptionConfig{KeyFile: part, Paths: []string{"prod=prod.agekey"}}, filepath.Join(part, "prod.agekey") + " is larger than a file with keys"},
		"directory": {settings.DecryptionConfig{KeyFile: dir, Paths: []string{"prod=prod.agekey"}}, "bad.agekey: line 1 is no age identity (AGE-SECRET-KEY-1…); " + dir + " has no file prod.agekey, which has the keys for prod"},
	} {
		got := checkFiles(settings.Config{Decryption: test.config})
		if len(got) > 1 || (len(got) == 1) != (test.want != "") || test.want != "" && !strings.HasSuffix(got[0].Message, test.want) {
			t.Errorf("%s: got %+v, want %q", name, got, test.want)
		}
	}
}

// The end of each certificate of a CA and of all credentials is shown, and is a warning once they are due for renewal.
func TestDoctorSaysWhenCredentialsEnd(t *testing.T) {
	for valid, want := range map[time.Duration]string{365 * 24 * time.Hour: checkOK, 2 * 24 * time.Hour: checkWarn, -time.Hour: checkFail} {
		got := checkFiles(settings.Config{Server: settings.ServerConfig{ClientCAFile: certificateFor(t, valid).CertFile}})
		if len(got) != 1 || got[0].State != want || !strings.HasPrefix(got[0].Message, "its CA certificate ") || got[0].Subject != "server.clientCAFile" {
			t.Errorf("valid for another %s: %+v, want %s", valid, got, want)
		}
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	got := expiryChecks("member", "east", []connection.Expiry{{What: "token", Until: now.Add(time.Hour), Due: now.Add(-time.Minute)}, {What: "client certificate", Until: now.AddDate(1, 0, 0), Due: now.AddDate(0, 11, 0)}}, now)
	want := []check{
		{"member", "east", checkWarn, "its token is valid until 2026-03-01", renew},
		{"member", "east", checkOK, "its client certificate is valid until 2027-03-01", ""},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
