package diagnostics

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/test/tempfile"
)

// Text that is not secret is not changed.
func TestRedactorLeavesTheRest(t *testing.T) {
	c := &redactor{}
	c.add([]byte("abc\n"))
	for _, text := range []string{
		"abc is too short to be looked for", "https://git.example.com/fleet", "tokenFile: /etc/token", "git@example.com:fleet",
		"ada@example.com", "basic information", "bearer of news", `{"time":"2026-01-31T12:00:00Z"}`,
	} {
		if got := string(c.redact([]byte(text))); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

// What looks like a credential is removed without being known, and the text around it stays.
func TestRedactorKnowsCredentialsByTheirForm(t *testing.T) {
	key := "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----"
	for text, want := range map[string]string{
		"before\n" + key + "\nafter": "before\n[removed]\nafter",
		"-----BEGIN OPENSSH PRIVATE KEY-----\nb\n-----END OPENSSH PRIVATE KEY-----": "[removed]",
		"fetch https://ada:pass@git.example.com/fleet":                              "fetch https://[removed]git.example.com/fleet",
		"sent eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln today":                      "sent [removed] today",
		"ghp_0123456789012345678901234567890123":                                    "[removed]",
		"github_pat_0123456789012345678901":                                         "[removed]",
		"glpat-0123456789abcdef":                                                    "[removed]",
		"AKIA0123456789ABCDEF":                                                      "[removed]",
		"xoxb-0123456789":                                                           "[removed]",
		"Authorization: Basic YWRhOnBhc3M=":                                         "Authorization: Basic [removed]",
		`"authorization":"Bearer abcd"`:                                             `"authorization":"Bearer [removed]"`,
		"bearer 0123456789abcdef0123":                                               "bearer [removed]",
		"password=hunter2&x=1":                                                      "password=[removed]&x=1",
		`"api_key": "0123", "next": 1`:                                              `"api_key": "[removed]", "next": 1`,
		"client-secret: 0123":                                                       "client-secret: [removed]",
	} {
		if got := string((&redactor{}).redact([]byte(text))); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

// A known secret is removed in every form in which it may occur: as a line, as the token of a line,
// and in base64. A secret that is part of another leaves nothing of it.
func TestRedactorRemovesKnownSecrets(t *testing.T) {
	c := &redactor{}
	c.add([]byte("first-token,ada\nsecond-secret\n"))
	c.add([]byte("second-secret-and-more"))
	for _, secret := range []string{
		"first-token", "first-token,ada", "second-secret", "second-secret-and-more",
		base64.StdEncoding.EncodeToString([]byte("first-token")), base64.RawStdEncoding.EncodeToString([]byte("second-secret")),
	} {
		if got := string(c.redact([]byte("a " + secret + " b"))); got != "a [removed] b" {
			t.Errorf("%q becomes %q", secret, got)
		}
	}
}

// The secrets of a configuration are those in the files and variables that it names; certificates
// are not secret.
func TestRedactorReadsTheConfiguration(t *testing.T) {
	t.Setenv("FORGE_TOKEN", "secret-of-the-forge")
	token, certificate := tempfile.Write(t, "token", "secret-of-the-source\n"), tempfile.Write(t, "ca", "public-certificate")
	config := tempfile.Write(t, "gitfleet.yaml", "source: {tokenFile: "+token+", passwordFile: no/such/file}\nforge: {tokenEnv: FORGE_TOKEN}\nserver: {clientCAFile: "+certificate+", certFile: "+certificate+"}\n")
	c := &redactor{}
	if err := c.addConfigured(config); err != nil {
		t.Fatal(err)
	}
	if got := string(c.redact([]byte("secret-of-the-source secret-of-the-forge public-certificate"))); got != "[removed] [removed] public-certificate" {
		t.Errorf("it becomes %q", got)
	}
	if err := c.addConfigured(tempfile.Write(t, "gitfleet.yaml", "nonsense: 1\n")); err == nil || !strings.Contains(err.Error(), "unknown field") {
		t.Errorf("an invalid configuration: %v", err)
	}
}
