package gitsource

import (
	"strings"
	"testing"
	"time"
)

// An address is understood as Git would, and shown without secrets.
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
			got, err := parseLocation(raw)
			if test.problem != "" {
				wantError(t, err, test.problem)
				if strings.Contains(err.Error(), "s3cret") {
					t.Errorf("error %q holds the secret", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.scheme != test.scheme || got.String() != test.shown || got.endpoint.Path != test.path {
				t.Errorf("is %s %s %q", got.scheme, got, got.endpoint.Path)
			}
		})
	}
}

// A wrong setting is named, and all of them at once.
func TestValidateNamesTheField(t *testing.T) {
	good := Config{URL: "https://example.com/a", StateDir: "/state"}
	token := SecretSource{File: "/token"}
	tests := map[string]struct {
		change func(c *Config)
		fields []string
	}{
		"fine":                      {func(*Config) {}, nil},
		"nothing":                   {func(c *Config) { *c = Config{} }, []string{"url: must be set", "stateDir: must name"}},
		"plain http":                {func(c *Config) { c.URL = "http://a/b" }, []string{"url: http:// is neither secret nor authentic"}},
		"plain http allowed":        {func(c *Config) { c.URL, c.AllowHTTP = "http://a/b", true }, nil},
		"path":                      {func(c *Config) { c.URL = "/srv/hub.git" }, []string{"url: a local path needs allowFile"}},
		"path allowed":              {func(c *Config) { c.URL, c.AllowFile = "/srv/hub.git", true }, nil},
		"relative state":            {func(c *Config) { c.StateDir = "state" }, []string{"stateDir: must be an absolute path"}},
		"hasty":                     {func(c *Config) { c.Interval = time.Millisecond }, []string{"interval: must be at least 1s"}},
		"negative":                  {func(c *Config) { c.Limits.FetchBytes, c.Limits.Packs = -1, -1 }, []string{"limits.fetchBytes", "limits.packs"}},
		"two references":            {func(c *Config) { c.Ref = Ref{Branch: "a", Tag: "b"} }, []string{"ref: set only one"}},
		"bad branch":                {func(c *Config) { c.Ref.Branch = "../a" }, []string{"ref.branch:"}},
		"bad tag":                   {func(c *Config) { c.Ref.Tag = "a..b" }, []string{"ref.tag:"}},
		"bad range":                 {func(c *Config) { c.Ref.SemVer = ">>1" }, []string{"ref.semver:"}},
		"short commit":              {func(c *Config) { c.Ref.Commit = "abcdef" }, []string{"ref.commit:"}},
		"two credentials":           {func(c *Config) { c.Auth.Token, c.Auth.Bearer = token, token }, []string{"auth: set only one"}},
		"two sources":               {func(c *Config) { c.Auth.Token = SecretSource{File: "/a", Env: "B"} }, []string{"auth.token: set only one of file and env"}},
		"no environment":            {func(c *Config) { c.Auth.Token = SecretSource{Env: "B"} }, []string{"auth.token.env: the environment"}},
		"password alone":            {func(c *Config) { c.Auth.Password = token }, []string{"auth.username: must be set"}},
		"token over ssh":            {func(c *Config) { c.URL, c.Auth.Token = "git@a:b", token }, []string{"auth.token: does not fit", "auth.ssh.key: must be set", "auth.ssh.knownHosts: must be set"}},
		"key over https":            {func(c *Config) { c.Auth.SSH.Key = token }, []string{"auth.ssh.key: does not fit"}},
		"bundle over ssh":           {func(c *Config) { c.URL, c.Auth.CABundle = "git@a:b", "/ca" }, []string{"auth.caBundle: does not fit"}},
		"half an app":               {func(c *Config) { c.Auth.GitHubApp.ID = "1" }, []string{"auth.githubApp.installation:", "auth.githubApp.key:"}},
		"app over plain http":       {func(c *Config) { c.Auth.GitHubApp = GitHubApp{"1", 1, token, "http://api"} }, []string{"auth.githubApp.apiURL:"}},
		"signatures by nobody":      {func(c *Config) { c.Signatures = &Signatures{} }, []string{"signatures: set openPGP or allowedSigners"}},
		"signatures since whatever": {func(c *Config) { c.Signatures = &Signatures{AllowedSigners: "/a", Since: "v1"} }, []string{"signatures.since:"}},
		"signed paths": {func(c *Config) {
			c.Signatures = &Signatures{AllowedSigners: "/a", Paths: []SignedPath{{"a/", []string{"x"}}, {"b", nil}, {"c", []string{"x"}}, {"c", []string{"y"}}}}
		}, []string{"signatures.paths[0].path:", "signatures.paths[1].signers:", "signatures.paths[3].path:"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := good
			test.change(&c)
			err := c.Validate()
			if len(test.fields) == 0 {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			wantError(t, err, test.fields...)
		})
	}
}

// However a repository is reached, and whoever reaches it, it has one identity.
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
