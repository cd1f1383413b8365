package replica

import (
	"net"
	"net/url"
	"testing"
)

// A replica that listens on all addresses says the one that the management cluster sees; others are said as they are.
func TestOwnAddress(t *testing.T) {
	const management = "https://127.0.0.1:6443"
	for address, want := range map[string]string{
		"http://127.0.0.1:8080": "http://127.0.0.1:8080",
		"https://fleet:8443":    "https://fleet:8443",
		"https://:8443":         "https://127.0.0.1:8443",
		"https://0.0.0.0:8443":  "https://127.0.0.1:8443",
		"https://[::]:8443":     "https://127.0.0.1:8443",
		"":                      "",
	} {
		if got := ownAddress(address, management); got != want {
			t.Errorf("%q: %q, want %q", address, got, want)
		}
	}
	got, err := url.Parse(ownAddress("https://:8443", "https://192.0.2.1"))
	if err == nil && got.Host != "" && net.ParseIP(got.Hostname()) == nil {
		t.Errorf("through another machine: %s", got)
	}
}
