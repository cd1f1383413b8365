package forge

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// A Type is a kind of forge software.
type Type string

// The types of forges.
const (
	Gitea  Type = "gitea" // also Forgejo
	GitHub Type = "github"
	GitLab Type = "gitlab"
)

// Types are all types.
var Types = []Type{Gitea, GitHub, GitLab}

// Validate returns an error that names the types if there is no such type.
func (t Type) Validate() error {
	if slices.Contains(Types, t) {
		return nil
	}
	var names []string
	for _, known := range Types {
		names = append(names, string(known))
	}
	return fmt.Errorf("%q is none of %s", t, strings.Join(names, ", "))
}

// PushUser is the user name that goes with an access token when a branch is pushed over HTTP; empty
// if the forge accepts any.
func (t Type) PushUser() string {
	if t == GitLab {
		return "oauth2"
	}
	return ""
}

// AuthorSetsLabels reports whether the author of a pull request from a fork can set its labels, which
// then prove nothing.
func (t Type) AuthorSetsLabels() bool { return t == Gitea }

// TypeAt returns the type of the forge at an address; empty if the address does not say.
func TypeAt(address string) Type {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return ""
	case u.Hostname() == "github.com" || strings.HasSuffix(u.Hostname(), ".ghe.com"):
		return GitHub
	case u.Hostname() == "gitlab.com":
		return GitLab
	}
	return ""
}

// Config configures a client: the repository, the forge it is on, and the token to use.
type Config struct {
	Type Type
	// URL is the address of the forge, such as https://git.example.com.
	URL string
	// Repository is OWNER/NAME. On GitLab the owner may be a subgroup, as in
	// GROUP/SUBGROUP/NAME.
	Repository string
	// Token returns the access token. It is called before each request, so that the token can
	// be rotated.
	Token func() (string, error)
	// CABundle is a PEM file of certificates to trust beside the system's.
	CABundle string
}

// repositoryURL is the address of the repository in a browser.
func (c Config) repositoryURL() string { return strings.TrimSuffix(c.URL, "/") + "/" + c.Repository }

// Validate returns an error that names the invalid field. It does not check the type.
func (c Config) Validate() error {
	u, err := url.Parse(c.URL)
	parts := strings.Split(c.Repository, "/")
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("url: must be like https://git.example.com")
	case len(parts) < 2 || len(parts) > 2 && c.Type != GitLab || slices.Contains(parts, "") || strings.ContainsAny(c.Repository, "?#%"):
		return fmt.Errorf("repository: %q is not OWNER/NAME", c.Repository)
	case c.Token == nil:
		return errors.New("a token is needed: set tokenFile or tokenEnv")
	}
	return nil
}
