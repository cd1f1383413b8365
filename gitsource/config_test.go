package gitsource

import (
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub/grant"
	"github.com/gitfleet/gitfleet/gitsource/remote"
)

// Validate reports all invalid fields at once, each by its name.
func TestValidateNamesTheField(t *testing.T) {
	good := Config{URL: "https://example.com/a", Dir: "/state"}
	token := remote.SecretSource{File: "/token"}
	tests := map[string]struct {
		change func(c *Config)
		fields []string
	}{
		"fine":               {func(*Config) {}, nil},
		"nothing":            {func(c *Config) { *c = Config{} }, []string{"url: must be set", "stateDir: must name"}},
		"plain http":         {func(c *Config) { c.URL = "http://a/b" }, []string{"url: http:// is neither secret nor authentic"}},
		"plain http allowed": {func(c *Config) { c.URL, c.AllowHTTP = "http://a/b", true }, nil},
		"path":               {func(c *Config) { c.URL = "/srv/hub.git" }, []string{"url: a local path needs allowFile"}},
		"path allowed":       {func(c *Config) { c.URL, c.AllowFile = "/srv/hub.git", true }, nil},
		"relative state":     {func(c *Config) { c.Dir = "state" }, []string{"stateDir: must be an absolute path"}},
		"hasty":              {func(c *Config) { c.Interval = time.Millisecond }, []string{"interval: must be at least 1s"}},
		"negative":           {func(c *Config) { c.Limits.FetchBytes, c.Limits.Packs = -1, -1 }, []string{"limits.fetchBytes", "limits.packs"}},
		"two references":     {func(c *Config) { c.Ref = Ref{Branch: "a", Tag: "b"} }, []string{"ref: set only one"}},
		"bad branch":         {func(c *Config) { c.Ref.Branch = "../a" }, []string{"ref.branch:"}},
		"bad tag":            {func(c *Config) { c.Ref.Tag = "a..b" }, []string{"ref.tag:"}},
		"bad range":          {func(c *Config) { c.Ref.SemVer = ">>1" }, []string{"ref.semver:"}},
		"short commit":       {func(c *Config) { c.Ref.Commit = "abcdef" }, []string{"ref.commit:"}},
		"two credentials":    {func(c *Config) { c.Auth.Token, c.Auth.Bearer = token, token }, []string{"auth: set only one"}},
		"two sources":        {func(c *Config) { c.Auth.Token = remote.SecretSource{File: "/a", Env: "B"} }, []string{"auth.token: set only one of file and env"}},
		"no environment":     {func(c *Config) { c.Auth.Token = remote.SecretSource{Env: "B"} }, []string{"auth.token.env: the environment"}},
		"password alone":     {func(c *Config) { c.Auth.Password = token }, []string{"auth.username: must be set"}},
		"token over ssh":     {func(c *Config) { c.URL, c.Auth.Token = "git@a:b", token }, []string{"auth.token: does not fit", "auth.ssh.key: must be set", "auth.ssh.knownHosts: must be set"}},
		"key over https":     {func(c *Config) { c.Auth.SSH.Key = token }, []string{"auth.ssh.key: does not fit"}},
		"bundle over ssh":    {func(c *Config) { c.URL, c.Auth.CABundle = "git@a:b", "/ca" }, []string{"auth.caBundle: does not fit"}},
		"half an app":        {func(c *Config) { c.Auth.GitHubApp.ID = "1" }, []string{"auth.githubApp.installation:", "auth.githubApp.key:"}},
		"app over plain http": {func(c *Config) {
			c.Auth.GitHubApp = remote.GitHubApp{ID: "1", Installation: 1, Key: token, APIURL: "http://api"}
		}, []string{"auth.githubApp.apiURL:"}},
		"signatures by nobody":      {func(c *Config) { c.Signatures = &Signatures{} }, []string{"signatures: set openPGP or allowedSigners"}},
		"signatures since whatever": {func(c *Config) { c.Signatures = &Signatures{AllowedSigners: "/a", Since: "v1"} }, []string{"signatures.since:"}},
		"signed paths": {func(c *Config) {
			c.Signatures = &Signatures{AllowedSigners: "/a", Paths: []SignedPath{
				{grant.Grant{Path: "a/"}, []string{"x"}}, {grant.Grant{Path: "b"}, nil}, {grant.Grant{Path: "c"}, []string{"x"}}, {grant.Grant{Path: "c"}, []string{"y"}},
				{grant.Grant{Path: "d", Kinds: []string{"["}}, []string{"y"}}, {grant.Grant{Path: "e", SharedBases: []string{"c/base"}}, []string{"y"}},
			}}
		}, []string{"signatures.paths[0].path:", "signatures.paths[1].signers:", "signatures.paths[3].path:", "signatures.paths[4].kinds[0]:", "signatures.paths[5].sharedBases[0]:"}},
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
