package remote

import (
	"strings"
	"testing"
)

// Addresses are parsed as Git does, and shown without secrets.
func TestParseLocation(t *testing.T) {
	tests := map[string]struct{ scheme, shown, path, problem string }{
		"https://example.com/a/b.git":                 {scheme: "https", shown: "https://example.com/a/b.git", path: "/a/b.git"},
		"https://example.com/a/":                      {scheme: "https", shown: "https://example.com/a", path: "/a"},
		"https://example.com:8443/a":                  {scheme: "https", shown: "https://example.com:8443/a", path: "/a"},
		"http://[::1]:80/a":                           {scheme: "http", shown: "http://[::1]/a", path: "/a"},
		"ssh://git@example.com:2222/a/b.git":          {scheme: "ssh", shown: "ssh://git@example.com:2222/a/b.git", path: "/a/b.git"},
		"ssh://example.com/a":                         {scheme: "ssh", shown: "ssh://git@example.com/a", path: "/a"},
		"git@example.com:a/b.git":                     {scheme: "ssh", shown: "ssh://git@example.com/a/b.git", path: "a/b.git"},
		"example.com:a":                               {scheme: "ssh", shown: "ssh://git@example.com/a", path: "a"},
		"file:///srv/hub.git":                         {scheme: "file", shown: "file:///srv/hub.git", path: "/srv/hub.git"},
		"/srv/../srv/hub.git":                         {scheme: "file", shown: "file:///srv/hub.git", path: "/srv/hub.git"},
		"":                                            {problem: "must be set"},
		"hub.git":                                     {problem: "neither a URL"},
		"./hub.git":                                   {problem: "neither a URL"},
		"https://user:s3cret@example.com/a":           {problem: "must not carry credentials"},
		"https://s3cret@example.com/a":                {problem: "must not carry credentials"},
		"https://example.com/a?token=s3cret":          {problem: "query"},
		"https://example.com/a#s3cret":                {problem: "fragment"},
		"ssh://git:s3cret@example.com/a":              {problem: "must not carry a password"},
		"https://us%er:s3cret@exa mple.com/a":         {problem: "is not a URL"},
		"https://example.com/a\nb":                    {problem: "control character"},
		"git://example.com/a":                         {problem: `scheme "git" is not supported`},
		"ext::sh -c s3cret":                           {problem: "neither a URL"},
		"https:///a":                                  {problem: "names no host"},
		"file://elsewhere/a":                          {problem: "not on this machine"},
		"-oProxyCommand=s3cret:a":                     {problem: "dash"},
		"example.com:-upload-pack=s3cret":             {problem: "dash"},
		"ssh://-oProxyCommand=s3cret.example.com/a/b": {problem: "dash"},
	}
	for raw, test := range tests {
		t.Run(raw, func(t *testing.T) {
			got, err := ParseLocation(raw)
			if test.problem != "" {
				if err == nil || !strings.Contains(err.Error(), test.problem) || strings.Contains(err.Error(), "s3cret") {
					t.Errorf("%v does not say %q, or holds the secret", err, test.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Scheme != test.scheme || got.String() != test.shown || got.endpoint.Path != test.path {
				t.Errorf("is %s %s %q", got.Scheme, got, got.endpoint.Path)
			}
		})
	}
}

// A repository has the same identity over every transport and for every user.
func TestIdentity(t *testing.T) {
	tests := map[string]string{
		"https://git.example.com/team/fleet":          "git.example.com/team/fleet",
		"https://git.example.com:443/team/fleet.git/": "git.example.com/team/fleet",
		"https://GIT.example.com/team/fleet.git":      "git.example.com/team/fleet",
		"git@git.example.com:team/fleet.git":          "git.example.com/team/fleet",
		"ssh://someone@git.example.com/team/fleet":    "git.example.com/team/fleet",
		"https://git.example.com:8443/team/fleet":     "git.example.com:8443/team/fleet",
		"https://git.example.com/team/Fleet":          "git.example.com/team/Fleet",
		"http://[::1]:8080/fleet":                     "[::1]:8080/fleet",
		"/srv/git/fleet.git":                          "file:///srv/git/fleet",
		"file:///srv/git/fleet":                       "file:///srv/git/fleet",
		"https://user:canary@git.example.com/fleet":   "",
	}
	for in, want := range tests {
		if got := Identity(in); got != want {
			t.Errorf("Identity(%q) = %q, want %q", in, got, want)
		}
	}
}
