package kubeconfig

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
)

// planted is part of every credential, so that tests can check that no error contains it.
const planted = "planted-credential-7f3a"

// configOf returns a kubeconfig in which each context has a different server, so that a test
// can see which one was used.
func configOf(current string, contexts ...string) string {
	var clusters, users, links strings.Builder
	for _, c := range contexts {
		clusters.WriteString("- {name: " + c + ", cluster: {server: 'https://" + c + ".example:6443'}}\n")
		users.WriteString("- {name: " + c + ", user: {token: " + planted + "}}\n")
		links.WriteString("- {name: " + c + ", context: {cluster: " + c + ", user: " + c + "}}\n")
	}
	return "apiVersion: v1\nkind: Config\ncurrent-context: " + current +
		"\nclusters:\n" + clusters.String() + "users:\n" + users.String() + "contexts:\n" + links.String()
}

// single is a kubeconfig with one context and the given cluster and user.
func single(cluster, user string) string {
	return "apiVersion: v1\nkind: Config\ncurrent-context: m\nclusters: [{name: m, cluster: " + cluster +
		"}]\nusers: [{name: m, user: " + user + "}]\ncontexts: [{name: m, context: {cluster: m, user: m}}]\n"
}

// sources are Sources with files and Secrets: those of Dir, File and Secrets that are not
// nil are set.
type sources struct {
	dir     map[string]string // by file name
	file    string
	secrets map[string]string // by Secret name
}

func (s sources) credentials(t *testing.T) Sources {
	t.Helper()
	var c Sources
	if s.dir != nil {
		c.Dir = t.TempDir()
		for name, text := range s.dir {
			write(t, filepath.Join(c.Dir, name), text)
		}
	}
	if s.file != "" {
		c.File = filepath.Join(t.TempDir(), "config")
		write(t, c.File, s.file)
	}
	if s.secrets != nil {
		var objects []runtime.Object
		for name, text := range s.secrets {
			objects = append(objects, &core.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "gitfleet", Name: name},
				Data:       map[string][]byte{"value": []byte(text)},
			})
		}
		c.Secrets = fake.NewClientset(objects...).CoreV1().Secrets("gitfleet")
	}
	return c
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The first source that has the member is used, and in it the requested context.
func TestCredentialsAreFound(t *testing.T) {
	tests := map[string]struct {
		in      sources
		context string
		want    string
	}{
		"a file of its own": {
			in:   sources{dir: map[string]string{"east.kubeconfig": configOf("a", "a", "b")}},
			want: "https://a.example:6443",
		},
		"a file of its own, another context": {
			in:      sources{dir: map[string]string{"east.kubeconfig": configOf("a", "a", "b")}},
			context: "b", want: "https://b.example:6443",
		},
		"a context named like it": {
			in:   sources{file: configOf("west", "west", "east")},
			want: "https://east.example:6443",
		},
		"a context named otherwise": {
			in:      sources{file: configOf("east", "east", "prod-east")},
			context: "prod-east", want: "https://prod-east.example:6443",
		},
		"a Secret": {
			in:   sources{secrets: map[string]string{"east-kubeconfig": configOf("a", "a", "b")}},
			want: "https://a.example:6443",
		},
		"a Secret, another context": {
			in:      sources{secrets: map[string]string{"east-kubeconfig": configOf("a", "a", "b")}},
			context: "b", want: "https://b.example:6443",
		},
		"its own file before the shared one": {
			in:   sources{dir: map[string]string{"east.kubeconfig": configOf("own", "own")}, file: configOf("east", "east")},
			want: "https://own.example:6443",
		},
		"the shared file where it has none of its own": {
			in:   sources{dir: map[string]string{"west.kubeconfig": configOf("own", "own")}, file: configOf("east", "east")},
			want: "https://east.example:6443",
		},
		"a Secret where the shared file does not know it": {
			in: sources{
				dir: map[string]string{}, file: configOf("west", "west"),
				secrets: map[string]string{"east-kubeconfig": configOf("own", "own")},
			},
			want: "https://own.example:6443",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := test.in.credentials(t).Config(t.Context(), "east", test.context)
			if err != nil {
				t.Fatal(err)
			}
			if got.Host != test.want || got.BearerToken != planted {
				t.Errorf("host %s, token %q; want %s and the user's token", got.Host, got.BearerToken, test.want)
			}
		})
	}
}

// A rotated credential is used by the next connection, since nothing is cached.
func TestCredentialsAreReadAnew(t *testing.T) {
	c := sources{dir: map[string]string{"east.kubeconfig": configOf("a", "a")}}.credentials(t)
	if _, err := c.Config(t.Context(), "east", ""); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(c.Dir, "east.kubeconfig"), configOf("b", "b"))
	got, err := c.Config(t.Context(), "east", "")
	if err != nil || got.Host != "https://b.example:6443" {
		t.Errorf("after the file changed: %v, %v", got, err)
	}
}

