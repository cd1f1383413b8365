package forge

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// A Type is the software of a forge.
type Type string

// Gitea is Forgejo as well.
const Gitea Type = "gitea"

// Types are the types that [New] knows.
var Types = []Type{Gitea}

// Config says which repository of which forge is asked, and in whose name.
type Config struct {
	Type Type
	// URL is where the forge is, such as https://git.example.com.
	URL string
	// Repository is OWNER/NAME.
	Repository string
	// Token returns the access token. It is called before each request, so that one that
	// was replaced is used.
	Token func() (string, error)
	// CABundle is a PEM file of certificates to trust beside the system's.
	CABundle string
}

// Validate names the field that is wrong, unless it is the type.
func (c Config) Validate() error {
	u, err := url.Parse(c.URL)
	owner, name, found := strings.Cut(c.Repository, "/")
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("url: must be like https://git.example.com")
	case !found || owner == "" || name == "" || strings.ContainsAny(name, "/?#"):
		return fmt.Errorf("repository: %q is not OWNER/NAME", c.Repository)
	case c.Token == nil:
		return errors.New("a token is needed: set tokenFile or tokenEnv")
	}
	return nil
}
