package owners

import (
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
)

// The last rule that matches a file counts, in each section. Lines that cannot be read change nothing.
func TestOwners(t *testing.T) {
	places := []string{".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS"}
	tests := map[string]struct {
		place, text string
		files       []string
		want        string
	}{
		"no file":             {"OWNERS", "* @anna", []string{"a.yaml"}, ""},
		"all files":           {"CODEOWNERS", "# all\n* @anna @org/platform anna@example.com # who\n", []string{"apps/web.yaml"}, "anna org/platform"},
		"the last counts":     {"docs/CODEOWNERS", "* @anna\n/apps/ @ben\n*.json @json\n", []string{"apps/web.yaml"}, "ben"},
		"nobody owns it":      {".github/CODEOWNERS", "* @anna\n/apps/\n", []string{"apps/web.yaml"}, ""},
		"of several files":    {"CODEOWNERS", "/apps/ @ben\n/clusters/ @carl\n", []string{"apps/web.yaml", "clusters/a.yaml", "apps/api.yaml"}, "ben carl"},
		"a line is wrong":     {"CODEOWNERS", "* @anna\n/apps/ someone\n!x @y\n", []string{"apps/web.yaml"}, "anna"},
		"nothing is matched":  {"CODEOWNERS", "* @anna\n/ @ben\n/\n", []string{"apps/web.yaml"}, "anna"},
		"sections":            {"CODEOWNERS", "* @anna\n[Apps] @ben\n/apps/\n/apps/web.yaml @carl\n^[Docs][2] @doc\n*.md\n[apps]\n/apps/api.yaml @dora\n", []string{"apps/web.yaml", "apps/api.yaml"}, "anna carl dora"},
		"after a long line":   {"CODEOWNERS", "* @anna\n# " + strings.Repeat("x", 1<<17) + "\n/apps/ @ben\n", []string{"apps/web.yaml"}, "ben"},
		"owners of a section": {"CODEOWNERS", "[Apps][2] @ben @org/apps\n/apps/\n", []string{"apps/web.yaml"}, "ben org/apps"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tree := fstest.MapFS{test.place: &fstest.MapFile{Data: []byte(test.text)}}
			if got := strings.Join(Of(tree, places, test.files), " "); got != test.want {
				t.Errorf("owned by %q, want %q", got, test.want)
			}
		})
	}
	both := fstest.MapFS{".github/CODEOWNERS": {Data: []byte("* @first")}, "CODEOWNERS": {Data: []byte("* @second")}}
	if got := Of(both, places, []string{"a"}); len(got) != 1 || got[0] != "first" {
		t.Errorf("of two files: %v", got)
	}
}

// A file with many lines takes neither much memory nor time, or names nobody.
func TestManyRulesAreBounded(t *testing.T) {
	of := func(text string) []string {
		return Of(fstest.MapFS{"CODEOWNERS": {Data: []byte(text)}}, []string{"CODEOWNERS"}, []string{"apps/web.yaml"})
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	groups := parse("* @anna\n"+strings.Repeat("/other/\n", 2000), []string{"apps/web.yaml"})
	runtime.GC()
	runtime.ReadMemStats(&after)
	if got := owners(groups, 1); len(got) != 1 || got[0] != "anna" {
		t.Errorf("owned by %v", got)
	}
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 1<<20 { //nolint:gosec // a heap is smaller
		t.Errorf("%d bytes are kept", kept)
	}
	if got := of("* @anna\n" + strings.Repeat("\n", maxLines-1)); len(got) != 1 {
		t.Errorf("as many lines as are read: %v", got)
	}
	if got := of("* @anna\n" + strings.Repeat("\n", maxLines)); len(got) != 0 {
		t.Errorf("more lines: %v", got)
	}
}

// No file causes a panic.
func FuzzOwners(f *testing.F) {
	f.Add("* @anna\n[Apps][2] @ben\n/apps/**/*.yaml\n^[Docs]\n*.md @org/doc a@b.c\n", "apps/web.yaml")
	f.Add("/ @anna\n\\/ @anna\n// @anna\n", "0")
	f.Fuzz(func(_ *testing.T, text, file string) {
		Of(fstest.MapFS{"CODEOWNERS": {Data: []byte(text)}}, []string{"CODEOWNERS"}, []string{file})
	})
}
