package diagnostics

import (
	"bytes"
	"encoding/base64"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
)

// A redactor removes secrets from texts.
type redactor struct{ secrets [][]byte }

// redacted replaces a removed secret.
const redacted = "[removed]"

// patterns match credentials. What follows the first group is removed.
var patterns = []*regexp.Regexp{
	regexp.MustCompile(`()-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----[\s\S]*?-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----`),
	regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s"'@]+@`),
	regexp.MustCompile(`()\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?`),
	regexp.MustCompile(`()\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}|AKIA[A-Z0-9]{16}|xox[abprs]-[A-Za-z0-9-]{10,})`),
	regexp.MustCompile(`(?i)(\bauthorization["']?\s*[:=]\s*["']?[a-z]+\s+)[A-Za-z0-9+/=._~-]{4,}`),
	regexp.MustCompile(`(?i)(\bbearer\s+)[A-Za-z0-9+/=._~-]{16,}`),
	regexp.MustCompile(`(?i)(\b(?:password|passwd|passphrase|api[_-]?key|client[_-]?secret|access[_-]?key|token)["']?\s*[:=]\s*["']?)[^\s"',;&}]{4,}`),
}

// minSecret is the minimum length of a secret: shorter ones occur in every text.
const minSecret = 6

// addConfigured reads the secrets that a configuration names, as settings.Config.Named finds them.
// The files of certificates are public. A secret that cannot be read here
// cannot be in a text that was created here, so that this is not an error.
func (c *redactor) addConfigured(config string) error {
	cfg, err := settings.Read(config, pflag.NewFlagSet("", pflag.ContinueOnError))
	if err != nil {
		return err
	}
	for _, file := range cfg.Named("File") {
		if text, err := os.ReadFile(file.Name); err == nil && !strings.HasSuffix(file.Key, "CAFile") && !strings.HasSuffix(file.Key, "certFile") {
			c.add(text)
		}
	}
	keys, _ := cfg.DecryptionConfig().Files() // in a directory
	for _, name := range keys {
		if text, err := os.ReadFile(name); err == nil {
			c.add(text)
		}
	}
	for _, variable := range cfg.Named("Env") {
		c.add([]byte(os.Getenv(variable.Name)))
	}
	return nil
}

// add adds a secret to remove, also in base64, and each of its lines. For a line TOKEN,USER it
// also adds the token.
func (c *redactor) add(secret []byte) {
	parts := append(bytes.Split(secret, []byte("\n")), secret)
	for _, line := range parts {
		if token, _, ok := bytes.Cut(line, []byte(",")); ok {
			parts = append(parts, token)
		}
	}
	for _, part := range parts {
		if part = bytes.TrimSpace(part); len(part) < minSecret {
			continue
		}
		c.secrets = append(c.secrets, part)
		for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding} {
			c.secrets = append(c.secrets, []byte(e.EncodeToString(part)))
		}
	}
	// longer ones first, since a shorter one may be part of a longer one
	slices.SortFunc(c.secrets, func(a, b []byte) int { return len(b) - len(a) })
}

// redact returns a text without secrets.
func (c *redactor) redact(text []byte) []byte {
	for _, s := range c.secrets {
		text = bytes.ReplaceAll(text, s, []byte(redacted))
	}
	for _, p := range patterns {
		text = p.ReplaceAll(text, []byte("${1}"+redacted))
	}
	return text
}
