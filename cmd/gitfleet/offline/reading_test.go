package offline

import (
	"crypto/ed25519"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/test/githttp"
	"github.com/gitfleet/gitfleet/test/tempfile"
)

// A commit that is not accepted is read all the same, from the same clone.
func TestNewestCommitThatIsNotAccepted(t *testing.T) {
	public, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	server := githttp.Serve(t, githttp.Config{})
	server.Repo(t, "hub.git").Commit(t, "main", map[string]string{"web.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: web}\n"})
	c := settings.Default()
	c.Source.URL, c.Source.AllowHTTP = server.URL("hub.git"), true
	c.Source.Signatures.AllowedSigners = tempfile.Write(t, "signers", "ada@example.com "+string(ssh.MarshalAuthorizedKey(key)))
	s, refused, err := NewestCommit(t.Context(), c, "")
	if err != nil || !strings.Contains(refused, "not accepted") || len(s.Objects) != 1 {
		t.Fatalf("%v, refused: %s, %v", s, refused, err)
	}
	if n := server.Count("hub.git", githttp.Fetch); n != 1 {
		t.Errorf("fetched %d times, want once", n)
	}
}

// A path outside of the repository is refused as such, not as one that is missing.
func TestReadDirRefusesAPathOutside(t *testing.T) {
	dir := t.TempDir()
	want := "read " + dir + `: path "../x": must be relative to the repository and stay in it`
	if _, err := ReadDir(dir, hub.Options{Path: "../x"}); err == nil || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
	if _, err := ReadDir(dir, hub.Options{Path: "x"}); err == nil || strings.Contains(err.Error(), "must be relative") {
		t.Errorf("a missing path: %v", err)
	}
}

// Three dots, as git diff accepts them, are not taken for the beginning of a name.
func TestReadChangeRefusesThreeDots(t *testing.T) {
	const want = "hub@main...next: a range of versions is written FROM..TO, with two dots"
	if _, _, err := new(Reader).ReadChange(t.Context(), nil, "hub@main...next"); err == nil || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
}

func TestSplitRepository(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "a@b"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct{ repo, ref string }{
		"https://git.example.com/org/fleet@main":          {"https://git.example.com/org/fleet", "main"},
		"https://git.example.com/org/fleet@web@1.0.0":     {"https://git.example.com/org/fleet", "web@1.0.0"},
		"https://git.example.com/org/fleet":               {"https://git.example.com/org/fleet", ""},
		"https://ada:secret@git.example.com":              {"https://ada:secret@git.example.com", ""},
		"ssh://git@git.example.com/org/fleet":             {"ssh://git@git.example.com/org/fleet", ""},
		"ssh://git@git.example.com:2222/org/fleet@v1.2.0": {"ssh://git@git.example.com:2222/org/fleet", "v1.2.0"},
		"git@git.example.com:org/fleet.git":               {"git@git.example.com:org/fleet.git", ""},
		"git@git.example.com:org/fleet.git@main":          {"git@git.example.com:org/fleet.git", "main"},
		"git@git.example.com:org/fleet.git@web@1.0.0":     {"git@git.example.com:org/fleet.git", "web@1.0.0"},
		"file:///srv/fleet@main":                          {"/srv/fleet", "main"},
		"../fleet@main":                                   {"../fleet", "main"},
		"/srv/a:b@main":                                   {"/srv/a:b", "main"},
		".@HEAD":                                          {".", "HEAD"},
		".@web@1.0.0..web@2.0.0":                          {".", "web@1.0.0..web@2.0.0"},
		filepath.Join(dir, "a@b@main@{1}"):                {filepath.Join(dir, "a@b"), "main@{1}"},
		filepath.Join(dir, "a@c"):                         {filepath.Join(dir, "a"), "c"},
	}
	for what, want := range tests {
		repo, ref := splitRepository(what)
		if repo != want.repo || ref != want.ref {
			t.Errorf("%s: %s at %s", what, repo, ref)
		}
	}
}
