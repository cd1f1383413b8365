package settings

import (
	"fmt"
	"os"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/remote"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/gate"
)

// GateConfig returns the configuration of package gate, without what receives the answers.
func (c Config) GateConfig() gate.Config {
	out := gate.Config{Getenv: os.Getenv}
	for _, s := range c.Gates.Servers {
		out.Servers = append(out.Servers, gate.Server{
			URL: s.URL, CertFile: s.CertFile, KeyFile: s.KeyFile,
			Auth: remote.Auth{Username: s.Username, Password: secret(s.PasswordFile, s.PasswordEnv), Bearer: secret(s.BearerFile, s.BearerEnv), CABundle: s.CABundle},
		})
	}
	return out
}

// allowed are the servers that gates may ask.
func (c GatesConfig) allowed(refuse bool) *hub.GateServers {
	out := &hub.GateServers{Refuse: refuse}
	for _, s := range c.Servers {
		out.URLs = append(out.URLs, s.URL)
	}
	return out
}

func validateGates(c Config) []error {
	var errs []error
	seen := map[string]bool{}
	for i, s := range c.Gates.Servers {
		fault := func(field, message string) {
			errs = append(errs, c.fault(fmt.Sprintf("gates.servers[%d].%s", i, field), message))
		}
		secure, set := strings.HasPrefix(s.URL, "https://"), 0
		for _, source := range []string{s.PasswordFile, s.PasswordEnv, s.BearerFile, s.BearerEnv} {
			if source != "" {
				set++
			}
		}
		if err := api.CheckAddress(s.URL); err != nil {
			fault("url", err.Error())
		}
		switch {
		case seen[s.URL]:
			fault("url", s.URL+" is there twice; remove one entry")
		case strings.Contains(s.URL, "?"):
			fault("url", "has a query; write only the address and the path below which gates may ask")
		case set > 1:
			fault("url", "set only one of passwordFile, passwordEnv, bearerFile and bearerEnv")
		case set > 0 && !secure:
			fault("url", "must be https://, since credentials are sent")
		}
		seen[s.URL] = true
		if (s.PasswordFile+s.PasswordEnv == "") != (s.Username == "") {
			fault("username", "must be set with a password")
		}
		if (s.CertFile == "") != (s.KeyFile == "") {
			fault("certFile", "certFile and keyFile are set together")
		}
		if s.CABundle+s.CertFile != "" && !secure {
			fault("url", "must be https:// for caBundle and certFile to have an effect")
		}
	}
	return errs
}
