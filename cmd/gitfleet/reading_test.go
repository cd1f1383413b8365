package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/test/githttp"
)

// served returns a repository with three states: an invalid commit, then a valid one with a
// tag, and then a valid one with a warning on main.
func served(t *testing.T, c githttp.Config) (*githttp.Server, githttp.Scratch, string) {
	server := githttp.Serve(t, c)
	repo := server.Repo(t, "hub.git")
	broken := repo.Commit(t, "main", map[string]string{"hub/web.yaml": "kind: [\n", "notes.yaml": "not: a manifest\n"})
	repo.Commit(t, "main", map[string]string{"hub/web.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: web}\n"})
	repo.Git(t, "tag", "v1.2.0", "main")
	repo.Commit(t, "next/step", map[string]string{"hub/web.yaml": "apiVersion: v1\nkind: Namespace\n"})
	return server, repo, broken
}

func command(args ...string) (code exit.Code, out, errOut string) {
	var o, e bytes.Buffer
	code = run(args, &o, &e)
	return code, o.String(), e.String()
}

// A commit can be named in all documented ways, and no temporary files remain.
func TestValidateACommit(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	server, repo, broken := served(t, githttp.Config{})
	remote := server.URL("hub.git")
	tests := map[string]struct {
		what string
		code exit.Code
		says string
	}{
		"branch":         {remote + "@main", 0, "valid"},
		"default branch": {remote, 0, "valid"},
		"HEAD":           {remote + "@HEAD", 0, "valid"},
		"whole name":     {remote + "@refs/heads/main", 0, "valid"},
		"branch with /":  {remote + "@next/step", 2, "hub/web.yaml:1: metadata"},
		"tag":            {remote + "@v1.2.0", 0, "valid"},
		"range":          {remote + "@>=1.0 <2", 0, "valid"},
		"empty range":    {remote + "@>=2", 2, "no tag is in the range"},
		"commit":         {remote + "@" + broken, 2, "hub/web.yaml:1: not valid YAML"},
		"short commit":   {remote + "@" + broken[:8], 2, "a commit is named by its whole hash"},
		"no such branch": {remote + "@gone", 2, `has no branch and no tag "gone"`},
		"no repository":  {server.URL("other.git") + "@main", 2, "server answered 404"},
		"directory":      {repo.Dir + "@main", 0, "valid"},
		"parent":         {repo.Dir + "@main~1", 2, "hub/web.yaml:1: not valid YAML"},
		"no parent":      {repo.Dir + "@main~9", 2, "commit main~9 is not in this clone"},
		"remote parent":  {remote + "@main~1", 2, "main~1 can be resolved only in a clone"},
		"file URL":       {"file://" + repo.Dir + "@main", 0, "valid"},
		"no directory":   {repo.Dir + "x@main", 2, "no such directory"},
		"credentials":    {strings.Replace(remote, "http://", "http://ada:hunter2@", 1) + "@main", 2, "must not carry credentials"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := command("validate", "--set", "source.allowHTTP=true", "--path", "hub", test.what)
			if code != test.code || !strings.Contains(out+errOut, test.says) {
				t.Errorf("exit code %d, want %d, and %q in:\n%s%s", code, test.code, test.says, out, errOut)
			}
			if strings.Contains(out+errOut, "hunter2") {
				t.Errorf("a secret is told:\n%s%s", out, errOut)
			}
		})
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

// The configuration of the daemon is used here too, and http:// needs the same permission.
func TestValidateWithTheConfigurationOfTheDaemon(t *testing.T) {
	server, _, _ := served(t, githttp.Config{Token: "s3cret"})
	what := server.URL("hub.git") + "@main"
	token := filepath.Join(t.TempDir(), "token")
	file := filepath.Join(t.TempDir(), "gitfleet.yaml")
	if err := os.WriteFile(token, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config := "source: {url: https://elsewhere.example, path: hub, allowHTTP: true, tokenFile: " + token + "}\nlimits: {files: 1}\n"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		args []string
		code exit.Code
		says string
	}{
		"configured":     {[]string{"--config", file, what}, 0, "valid"},
		"other path":     {[]string{"--config", file, "--path", ".", what}, 2, "more than 1 files and directories"},
		"no token":       {[]string{"--set", "source.allowHTTP=true", what}, 2, "server answered 401"},
		"no leave":       {[]string{what}, 2, "gitfleet: the repository: http:// is neither secret nor authentic: use https://, or set allowHTTP, with --set source.allowHTTP=true or in the configuration file\n"},
		"limit from CLI": {[]string{"--config", file, "--set", "limits.fileSize=10", what}, 2, "larger than 10 bytes"},
		"no limit":       {[]string{"--config", file, "--set", "limits.fileSize=0", what}, 2, "limits.fileSize: must be more than zero"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := command(append([]string{"validate"}, test.args...)...)
			if code != test.code || !strings.Contains(out+errOut, test.says) {
				t.Errorf("exit code %d, want %d, and %q in:\n%s%s", code, test.code, test.says, out, errOut)
			}
			if strings.Contains(out+errOut, "s3cret") {
				t.Error("the token is told")
			}
		})
	}
}

// In a directory of a checkout, files are named as in the repository, however the directory is
// given, and files above it have the same effect as for the daemon.
func TestValidateADirectoryOfACheckout(t *testing.T) {
	top := t.TempDir()
	for name, text := range map[string]string{
		".git/objects/x":             "",
		".git/HEAD":                  "ref: refs/heads/main\n",
		".gitfleetignore":            "drafts/\n",
		"base/kustomization.yaml":    "resources: [web.yaml]\n",
		"base/web.yaml":              "apiVersion: v1\nkind: Namespace\nmetadata: {name: web}\n",
		"fleet/a/kustomization.yaml": "resources: [../../base]\n",
		"fleet/bad.yaml":             "kind: Namespace\n",
		"fleet/drafts/worse.yaml":    "{",
	} {
		write(t, top, name, text)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(filepath.Join(top, "fleet"), link); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{filepath.Join(top, "fleet")}, {link}, {"--path", "fleet", top}} {
		code, out, _ := command(append([]string{"validate"}, args...)...)
		if want := "fleet/bad.yaml:1: apiVersion: missing"; code != 2 || !strings.HasPrefix(out, want) || strings.Count(out, "\n") != 1 {
			t.Errorf("%v: exit code %d:\n%s\nwant only %s", args, code, out, want)
		}
	}
}

// Anybody may choose the names of files. They must not become commands of a workflow or of a
// terminal.
func TestNamesAreNotCommands(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a\n::add-mask::b\x1b[2J\u202e.yaml"), []byte("x: ["), 0o600); err != nil {
		t.Skipf("no such names here: %v", err)
	}
	for form, never := range map[string]string{"text": "\x1b\u202e", "github": "\x1b\u202e", "json": "\x1b", "sarif": "\x1b"} {
		_, out, errOut := command("validate", "-o", form, dir)
		for line := range strings.Lines(out + errOut) {
			if strings.HasPrefix(strings.TrimSpace(line), "::add-mask") || strings.ContainsAny(line, never) {
				t.Errorf("-o %s: %q", form, line)
			}
		}
		if !strings.Contains(out, "add-mask") {
			t.Errorf("-o %s does not name the file:\n%s", form, out)
		}
	}
}
