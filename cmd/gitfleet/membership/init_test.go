package membership

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/test/tempfile"
)

// kubeconfigOf writes a kubeconfig with contexts, and returns its name.
func kubeconfigOf(t *testing.T, contexts ...string) string {
	t.Helper()
	text := "apiVersion: v1\nkind: Config\ncontexts: [" // further keys do not matter
	for _, name := range contexts {
		text += "{name: \"" + name + "\", context: {cluster: c}},"
	}
	return tempfile.Write(t, "kubeconfig", strings.TrimSuffix(text, ",")+"]\n")
}

// The contexts are those of the kubeconfig, or some of them that are named.
func TestInitChoosesContexts(t *testing.T) {
	both := kubeconfigOf(t, "paris", "oslo")
	for name, test := range map[string]struct {
		file     string
		contexts []string
		want     string
		err      string
	}{
		"all":              {both, nil, "oslo paris", ""},
		"some":             {both, []string{"paris", "paris"}, "paris", ""},
		"an unknown one":   {both, []string{"rome"}, "", "--context rome: the kubeconfig has no such context; it has oslo, paris"},
		"none":             {kubeconfigOf(t), nil, "", "the kubeconfig has no context ("},
		"no file":          {"no/such/file", nil, "", "kubeconfig: stat no/such/file: no such file or directory; name another with --kubeconfig"},
		"not a kubeconfig": {tempfile.Write(t, "text", "- a\n"), nil, "", "kubeconfig: error loading config file"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := (&initCommand{kubeconfig: test.file, contexts: test.contexts}).choose()
			if strings.Join(got, " ") != test.want || (err == nil) != (test.err == "") || err != nil && !strings.HasPrefix(err.Error(), test.err) {
				t.Errorf("%q, %v; want %q, %q", got, err, test.want, test.err)
			}
		})
	}
}

// $KUBECONFIG may list several files, of which some may not exist; a flag takes precedence.
func TestKubeconfigsAreFoundAsByKubectl(t *testing.T) {
	paris, oslo := kubeconfigOf(t, "paris"), kubeconfigOf(t, "oslo", "paris")
	t.Setenv("KUBECONFIG", strings.Join([]string{paris, "no/such/file", oslo}, string(os.PathListSeparator)))
	for file, want := range map[string]string{"": "oslo paris", paris: "paris"} {
		got, err := (&initCommand{kubeconfig: file}).choose()
		if strings.Join(got, " ") != want || err != nil {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
}

// Each context becomes a cluster of a valid name. A context whose name is another is renamed by
// the user, since the daemon looks for the credentials under the name of the cluster.
func TestInitWritesAClusterForEachContext(t *testing.T) {
	for name, test := range map[string]struct {
		contexts []string
		clusters []string
		says     string
		err      string
	}{
		"as they are":   {[]string{"paris", "oslo"}, []string{"oslo.yaml", "paris.yaml"}, "wrote 2 clusters:", ""},
		"renamed":       {[]string{"admin@oslo"}, []string{"admin-oslo.yaml"}, "kubectl config rename-context admin@oslo admin-oslo\n", ""},
		"without names": {[]string{"///"}, nil, "", `context "///": no cluster name can be derived from it`},
		"of one name":   {[]string{"a/prod", "b/prod"}, nil, "", `context "b/prod": the cluster name of another context is prod as well`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "fleet")
			var out strings.Builder
			err := (&initCommand{kubeconfig: kubeconfigOf(t, test.contexts...)}).write(&out, dir)
			if (err == nil) != (test.err == "") || err != nil && !strings.HasPrefix(err.Error(), test.err) || !strings.Contains(out.String(), test.says) {
				t.Errorf("%v: %s", err, &out)
			}
			var clusters []string
			entries, _ := os.ReadDir(filepath.Join(dir, "clusters")) // not there if nothing is written
			for _, e := range entries {
				clusters = append(clusters, e.Name())
			}
			if !slices.Equal(clusters, test.clusters) {
				t.Errorf("wrote %q, want %q", clusters, test.clusters)
			}
		})
	}
}

// The directory may be a repository of others, with links.
func TestNothingIsWrittenThroughLinks(t *testing.T) {
	for name, link := range map[string]string{"a directory": "clusters", "a file": "clusters.yaml"} {
		t.Run(name, func(t *testing.T) {
			dir, outside := t.TempDir(), t.TempDir()
			to, file := outside, "clusters/a.yaml"
			if link != "clusters" {
				to, file = filepath.Join(outside, "created"), link
			}
			if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
				t.Fatal(err)
			}
			if err := writeNew(dir, map[string]string{file: "x"}); err == nil {
				t.Error("written through a link")
			}
			if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
				t.Errorf("outside are %v, %v", entries, err)
			}
		})
	}
}

// Either all files are written, or none because one exists.
func TestWriteNew(t *testing.T) {
	dir := t.TempDir()
	if err := writeNew(dir, map[string]string{"b/two.yaml": "2"}); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"a/one.yaml": "1", "b/two.yaml": "3"}
	if err := writeNew(dir, files); err == nil || !strings.HasSuffix(err.Error(), "b/two.yaml exists; name a directory without it") {
		t.Errorf("of an existing file: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a")); err == nil {
		t.Error("the other file is written")
	}
	if text, err := os.ReadFile(filepath.Join(dir, "b/two.yaml")); string(text) != "2" {
		t.Errorf("the existing file has %q, %v", text, err)
	}
}
