package connection

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"

	"k8s.io/client-go/rest"
)

// credentials returns the current client configuration of the cluster. The files that it names
// are already read into it, so that it cannot change afterwards.
func (c Config) credentials(ctx context.Context) (*rest.Config, error) {
	cfg, err := c.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return read(cfg)
}

// namesFiles reports whether a client configuration names files, which may change while it does not.
func namesFiles(cfg *rest.Config) bool {
	return cfg.CAFile != "" || cfg.CertFile != "" || cfg.KeyFile != "" || cfg.BearerTokenFile != ""
}

// read returns a copy of a client configuration that names no files.
func read(cfg *rest.Config) (*rest.Config, error) {
	cfg = rest.CopyConfig(cfg)
	if err := rest.LoadTLSFiles(cfg); err != nil {
		return nil, fmt.Errorf("read the certificates of the credentials: %w", err)
	}
	cfg.CAFile, cfg.CertFile, cfg.KeyFile = "", "", ""
	if cfg.BearerTokenFile != "" {
		token, err := os.ReadFile(cfg.BearerTokenFile)
		if err != nil {
			return nil, fmt.Errorf("read the token of the credentials: %w", err)
		}
		if cfg.BearerToken = strings.TrimSpace(string(token)); cfg.BearerToken == "" {
			return nil, fmt.Errorf("read the token of the credentials: %s is empty", cfg.BearerTokenFile)
		}
		cfg.BearerTokenFile = ""
	}
	return cfg, nil
}

// A fingerprint is a hash of credentials. Two configurations with the same credentials have the
// same fingerprint.
type fingerprint [sha256.Size]byte

// fingerprintOf computes the fingerprint of a client configuration. Files that the
// configuration names must have been read into it.
func fingerprintOf(cfg *rest.Config) fingerprint {
	proxy := ""
	if cfg.Proxy != nil {
		if r, err := http.NewRequest(http.MethodGet, cfg.Host, nil); err == nil {
			u, err := cfg.Proxy(r)
			proxy = fmt.Sprint(u, err)
		}
	}
	text, err := json.Marshal([]any{
		cfg.Host, cfg.APIPath, cfg.Username, cfg.Password, cfg.BearerToken, cfg.Impersonate, cfg.ServerName, cfg.Insecure,
		cfg.CAData, cfg.CertData, cfg.KeyData, cfg.DisableCompression, proxy, cfg.ExecProvider, cfg.AuthProvider,
	})
	if err != nil {
		text = []byte(err.Error()) // a credential plugin renews its credentials itself
	}
	return sha256.Sum256(text)
}
