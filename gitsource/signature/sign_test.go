package signature

import (
	"os"
	"strings"
	"testing"
	"time"
)

// signed returns a commit signed with a key, as git reads it.
func (w *signingTools) signed(key string) []byte {
	w.t.Helper()
	k, err := LoadSigningKey(key)
	if err != nil {
		w.t.Fatal(err)
	}
	unsigned := w.commit("ssh", "")
	sig, err := k.Sign(unsigned, time.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	raw := attach(unsigned, sig)
	w.run("git", "reset", "-q", "--soft", strings.TrimSpace(w.run("git", "hash-object", "-t", "commit", "-w", w.write("raw", string(raw)))))
	return raw
}

// Signatures with SSH keys of every kind are verified by git, and by Verify.
func TestCommitsAreSignedWithSSHKeys(t *testing.T) {
	w := newSigningTools(t)
	for _, kind := range []string{"ed25519", "ecdsa", "rsa"} {
		public := w.sshKey(kind, kind)
		keys, err := Load(nil, w.write("allowed", "ada@example.com namespaces=\"git\" "+public+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		signer, err := keys.Verify(w.signed(w.path(kind)), time.Now(), time.Now())
		if err != nil || !signer.Is("ada@example.com") {
			t.Errorf("%s: signed by %s, %v", kind, signer, err)
		}
		w.run("git", "-c", "gpg.format=ssh", "-c", "gpg.ssh.allowedSignersFile="+w.path("allowed"), "verify-commit", "HEAD")
	}
}

// Signatures with OpenPGP keys are verified by git, and by Verify.
func TestCommitsAreSignedWithOpenPGPKeys(t *testing.T) {
	w := newSigningTools(t)
	public, fingerprint := w.gpg("ada@example.com")
	private := w.write("private.asc", w.run("gpg", "--batch", "--passphrase", "", "--pinentry-mode", "loopback", "--armor", "--export-secret-keys"))
	keys, err := Load([]string{w.write("ring.asc", public)}, "")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := keys.Verify(w.signed(private), time.Now(), time.Now())
	if err != nil || !signer.Is(fingerprint) {
		t.Errorf("signed by %s, %v", signer, err)
	}
	w.run("git", "verify-commit", "HEAD")
	_, err = LoadSigningKey(w.path("ring.asc"))
	says(t, err, "ring.asc", "exactly one OpenPGP private key")
}

// A file without a usable key is refused with the reason.
func TestSigningKeysThatCannotBeUsed(t *testing.T) {
	w := newSigningTools(t)
	w.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-C", "", "-f", w.path("encrypted"))
	_, err := LoadSigningKey(w.path("encrypted"))
	says(t, err, "encrypted", "without a passphrase")
	_, err = LoadSigningKey(w.write("text", "no key"))
	says(t, err, "holds neither an SSH private key nor an OpenPGP one")
	if _, err = LoadSigningKey(w.path("absent")); !os.IsNotExist(err) {
		t.Errorf("absent: %v", err)
	}
}
