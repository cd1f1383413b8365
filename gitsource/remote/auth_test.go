package remote

import (
	"encoding/base64"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"
)

// Validate names every field that does not fit the scheme or another field.
func TestAuthValidate(t *testing.T) {
	file := SecretSource{File: "/secret"}
	ssh := SSH{Key: file, KnownHosts: "/known_hosts"}
	tests := map[string]struct {
		auth   Auth
		scheme string
		fields string
	}{
		"nothing":             {Auth{}, "https", ""},
		"token":               {Auth{Token: file}, "https", ""},
		"token over http":     {Auth{Token: file}, "http", ""},
		"token with a user":   {Auth{Token: file, Username: "ada"}, "https", ""},
		"key":                 {Auth{SSH: ssh}, "ssh", ""},
		"app":                 {Auth{GitHubApp: GitHubApp{ID: "1", Installation: 2, Key: file}}, "https", ""},
		"token for a path":    {Auth{Token: file}, "file", "auth.token"},
		"key over https":      {Auth{SSH: ssh}, "https", "auth.ssh.key"},
		"passphrase alone":    {Auth{SSH: SSH{Passphrase: file}}, "ssh", "auth.ssh.key auth.ssh.knownHosts"},
		"two methods":         {Auth{Token: file, Bearer: file}, "https", "auth"},
		"password alone":      {Auth{Password: file}, "https", "auth.username"},
		"bundle over ssh":     {Auth{SSH: ssh, CABundle: "/ca.pem"}, "ssh", "auth.caBundle"},
		"two sources":         {Auth{Token: SecretSource{File: "/a", Env: "A"}}, "https", "auth.token"},
		"no environment":      {Auth{Token: SecretSource{Env: "A"}}, "https", "auth.token.env"},
		"app of nobody":       {Auth{GitHubApp: GitHubApp{Key: file}}, "https", "auth.githubApp.id auth.githubApp.installation"},
		"app without a key":   {Auth{GitHubApp: GitHubApp{ID: "1", Installation: 2}}, "https", "auth.githubApp.key"},
		"app at no address":   {Auth{GitHubApp: GitHubApp{ID: "1", Installation: 2, Key: file, APIURL: "api"}}, "https", "auth.githubApp.apiURL"},
		"app over plain http": {Auth{GitHubApp: GitHubApp{ID: "1", Installation: 2, Key: file, APIURL: "http://api"}}, "https", "auth.githubApp.apiURL"},
	}
	for name, test := range tests {
		var fields []string
		if joined, ok := test.auth.Validate(test.scheme, false).(interface{ Unwrap() []error }); ok {
			fields = fieldsOf(joined.Unwrap())
		}
		if got := strings.Join(fields, " "); got != test.fields {
			t.Errorf("%s: invalid are %q, want %q", name, got, test.fields)
		}
	}
}

// fieldsOf returns the names of the fields in errors that may be joined ones.
func fieldsOf(errs []error) []string {
	var fields []string
	for _, err := range errs {
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			fields = append(fields, fieldsOf(joined.Unwrap())...)
		} else if f, ok := errors.AsType[*FieldError](err); ok {
			fields = append(fields, f.Field)
		}
	}
	return fields
}

// Each method has its own form of the header. The secret is read for each use.
func TestHeader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte("secret\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, absent := SecretSource{File: path}, SecretSource{File: path + ".absent"}
	basic := func(text string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(text)) }
	tests := map[string]struct {
		auth Auth
		want string
		says string
	}{
		"nothing":           {Auth{}, "", ""},
		"token":             {Auth{Token: file}, basic("git:secret"), ""},
		"token with a user": {Auth{Token: file, Username: "ada"}, basic("ada:secret"), ""},
		"password":          {Auth{Password: file, Username: "ada"}, basic("ada:secret"), ""},
		"bearer":            {Auth{Bearer: file}, "Bearer secret", ""},
		"no token":          {Auth{Token: absent}, "", "read token: "},
		"no password":       {Auth{Password: absent}, "", "read password: "},
		"no bearer token":   {Auth{Bearer: absent}, "", "read bearer token: "},
	}
	for name, test := range tests {
		got, err := test.auth.Header(nil)
		if test.says != "" {
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%s: %v, want %q", name, err, test.says)
			}
			continue
		}
		req := &http.Request{Header: http.Header{}}
		headerAuth{got}.SetAuth(req)
		if sent := req.Header.Get("Authorization"); err != nil || sent != test.want {
			t.Errorf("%s: sent %q (%v), want %q", name, sent, err, test.want)
		}
	}
}

// The error of a response has its usual fix, unless the server only asks for patience.
func TestHTTPErrorHasTheFix(t *testing.T) {
	for want, e := range map[string]HTTPError{
		"server answered 500 Internal Server Error":                                               {Status: 500},
		"server answered 404 Not Found: no (check the URL, and that the credentials may read it)": {Status: 404, Detail: "no"},
		"server answered 403 Forbidden (the token must be allowed to write to the repository)":    {Status: 403, Push: true},
		"server answered 403 Forbidden (check the URL, and that the credentials may read it)":     {Status: 403},
		"server answered 429 Too Many Requests (asks to wait 1m0s)":                               {Status: 429, RetryAfter: time.Minute},
		"server answered 403 Forbidden (asks to wait 1s)":                                         {Status: 403, RetryAfter: time.Second},
	} {
		if got := e.Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A push that is refused for its credentials says what they need. Other errors stay as they are.
func TestExplainRefusal(t *testing.T) {
	for _, test := range []struct {
		err      error
		explains bool
	}{
		{&HTTPError{Status: http.StatusUnauthorized}, true},
		{&HTTPError{Status: http.StatusForbidden}, true},
		{transport.ErrAuthorizationFailed, true},
		{transport.ErrAuthenticationRequired, true},
		{errClosedBySSH, true},
		{&HTTPError{Status: http.StatusNotFound}, false},
		{errors.New("hook declined"), false},
	} {
		got := ExplainRefusal(test.err)
		if !errors.Is(got, test.err) || strings.Contains(got.Error(), "must be allowed to write") != test.explains {
			t.Errorf("%v is explained as %v", test.err, got)
		}
	}
}