// Cached credentials are read again when their file is replaced, becomes invalid or is removed.
func TestCachedCredentialsFollowTheirFile(t *testing.T) {
	c := sources{dir: map[string]string{"east.kubeconfig": configOf("a", "a")}}.credentials(t).Cached()
	path := filepath.Join(c.Dir, "east.kubeconfig")
	host := func() string {
		got, err := c.Config(t.Context(), "east", "")
		if err != nil {
			return err.Error()
		}
		return got.Host
	}
	for i, want := range []string{"a", "a", "b", "b", "a"} {
		if i > 0 {
			write(t, path+".new", configOf(want, want))
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if got := host(); got != "https://"+want+".example:6443" {
				t.Errorf("version %d: %s, want %s", i, got, want)
			}
		}
		one, err := c.Config(t.Context(), "east", "")
		if two, again := c.Config(t.Context(), "east", ""); one != two || err != nil || again != nil {
			t.Errorf("version %d: two configurations of an unchanged file: %v, %v", i, err, again)
		}
	}
	write(t, path, "half a kubecon")
	if got := host(); !strings.Contains(got, path) {
		t.Errorf("of a broken file it says %s", got)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if got := host(); !strings.Contains(got, "no credentials for member east") {
		t.Errorf("of a file that is gone it says %s", got)
	}
}

// A client configuration shares its certificates with the kubeconfig that is cached.
func TestCertificatesAreInMemoryOnce(t *testing.T) {
	data := base64.StdEncoding.EncodeToString([]byte("pem"))
	c := sources{dir: map[string]string{"m.kubeconfig": single(
		"{server: 'https://m.example', certificate-authority-data: "+data+"}", "{client-certificate-data: "+data+", client-key-data: "+data+"}",
	)}}.credentials(t).Cached()
	cfg, err := c.Config(t.Context(), "m", "")
	if err != nil {
		t.Fatal(err)
	}
	read, err := c.files.load(filepath.Join(c.Dir, "m.kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	cluster, user := read.config.Clusters["m"], read.config.AuthInfos["m"]
	for what, same := range map[string]bool{
		"CA":          &cfg.CAData[0] == &cluster.CertificateAuthorityData[0],
		"certificate": &cfg.CertData[0] == &user.ClientCertificateData[0],
		"key":         &cfg.KeyData[0] == &user.ClientKeyData[0],
	} {
		if !same {
			t.Errorf("the %s is in memory twice", what)
		}
	}
}

// A kubeconfig on a user's machine may refer to files by relative paths.
func TestCredentialsNameFilesNextToThem(t *testing.T) {
	c := sources{dir: map[string]string{"east.kubeconfig": single("{server: 'https://m.example'}", "{tokenFile: token}"), "token": planted}}.credentials(t)
	got, err := c.Config(t.Context(), "east", "")
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(c.Dir, "token"); got.BearerTokenFile != want {
		t.Errorf("token file %s, want %s", got.BearerTokenFile, want)
	}
}

const (
	runsProgram = "its user runs a program (exec or auth-provider): use a token or a client certificate, or allow it with the setting members.allowKubeconfigExec"
	unchecked   = "its cluster is not checked by TLS (insecure-skip-tls-verify, or not https): give certificate-authority-data, or allow it with the setting members.allowInsecureKubeconfig"
	userFiles   = "its user names files of the daemon's machine: embed the data instead"
	clusterFile = "its cluster names a file of the daemon's machine: embed certificate-authority-data instead"
)

// A kubeconfig is refused if it would run a program in the daemon, does not verify the server,
// or is in a Secret and refers to files of the daemon. The error says what to do. The first two
// can be allowed.
func TestCredentialsAreRefused(t *testing.T) {
	safe, token := "{server: 'https://m.example'}", "{token: "+planted+"}"
	tests := map[string]struct {
		text string
		// file and secret are the errors of a file and of a Secret; empty if it is accepted.
		file, secret string
		allow        func(*Sources)
	}{
		"fine": {text: single(safe, token)},
		"exec": {
			text: single(safe, "{exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: /bin/true}}"),
			file: runsProgram, secret: runsProgram,
			allow: func(c *Sources) { c.AllowExec = true },
		},
		"auth-provider": {
			text: single(safe, "{auth-provider: {name: oidc, config: {id-token: "+planted+"}}}"),
			file: runsProgram, secret: runsProgram,
		},
		"insecure-skip-tls-verify": {
			text: single("{server: 'https://m.example', insecure-skip-tls-verify: true}", token),
			file: unchecked, secret: unchecked,
			allow: func(c *Sources) { c.AllowInsecure = true },
		},
		"http": {
			text: single("{server: 'http://m.example'}", token),
			file: unchecked, secret: unchecked,
			allow: func(c *Sources) { c.AllowInsecure = true },
		},
		"no scheme": {
			text: single("{server: 'm.example:6443'}", token),
			file: unchecked, secret: unchecked,
		},
		"token in a file":       {text: single(safe, "{tokenFile: /var/run/secrets/token}"), secret: userFiles},
		"certificate in a file": {text: single(safe, "{client-certificate: /etc/hostname, client-key-data: a2V5}"), secret: userFiles},
		"key in a file":         {text: single(safe, "{client-certificate-data: Y2VydA==, client-key: /etc/hostname}"), secret: userFiles},
		"authority in a file":   {text: single("{server: 'https://m.example', certificate-authority: /etc/hostname}", token), secret: clusterFile},
	}
	for name, test := range tests {
		for from, in := range map[string]sources{
			"file":   {dir: map[string]string{"east.kubeconfig": test.text}},
			"secret": {secrets: map[string]string{"east-kubeconfig": test.text}},
		} {
			t.Run(name+" in a "+from, func(t *testing.T) {
				c := in.credentials(t)
				want := map[string]string{"file": test.file, "secret": test.secret}[from]
				_, err := c.Config(t.Context(), "east", "")
				expect(t, err, want)
				if test.allow == nil || want == "" {
					return
				}
				test.allow(&c)
				_, err = c.Config(t.Context(), "east", "")
				expect(t, err, "")
			})
		}
	}
}

// expect checks that an error contains a text and no credential. An empty text means that there
// is no error, except for files that do not exist.
func expect(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case err == nil && want != "":
		t.Errorf("accepted; want: %s", want)
	case err == nil:
	case want == "" && !strings.Contains(err.Error(), "no such file"):
		t.Errorf("refused: %v", err)
	case !strings.Contains(err.Error(), want):
		t.Errorf("got:  %v\nwant: %s", err, want)
	}
	if err != nil {
		silent(t, err.Error())
	}
}

// silent checks that a text does not contain the credential, plain or encoded.
func silent(t *testing.T, text string) {
	t.Helper()
	for _, secret := range []string{planted, base64.StdEncoding.EncodeToString([]byte(planted))} {
		if strings.Contains(text, secret) {
			t.Errorf("the credential is in %q", text)
		}
	}
}

// A missing or invalid directory is reported with its flag and advice, even if another source
// might have the member. A valid one is still used.
func TestDirectoryThatCannotBeRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	for dir, fix := range map[string]string{file + "-missing": "no such file or directory: make it", file: "not a directory: name a directory"} {
		c := sources{file: configOf("east", "east")}.credentials(t)
		c.Dir = dir
		_, err := c.Config(t.Context(), "west", "")
		for _, want := range []string{"west", "--kubeconfig-dir", dir, fix} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v does not say %q", err, want)
			}
		}
		if got := c.CheckDir(); got == nil || !strings.HasSuffix(err.Error(), got.Error()) {
			t.Errorf("at the start it says %v", got)
		}
		if dir == file {
			continue
		}
		if _, err := c.Config(t.Context(), "east", ""); err != nil {
			t.Errorf("the file has it: %v", err)
		}
	}
	if err := (Sources{Dir: t.TempDir()}).CheckDir(); err != nil {
		t.Error(err)
	}
	if err := (Sources{}).CheckDir(); err != nil {
		t.Error(err)
	}
}

