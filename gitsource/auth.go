package gitsource

import (
	"errors"
	"fmt"
	"net/http"
)

// Auth says how to authenticate. For https:// at most one of Token, Bearer and
// Password is set.
type Auth struct {
	// Token is an access token, sent as the password of Basic authentication:
	// what GitHub, GitLab, Gitea and Bitbucket expect.
	Token SecretSource
	// Bearer is sent as Authorization: Bearer, as Azure DevOps expects.
	Bearer SecretSource
	// Username goes with Password, or with Token in place of "git".
	Username string
	Password SecretSource
	// CABundle is a PEM file of certificates to trust beside the system's; it
	// is read again at each use.
	CABundle string
}

func (a Auth) validate(scheme string, hasEnv bool) error {
	var errs []error
	methods := 0
	for _, s := range []struct {
		field  string
		source SecretSource
	}{
		{"auth.token", a.Token}, {"auth.bearer", a.Bearer}, {"auth.password", a.Password},
	} {
		if s.source.IsZero() {
			continue
		}
		methods++
		errs = append(errs, s.source.validate(s.field, hasEnv))
		if scheme != "https" && scheme != "http" {
			errs = append(errs, fieldErrorf(s.field, "is for https://, the URL is %s", scheme))
		}
	}
	if methods > 1 {
		errs = append(errs, fieldErrorf("auth", "set only one of token, bearer and password"))
	}
	if !a.Password.IsZero() && a.Username == "" {
		errs = append(errs, fieldErrorf("auth.username", "must be set with a password"))
	}
	if a.CABundle != "" && scheme != "https" {
		errs = append(errs, fieldErrorf("auth.caBundle", "is for https://, the URL is %s", scheme))
	}
	return errors.Join(errs...)
}

// header answers the Authorization header as it has to be now; empty is none.
func (a Auth) header(getenv func(string) string) (Secret, error) {
	switch {
	case !a.Token.IsZero():
		s, err := a.Token.Read(getenv)
		return basic(or(a.Username, "git"), s), wrap("token", err)
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

// headerAuth puts a header on each request; the transport takes it off again
// if a redirect leaves the origin.
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
