package check

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A file name stays in its directory, whatever the object is called, and different objects have different files.
func TestFileOf(t *testing.T) {
	for want, id := range map[string]api.ID{
		"shop/Deployment.apps.web.yaml": {Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"},
		"Namespace.shop.yaml":           {Kind: "Namespace", Name: "shop"},
		"ClusterRole.rbac.authorization.k8s.io.system%3Aa%2F..%2Fb.yaml": {Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "system:a/../b"},
	} {
		if got := fileOf(id); got != want || !filepath.IsLocal(got) {
			t.Errorf("%s is in %s, want %s", id, got, want)
		}
	}
	long := strings.Repeat("ü", 120)
	a, b := fileOf(api.ID{Kind: "Role", Name: long + "a"}), fileOf(api.ID{Kind: "Role", Name: long + "b"})
	if a == b || len(a) > 255 {
		t.Errorf("%s and %s", a, b)
	}
}

// The directory of a cluster is replaced as a whole, nothing else is touched, and no link leads out of it.
func TestRenderedDirectories(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	open := func() *renderedDir {
		t.Helper()
		d, err := openRendered(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.root.Close() })
		return d
	}
	names := func(dir string) []string {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, e := range entries {
			out = append(out, e.Name())
		}
		return out
	}
	if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte("ours"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		if err := open().replace(name, map[string][]byte{"shop/x.yaml": []byte("1"), "y.yaml": []byte("2")}); err != nil {
			t.Fatal(err)
		}
	}
	if err := open().replace("a", map[string][]byte{"z.yaml": []byte("3")}); err != nil {
		t.Fatal(err)
	}
	if err := open().removeOthers([]string{"a"}); err != nil {
		t.Fatal(err)
	}
	if got := names(dir); !slices.Equal(got, []string{".gitfleet-rendered", "README.md", "a"}) {
		t.Errorf("the directory has %v", got)
	}
	if got := names(filepath.Join(dir, "a")); !slices.Equal(got, []string{"z.yaml"}) {
		t.Errorf("a has %v", got)
	}
	if err := os.Mkdir(filepath.Join(dir, "ours"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := open().replace("ours", nil); err == nil {
		t.Error("a directory that somebody else has made is replaced")
	}
	if err := os.WriteFile(filepath.Join(dir, renderedList), []byte("a\n../"+filepath.Base(outside)+"\nlink\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(outside, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := open().removeOthers(nil); err != nil {
		t.Fatal(err)
	}
	if got := names(outside); !slices.Equal(got, []string{"file"}) {
		t.Errorf("outside there is %v", got)
	}
}
