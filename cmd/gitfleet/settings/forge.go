package settings

import (
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/forge"
)

// ForgeConfig configures the forge on which pull requests are opened.
type ForgeConfig struct {
	Type       string `json:"type,omitempty"`
	URL        string `json:"url,omitempty"`
	Repository string `json:"repository,omitempty"`
	TokenFile  string `json:"tokenFile,omitempty"`
	TokenEnv   string `json:"tokenEnv,omitempty"`
	// SigningKeyFile is the private key that signs commits of gitfleet.
	SigningKeyFile string `json:"signingKeyFile,omitempty"`
	// Interval is the time between two checks of open pull requests.
	Interval metav1.Duration `json:"interval,omitzero"`
}

func (f *ForgeConfig) settings() []setting {
	return []setting{
		{"forge.type", &f.Type, "what the forge is: gitea (Forgejo too), github or gitlab; known of github.com, ghe.com and gitlab.com"},
		{"forge.url", &f.URL, "where the forge is, such as https://git.example.com; from source.url if that is https:// and this is not set"},
		{"forge.repository", &f.Repository, "repository as OWNER/NAME, on GitLab also GROUP/SUBGROUP/NAME; from source.url if that is https:// and this is not set"},
		{"forge.tokenFile", &f.TokenFile, "file with an access token that may write to the repository, its pull requests and its issues"},
		{"forge.tokenEnv", &f.TokenEnv, "environment variable with such a token"},
		{"forge.signingKeyFile", &f.SigningKeyFile, "file with an OpenPGP or SSH private key, without a passphrase, that signs the commits of pull requests"},
		{"forge.interval", &f.Interval, "time between two looks at open pull requests"},
	}
}

func (c Config) validateForge() []error {
	var errs []error
	if !slices.Contains(forge.Types, c.ForgeConfig().Type) {
		errs = append(errs, c.fault("forge.type", fmt.Sprintf("%q is none of gitea, github, gitlab", c.Forge.Type)))
	}
	if (c.Forge.TokenFile == "") == (c.Forge.TokenEnv == "") {
		errs = append(errs, c.fault("forge.tokenFile", "set one of tokenFile and tokenEnv"))
	}
	if c.Forge.Interval.Duration < time.Second {
		errs = append(errs, c.fault("forge.interval", fmt.Sprintf("must be at least 1s, is %s", c.Forge.Interval.Duration)))
	}
	f := c.ForgeConfig()
	if err := f.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("forge.%w", err))
	}
	if strings.HasPrefix(f.URL, "http://") && !c.Source.AllowHTTP {
		errs = append(errs, c.fault("forge.url", "must be https://, since a token is sent; source.allowHTTP allows http://"))
	}
	return errs
}

// ForgeConfig returns the configuration of the forge. Values that are not set are derived from
// the address of the source.
func (c Config) ForgeConfig() forge.Config {
	f := forge.Config{Type: forge.Type(c.Forge.Type), URL: c.Forge.URL, Repository: c.Forge.Repository, CABundle: c.Source.CABundle}
	if u, err := url.Parse(c.Source.URL); err == nil && (u.Scheme == "https" || u.Scheme == "http") {
		if f.URL == "" {
			f.URL = u.Scheme + "://" + u.Host
		}
		if f.Repository == "" {
			f.Repository = strings.TrimSuffix(strings.Trim(u.Path, "/"), ".git")
		}
	}
	if f.Type == "" {
		f.Type = forge.TypeAt(f.URL)
	}
	token := secret(c.Forge.TokenFile, c.Forge.TokenEnv)
	f.Token = func() (string, error) {
		s, err := token.Read(os.Getenv)
		return s.Reveal(), err
	}
	return f
}
