package remote

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Auth configures authentication. For https:// at most one of Token, Bearer, Password and
// GitHubApp is set; for ssh:// SSH is set.
type Auth struct {
	// Token is an access token, sent as the password of Basic authentication, which GitHub,
	// GitLab, Gitea and Bitbucket expect.
	Token SecretSource
	// Bearer is sent as Authorization: Bearer, which Azure DevOps expects.
	Bearer SecretSource
	// Username is used with Password, or with Token instead of "git".
	Username string
	Password SecretSource
	// GitHubApp requests tokens that are valid for an hour.
	GitHubApp GitHubApp
	SSH       SSH
	// CABundle is a PEM file of CA certificates in addition to the system's; it is read again
	// for each use.
	CABundle string
}

// SSH authenticates to the server with a key, and verifies the server with known_hosts.
type SSH struct {
	// Key is a private key in PEM or OpenSSH form.
	Key SecretSource
	// Passphrase decrypts the key if it is encrypted.
	Passphrase SecretSource
	// KnownHosts is a file in OpenSSH's format. It is required, since any server would be
	// trusted without it.
	KnownHosts string
}

// sources returns every configured secret.
func (a Auth) sources() []namedSource {
	all := []namedSource{
		{"auth.token", a.Token, "http"},
		{"auth.bearer", a.Bearer, "http"},
		{"auth.password", a.Password, "http"},
		{"auth.githubApp.key", a.GitHubApp.Key, "http"},
		{"auth.ssh.key", a.SSH.Key, "ssh"},
		{"auth.ssh.passphrase", a.SSH.Passphrase, "ssh"},
	}
	return slices.DeleteFunc(all, func(s namedSource) bool { return s.source.IsZero() })
}

type namedSource struct {
	field  string
	source SecretSource
	scheme string
}

// Anonymous returns the same without what a server could use elsewhere: tokens and passwords. A key of SSH stays, since it
// never leaves the machine.
func (a Auth) Anonymous() Auth { return Auth{SSH: a.SSH, CABundle: a.CABundle} }

// Or returns the same with the key of SSH and the CAs of another one, where it has none.
func (a Auth) Or(other Auth) Auth {
	if a.SSH.Key.IsZero() {
		a.SSH = other.SSH
	}
	a.CABundle = cmp.Or(a.CABundle, other.CABundle)
	return a
}

// Validate returns all problems of the configuration for a URL with this scheme, each as a
// FieldError. hasEnv says that secrets may be in the environment.
func (a Auth) Validate(scheme string, hasEnv bool) error {
	var errs []error
	methods := 0
	for _, s := range a.sources() {
		errs = append(errs, s.source.validate(s.field, hasEnv))
		if strings.TrimSuffix(scheme, "s") != s.scheme && scheme != s.scheme {
			errs = append(errs, FieldErrorf(s.field, "does not fit a URL of %s://", scheme))
		}
		if s.scheme == "http" {
			methods++
		}
	}
	if methods > 1 {
		errs = append(errs, FieldErrorf("auth", "set only one of token, bearer, password and githubApp"))
	}
	if !a.Password.IsZero() && a.Username == "" {
		errs = append(errs, FieldErrorf("auth.username", "must be set with a password"))
	}
	if a.CABundle != "" && scheme != "https" {
		errs = append(errs, FieldErrorf("auth.caBundle", "does not fit a URL of %s://", scheme))
	}
	if scheme == "ssh" {
		errs = append(errs, a.SSH.validate())
	}
	errs = append(errs, a.GitHubApp.validate(scheme))
	return errors.Join(errs...)
}

func (s SSH) validate() error {
	var errs []error
	if s.Key.IsZero() {
		errs = append(errs, FieldErrorf("auth.ssh.key", "must be set for ssh://"))
	}
	if s.KnownHosts == "" {
		errs = append(errs, FieldErrorf("auth.ssh.knownHosts",
			"must be set for ssh://: a file with the server's host key, as ssh-keyscan prints it; compare it with what the server's owner publishes"))
	}
	return errors.Join(errs...)
}

// Header returns the current Authorization header; empty if there is none. That of a GitHubApp is not among them.
func (a Auth) Header(getenv func(string) string) (Secret, error) {
	switch {
	case !a.Token.IsZero():
		s, err := a.Token.Read(getenv)
		return basic(cmp.Or(a.Username, "git"), s), wrap("token", err)
	case !a.Password.IsZero():
		s, err := a.Password.Read(getenv)
		return basic(a.Username, s), wrap("password", err)
	case !a.Bearer.IsZero():
		s, err := a.Bearer.Read(getenv)
		return Secret{"Bearer " + s.value}, wrap("bearer token", err)
	}
	return Secret{}, nil
}

func basic(user string, password Secret) Secret {
	r := http.Request{Header: http.Header{}}
	r.SetBasicAuth(user, password.value)
	return Secret{r.Header.Get("Authorization")}
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("read %s: %w", what, err)
}

// headerAuth sets a header on each request. The transport removes it if a redirect leads to
// another origin.
type headerAuth struct{ header Secret }

// Name implements transport.AuthMethod.
func (headerAuth) Name() string { return "header" }

// String implements transport.AuthMethod.
func (headerAuth) String() string { return masked }

// SetAuth implements http.AuthMethod.
func (a headerAuth) SetAuth(r *http.Request) {
	if !a.header.Empty() {
		r.Header.Set("Authorization", a.header.value)
	}
}