// If credentials are missing or cannot be read, the error names the member and the source, and
// says what to do. It contains nothing of their content.
func TestCredentialsThatDoNotWork(t *testing.T) {
	missing := []string{"no credentials for member east", "east.kubeconfig", "a context east into the file", "Secret east-kubeconfig"}
	broken := "apiVersion: v1\nkind: Config\nusers:\n- name: m\n  user: {token: " + planted + "\nclusters: [\n"
	wrongType := "apiVersion: v1\nkind: Config\nusers:\n- name: m\n  user: {token: [" + planted + "]}\n"
	tests := map[string]struct {
		in      sources
		context string
		want    []string
	}{
		"nothing at all":             {want: missing},
		"not in the directory":       {in: sources{dir: map[string]string{"west.kubeconfig": configOf("a", "a")}}, want: missing},
		"not in the file":            {in: sources{file: configOf("west", "west")}, want: missing},
		"no such Secret":             {in: sources{secrets: map[string]string{"west-kubeconfig": configOf("a", "a")}}, want: missing},
		"nowhere":                    {in: sources{dir: map[string]string{}, file: configOf("west", "west"), secrets: map[string]string{}}, want: missing},
		"not in the file, by name":   {in: sources{file: configOf("east", "east")}, context: "prod", want: []string{"no credentials for member east", "a context prod into the file"}},
		"no such context":            {in: sources{dir: map[string]string{"east.kubeconfig": configOf("a", "a")}}, context: "prod", want: []string{"east.kubeconfig", `no context "prod" for member east`}},
		"no current context":         {in: sources{dir: map[string]string{"east.kubeconfig": configOf("", "a")}}, want: []string{"east.kubeconfig", `no context "" for member east`}},
		"no context in the Secret":   {in: sources{secrets: map[string]string{"east-kubeconfig": configOf("b", "a")}}, want: []string{"Secret east-kubeconfig", `no context "b" for member east`}},
		"a file that is not YAML":    {in: sources{dir: map[string]string{"east.kubeconfig": broken}}, want: []string{"read ", "east.kubeconfig"}},
		"a file of wrong types":      {in: sources{dir: map[string]string{"east.kubeconfig": wrongType}}, want: []string{"read ", "east.kubeconfig"}},
		"a shared file, not YAML":    {in: sources{file: broken}, want: []string{"read ", "config"}},
		"a Secret that is not YAML":  {in: sources{secrets: map[string]string{"east-kubeconfig": broken}}, want: []string{`read Secret east-kubeconfig: its key "value" holds no kubeconfig`}},
		"an empty Secret":            {in: sources{secrets: map[string]string{"east-kubeconfig": ""}}, want: []string{`read Secret east-kubeconfig: its key "value" holds no kubeconfig`}},
		"a user that does not exist": {in: sources{dir: map[string]string{"east.kubeconfig": strings.Replace(configOf("a", "a"), "user: a}", "user: z}", 1)}}, want: []string{"east.kubeconfig", `context "a": it names the user "z", which is not there`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := test.in.credentials(t).Config(t.Context(), "east", test.context)
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			silent(t, err.Error())
		})
	}
}

