package diagnostics

import "testing"

// Text that is not secret is not changed.
func TestACensorLeavesTheRest(t *testing.T) {
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
