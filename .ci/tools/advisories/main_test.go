package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const result = `{"config": {"scan_level": "package"}}
{"osv": {"id": "GO-1", "summary": "Panic in a parser"}}
{"osv": {"id": "GO-2", "summary": "Endless loop"}}
{"finding": {"osv": "GO-1", "fixed_version": "v1.2.4", "trace": [{"module": "example.com/parser", "version": "v1.2.3"}]}}
`

// A package that is not used is not affected; one that is, is named once, with the fix.
func TestFindings(t *testing.T) {
	const used = `{"finding": {"osv": "GO-1", "fixed_version": "v1.2.4", "trace": [{"module": "example.com/parser", "version": "v1.2.3", "package": "example.com/parser/x"}]}}` + "\n"
	const standard = `{"finding": {"osv": "GO-2", "fixed_version": "v1.26.9", "trace": [{"module": "stdlib", "version": "v1.26.8", "package": "net/http"}]}}` + "\n"
	for name, test := range map[string]struct{ result, want, err string }{
		"an unused package":    {result, "", ""},
		"a used package":       {result + used + used, "GO-1: example.com/parser v1.2.3: Panic in a parser; fixed in v1.2.4\n", "1 advisories"},
		"the standard library": {result + standard, "GO-2: stdlib v1.26.8: Endless loop; fixed in v1.26.9\nthese are about the standard library: build releases with a newer Go\n", ""},
		"a broken result":      {"{", "", "read the result"},
	} {
		var out strings.Builder
		found, err := parse(strings.NewReader(test.result))
		if err == nil {
			err = report(&out, found)
		}
		if out.String() != test.want || test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
			t.Errorf("%s: %q, %v", name, &out, err)
		}
	}
}

// The indexes name each advisory once for each module that it is about.
func TestLayOut(t *testing.T) {
	from, db := t.TempDir(), filepath.Join(t.TempDir(), "db")
	for name, text := range map[string]string{
		"GO-1.json": `{"id": "GO-1", "modified": "2026-01-02T00:00:00Z", "aliases": ["CVE-1"], "affected": [{"package": {"name": "a"}}, {"package": {"name": "a"}}, {"package": {"name": "b"}}]}`,
		"GO-2.json": `{"id": "GO-2", "modified": "2026-01-01T00:00:00Z", "affected": [{"package": {"name": "a"}}]}`,
	} {
		if err := os.WriteFile(filepath.Join(from, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := layOut(from, db); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"index/db.json":      `{"modified":"2026-01-02T00:00:00Z"}`,
		"index/modules.json": `[{"path":"a","vulns":[{"id":"GO-1","modified":"2026-01-02T00:00:00Z"},{"id":"GO-2","modified":"2026-01-01T00:00:00Z"}]},{"path":"b","vulns":[{"id":"GO-1","modified":"2026-01-02T00:00:00Z"}]}]`,
	} {
		if got, err := os.ReadFile(filepath.Join(db, file)); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", file, got, err)
		}
	}
	if err := layOut(t.TempDir(), filepath.Join(t.TempDir(), "db")); err == nil {
		t.Error("a directory without advisories is accepted: nothing would ever be found")
	}
}
