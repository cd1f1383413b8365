package settings

import (
	"strings"
	"testing"
)

// The default address of a daemon follows from the address on which it listens.
func TestWhereADaemonAnswers(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:8085": "http://127.0.0.1:8085", ":9000": "http://localhost:9000", "0.0.0.0:9000": "http://localhost:9000",
		"[::]:9000": "http://localhost:9000", "fleet.example:443": "http://fleet.example:443",
	} {
		c := Config{Listen: listen}
		if got := c.LocalAddress(); got != want {
			t.Errorf("%s: %s, want %s", listen, got, want)
		}
		c.Server.CertFile = "tls.crt"
		if got := c.LocalAddress(); got != strings.Replace(want, "http:", "https:", 1) {
			t.Errorf("with a certificate: %s", got)
		}
	}
}