// If a shared file is configured and missing, that is an error and does not count as a member
// without credentials.
func TestMissingSharedFileIsSaid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nowhere")
	_, err := Sources{File: path}.Config(t.Context(), "east", "")
	if err == nil || !strings.Contains(err.Error(), "read kubeconfig") || !strings.Contains(err.Error(), path) {
		t.Errorf("it says: %v", err)
	}
}

// Only the context of the member is validated, not the other contexts of a shared file.
func TestOtherContextsAreNotJudged(t *testing.T) {
	both := strings.Replace(configOf("east", "east"), "users:\n", "users:\n- {name: x, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: x}}}\n", 1)
	both = strings.Replace(both, "contexts:\n", "contexts:\n- {name: west, context: {cluster: east, user: x}}\n", 1)
	c := sources{file: both}.credentials(t)
	if _, err := c.Config(t.Context(), "east", ""); err != nil {
		t.Error(err)
	}
	_, err := c.Config(t.Context(), "west", "")
	expect(t, err, runsProgram)
}

// A kubeconfig that is large, or becomes large once its YAML aliases are expanded, is refused before it is
// decoded. Small aliases may be used.
func TestLargeKubeconfigsAreRefused(t *testing.T) {
	long := "x: &long " + strings.Repeat("a", 100_000) + "\ny: [" + strings.Repeat("*long,", 100_000) + "]\n"
	nested := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := range 9 {
		nested += fmt.Sprintf("a%[2]d: &a%[2]d [%[3]s]\n", i, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 10), ","))
	}
	for name, test := range map[string]struct{ more, want string }{
		"a large one":           {"# " + strings.Repeat("a", maxSecret), "larger than 1 MiB"},
		"a long text, repeated": {long, "with its YAML aliases expanded"},
		"nested aliases":        {nested, "with its YAML aliases expanded"},
		"an endless alias":      {"a: &a [*a]\n", "with its YAML aliases expanded"},
	} {
		t.Run(name, func(t *testing.T) {
			text := configOf("a", "a") + test.more
			_, err := sources{secrets: map[string]string{"east-kubeconfig": text}}.credentials(t).Config(t.Context(), "east", "")
			expect(t, err, test.want)
		})
	}
	_, err := sources{dir: map[string]string{"east.kubeconfig": configOf("a", "a") + long}}.credentials(t).Config(t.Context(), "east", "")
	expect(t, err, "with its YAML aliases expanded")
	small := "apiVersion: v1\nkind: Config\ncurrent-context: &m m\nclusters: [{name: *m, cluster: {server: 'https://m.example:6443'}}]\nusers: [{name: *m, user: {token: x}}]\ncontexts: [{name: *m, context: {cluster: *m, user: *m}}]\n"
	if cfg, err := (sources{secrets: map[string]string{"east-kubeconfig": small}}).credentials(t).Config(t.Context(), "east", ""); err != nil || cfg.Host != "https://m.example:6443" {
		t.Errorf("%+v, %v", cfg, err)
	}
}
