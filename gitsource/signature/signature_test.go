package signature

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// signingTools create keys and signed commits with the real programs.
type signingTools struct {
	t   testing.TB
	dir string
	env []string
}

func newSigningTools(t testing.TB) *signingTools {
	t.Helper()
	w := &signingTools{t: t, dir: t.TempDir(), env: append(os.Environ(),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com")}
	w.run("git", "init", "-q")
	return w
}

func (w *signingTools) run(name string, args ...string) string {
	w.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = w.dir, w.env
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatalf("%s %q: %v\n%s", name, args, err, errs.String())
	}
	return string(out)
}

func (w *signingTools) path(name string) string { return filepath.Join(w.dir, name) }

func (w *signingTools) write(name, content string) string {
	w.t.Helper()
	if err := os.WriteFile(w.path(name), []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return w.path(name)
}

// sshKey returns the public key.
func (w *signingTools) sshKey(name, kind string) string {
	w.t.Helper()
	w.run("ssh-keygen", "-q", "-t", kind, "-N", "", "-C", "", "-f", w.path(name))
	public, err := os.ReadFile(w.path(name + ".pub"))
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimSpace(string(public))
}

// commit returns a raw commit that is signed with a key, or unsigned if the key is empty.
func (w *signingTools) commit(format, key string) []byte {
	w.t.Helper()
	args := []string{"-c", "gpg.format=" + format, "-c", "user.signingkey=" + key, "commit", "-q", "--allow-empty", "-m", "subject\n\nbody"}
	if key != "" {
		args = append(args, "-S")
	}
	w.run("git", args...)
	return []byte(w.run("git", "cat-file", "commit", "HEAD"))
}

// gpg creates a key that expires after a day, and returns its public key and fingerprint.
func (w *signingTools) gpg(email string) (public, fingerprint string) {
	w.t.Helper()
	if _, err := exec.LookPath("gpg"); err != nil {
		w.t.Skip("needs gpg, from the package gnupg")
	}
	home, err := os.MkdirTemp("", "gpg") // gpg's sockets need a short path
	if err != nil {
		w.t.Fatal(err)
	}
	w.env = append(w.env, "GNUPGHOME="+home)
	w.t.Cleanup(func() {
		w.run("gpgconf", "--kill", "all")
		if err := os.RemoveAll(home); err != nil {
			w.t.Error(err)
		}
	})
	w.run("gpg", "--batch", "--quiet", "--passphrase", "", "--quick-gen-key", "Ada <"+email+">", "ed25519", "sign", "1d")
	listing := w.run("gpg", "--batch", "--with-colons", "--list-keys")
	fingerprint = regexp.MustCompile(`(?m)^fpr:+([0-9A-F]{40}):`).FindStringSubmatch(listing)[1]
	return w.run("gpg", "--batch", "--armor", "--export"), fingerprint
}

func says(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one that says %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
}

// Commits that git has signed with SSH keys of every kind are verified. The signer is found by
// principal and by fingerprint.
func TestSSHSignaturesOfGitAreVerified(t *testing.T) {
	w := newSigningTools(t)
	for _, kind := range []string{"ed25519", "ecdsa", "rsa"} {
		t.Run(kind, func(t *testing.T) {
			public := w.sshKey(kind, kind)
			raw := w.commit("ssh", w.path(kind))
			keys, err := Load(nil, w.write("allowed", "# us\n\nada@example.com,root namespaces=\"git\" "+public+" comment\n"))
			if err != nil {
				t.Fatal(err)
			}
			signer, err := keys.Verify(raw, time.Now(), time.Now())
			if err != nil {
				t.Fatal(err)
			}
			fingerprint := strings.Fields(w.run("ssh-keygen", "-lf", w.path(kind+".pub")))[1]
			for name, want := range map[string]bool{"ada@example.com": true, "ADA@example.com": true, "root": true, fingerprint: true, "bob@example.com": false, "": false} {
				if got := signer.Is(name); got != want {
					t.Errorf("%s is %q: %t", signer, name, got)
				}
			}
			w.run("git", "-c", "gpg.format=ssh", "-c", "gpg.ssh.allowedSignersFile="+w.path("allowed"), "verify-commit", "HEAD")
		})
	}
}

// Commits that git has signed with OpenPGP are verified while the key is valid.
func TestOpenPGPSignaturesOfGitAreVerified(t *testing.T) {
	w := newSigningTools(t)
	public, fingerprint := w.gpg("ada@example.com")
	raw := w.commit("openpgp", fingerprint)
	binary := w.write("ring.gpg", w.run("gpg", "--batch", "--export"))
	for _, ring := range []string{w.write("ring.asc", public), binary} {
		keys, err := Load([]string{ring}, "")
		if err != nil {
			t.Fatal(err)
		}
		signer, err := keys.Verify(raw, time.Now(), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if !signer.Is("ada@example.com") || !signer.Is(fingerprint) || signer.Is("*") || signer.Is("bob@example.com") {
			t.Errorf("the signer is %s", signer)
		}
		_, err = keys.Verify(raw, time.Now(), time.Now().Add(48*time.Hour))
		says(t, err, "OpenPGP signature", "expired")
		_, err = keys.Verify(bytes.Replace(raw, []byte("body"), []byte("Body"), 1), time.Now(), time.Now())
		says(t, err, "OpenPGP signature")
	}
	other := newSigningTools(t)
	stranger, _ := other.gpg("mallory@example.com")
	keys, err := Load([]string{other.write("ring.asc", stranger)}, "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = keys.Verify(raw, time.Now(), time.Now())
	says(t, err, "OpenPGP signature", "unknown")
	private := w.write("private.asc", w.run("gpg", "--batch", "--passphrase", "", "--pinentry-mode", "loopback", "--armor", "--export-secret-keys"))
	_, err = Load([]string{private}, "")
	says(t, err, "private.asc", "holds a private key")
}

// Everything that is not a valid signature by an accepted key is refused with the reason.
func TestSignaturesFailClosed(t *testing.T) {
	w := newSigningTools(t)
	ada, mallory := w.sshKey("ada", "ed25519"), w.sshKey("mallory", "ed25519")
	raw := w.commit("ssh", w.path("ada"))
	unsigned := w.commit("ssh", "")
	payload, _, err := Split(raw)
	if err != nil {
		t.Fatal(err)
	}
	signedFor := func(namespace string) []byte {
		w.write("payload", string(payload))
		if err := os.RemoveAll(w.path("payload.sig")); err != nil {
			t.Fatal(err)
		}
		w.run("ssh-keygen", "-q", "-Y", "sign", "-n", namespace, "-f", w.path("ada"), w.path("payload"))
		sig, err := os.ReadFile(w.path("payload.sig"))
		if err != nil {
			t.Fatal(err)
		}
		return attach(payload, string(sig))
	}
	replace := func(old, replacement string) []byte {
		if !bytes.Contains(raw, []byte(old)) {
			t.Fatalf("the commit has no %q", old)
		}
		return bytes.Replace(raw, []byte(old), []byte(replacement), 1)
	}
	now := time.Now()
	day := func(days int) string { return now.AddDate(0, 0, days).UTC().Format("20060102150405Z") }
	tests := map[string]struct {
		commit  []byte
		allowed string
		says    string
	}{
		"right":                    {raw, "ada " + ada, ""},
		"right, made by hand":      {signedFor("git"), "ada " + ada, ""},
		"not signed":               {unsigned, "ada " + ada, "not signed"},
		"another key":              {raw, "mallory " + mallory, "is not of an allowed signer"},
		"message changed":          {replace("body", "Body"), "ada " + ada, "does not fit the commit"},
		"tree changed":             {replace("tree 4b", "tree 4c"), "ada " + ada, "does not fit the commit"},
		"header added":             {replace("committer ", "encoding x\ncommitter "), "ada " + ada, "does not fit the commit"},
		"header added after":       {replace("\n\nsubject", "\nencoding x\n\nsubject"), "ada " + ada, "does not fit the commit"},
		"signed twice":             {replace("gpgsig ", "gpgsig x\ngpgsig "), "ada " + ada, "signed twice"},
		"another signature header": {replace("gpgsig ", "gpgsig-sha256 x\ngpgsig "), "ada " + ada, "not supported"},
		"NUL byte":                 {append(bytes.Clone(raw), 0), "ada " + ada, "NUL byte"},
		"signature in the message": {append([]byte("tree x\n\n"), raw...), "ada " + ada, "not signed"},
		"made for files":           {signedFor("file"), "ada " + ada, `made for "file"`},
		"X.509":                    {attach(payload, "-----BEGIN SIGNED MESSAGE-----\nx\n-----END SIGNED MESSAGE-----\n"), "ada " + ada, "not supported"},
		"armor with headers":       {replace("-----BEGIN SSH SIGNATURE-----\n", "-----BEGIN SSH SIGNATURE-----\n A: b\n \n"), "ada " + ada, "malformed armor"},
		"text after the armor":     {replace("-----END SSH SIGNATURE-----\n", "-----END SSH SIGNATURE-----\n more\n"), "ada " + ada, "malformed armor"},
		"namespaces fit":           {raw, `ada namespaces="file,git" ` + ada, ""},
		"namespaces do not fit":    {raw, `ada namespaces="file" ` + ada, `its namespaces are "file"`},
		"valid":                    {raw, fmt.Sprintf(`ada valid-after="%s",valid-before="%s" `, day(-1), day(1)) + ada, ""},
		"not yet valid":            {raw, fmt.Sprintf(`ada valid-after="%s" `, day(1)) + ada, "valid only after"},
		"no longer valid":          {raw, fmt.Sprintf(`ada valid-before="%s" `, day(-1)) + ada, "valid only before"},
		"one of two lines fits":    {raw, fmt.Sprintf("old valid-before=\"%s\" %s\nada %s", day(-1), ada, ada), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			keys, err := Load(nil, w.write("allowed", test.allowed+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			signer, err := keys.Verify(test.commit, now, now)
			if test.says != "" {
				says(t, err, test.says)
				return
			}
			if err != nil || !signer.Is("ada") || signer.Is("old") {
				t.Errorf("signer %s, %v", signer, err)
			}
		})
	}
	// A key that has expired since cannot sign new commits, whatever time they claim.
	keys, err := Load(nil, w.write("allowed", fmt.Sprintf(`ada valid-before="%s" `, day(1))+ada))
	if err != nil {
		t.Fatal(err)
	}
	_, err = keys.Verify(raw, now, now.AddDate(0, 0, 2))
	says(t, err, "valid only before")
	_, err = keys.Verify(raw, now.AddDate(0, 0, 2), now)
	says(t, err, "valid only before")
}

func attach(payload []byte, sig string) []byte {
	header, message, _ := bytes.Cut(payload, []byte("\n\n"))
	folded := strings.ReplaceAll(strings.TrimSuffix(sig, "\n"), "\n", "\n ")
	return []byte(string(header) + "\ngpgsig " + folded + "\n\n" + string(message))
}

// A file of allowed signers with an error is refused as a whole and the line is named, since
// the part that was not understood could be a restriction.
func TestAllowedSignersAreReadStrictly(t *testing.T) {
	w := newSigningTools(t)
	key := w.sshKey("ada", "ed25519")
	for content, want := range map[string]string{
		"ada " + key:                      "",
		`"ada, two" ` + key:               "",
		"ada\t" + key + " c o m m e n t":  "",
		"":                                "no key of any signer",
		"# only a comment":                "no key of any signer",
		"\nada":                           "allowed:2: has no public key",
		"ada ssh-ed25519 AAAA":            "allowed:1: has no public key",
		`"ada ` + key:                     "allowed:1: has a quote that does not end",
		"ada cert-authority " + key:       `allowed:1: option "cert-authority" is not supported`,
		"ada no-touch-required " + key:    "allowed:1: option",
		"ada valid-after=\"soon\" " + key: `allowed:1: "soon" is not a time`,
		"ada " + key + "\n\nbob x":        "allowed:3: has no public key",
	} {
		_, err := Load(nil, w.write("allowed", content))
		if want == "" {
			if err != nil {
				t.Errorf("%q: %v", content, err)
			}
			continue
		}
		says(t, err, want)
	}
	_, err := Load([]string{w.write("ring", "nothing")}, "")
	says(t, err, "ring: is not an OpenPGP key ring")
	if _, err := Load([]string{w.path("absent")}, ""); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
}

// Principals match as in ssh-keygen.
func TestPrincipalPatterns(t *testing.T) {
	for _, test := range []struct {
		list, name string
		want       bool
	}{
		{"ada@example.com", "ada@example.com", true},
		{"*@example.com", "ada@example.com", true},
		{"*@example.com,!bob@example.com", "bob@example.com", false},
		{"!bob@example.com,*@example.com", "bob@example.com", false},
		{"*@example.com,!bob@example.com", "ada@example.com", true},
		{"a?a", "ada", true},
		{"a?a", "adda", false},
		{"*", "a/b", true},
		{"a*", "a/b", true},
		{"[a]", "a", false},
		{"[a]", "[a]", true},
		{`a\b`, `a\b`, true},
		{"", "ada", false},
		{"!ada", "bob", false},
	} {
		if got := matchList([]string{test.list}, test.name); got != test.want {
			t.Errorf("%q matches %q: %t", test.list, test.name, got)
		}
	}
}

func TestTimesOfSigners(t *testing.T) {
	for text, want := range map[string]time.Time{
		"20260131":        time.Date(2026, 1, 31, 0, 0, 0, 0, time.Local),
		"20260131Z":       time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC),
		"202601311530":    time.Date(2026, 1, 31, 15, 30, 0, 0, time.Local),
		"20260131153045Z": time.Date(2026, 1, 31, 15, 30, 45, 0, time.UTC),
	} {
		if got, err := parseTime(text); err != nil || !got.Equal(want) {
			t.Errorf("%s is %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "Z", "2026", "20261331", "2026-01-31", "20260131 "} {
		if got, err := parseTime(text); err == nil {
			t.Errorf("%q is %s", text, got)
		}
	}
}

// Splitting a commit and joining its parts gives the same bytes, for any commit.
func FuzzSplit(f *testing.F) {
	f.Add([]byte("tree a\ngpgsig x\n y\nauthor b\n\nmessage\n\nmore"))
	f.Add([]byte("gpgsig \n\n"))
	f.Add([]byte("\n\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		payload, sig, err := Split(raw)
		if err != nil {
			return
		}
		if bytes.Contains(payload[:bytes.Index(payload, []byte("\n\n"))+1], []byte("\ngpgsig")) {
			t.Error("a signature is left in what was signed")
		}
		if len(payload)+len(sig) > len(raw) {
			t.Error("there is more than there was")
		}
	})
}

// No signature blob and no allowed signers file causes a panic.
func FuzzSSH(f *testing.F) {
	f.Add(pem.EncodeToMemory(&pem.Block{Type: "SSH SIGNATURE", Bytes: []byte("SSHSIG\x00\x00\x00\x01")}), "ada ssh-ed25519 AAAA")
	f.Add([]byte(sshBegin), `"a b" namespaces="git",valid-after="20260101" ssh-rsa AAAA`)
	f.Fuzz(func(t *testing.T, sig []byte, line string) {
		if all, err := parseAllowed(line); err == nil {
			for _, a := range all {
				if a.key == nil {
					t.Error("a signer without a key")
				}
			}
		}
		k := &Keys{}
		if _, err := k.verifySSH([]byte("payload"), sig, time.Now(), time.Now()); err == nil {
			t.Error("nobody's signature is valid")
		}
	})
}
