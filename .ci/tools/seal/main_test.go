package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aead.dev/minisign"
)

// A release has checksums and a provenance of all its files, signed with the key in the environment.
// They are the same each time, and a changed file is noticed.
func TestSeal(t *testing.T) {
	public, secret, err := minisign.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := secret.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"MINISIGN_KEY": string(plain)} // encrypting one takes seconds and a GiB
	var before map[string]string
	for range 2 {
		dir := release(t)
		if err := run([]string{dir, "v1.2.3", strings.Repeat("a", 40), "1790000000", "go1.26.8"}, func(key string) string { return env[key] }, os.Stderr); err != nil {
			t.Fatal(err)
		}
		files := read(t, dir)
		if before == nil {
			before = files
		}
		for _, file := range []string{"checksums.txt", "gitfleet_v1.2.3.intoto.json"} {
			if files[file] == "" || files[file] != before[file] || files[file+".minisig"] != before[file+".minisig"] {
				t.Errorf("%s or its signature is another each time", file)
			}
			signature := []byte(files[file+".minisig"])
			for content, want := range map[string]bool{files[file]: true, files[file] + " ": false} {
				if got := minisign.Verify(public, []byte(content), signature); got != want {
					t.Errorf("%s: the signature is valid: %t, want %t", file, got, want)
				}
			}
		}
		if got := strings.Count(files["checksums.txt"], "\n"); got != 3 || !strings.Contains(files["checksums.txt"], "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a.tar.gz\n") {
			t.Errorf("the checksums are\n%s", files["checksums.txt"])
		}
		var s statement
		if err := json.Unmarshal([]byte(files["gitfleet_v1.2.3.intoto.json"]), &s); err != nil || len(s.Subject) != 2 || s.Predicate.BuildDefinition.ResolvedDependencies[0].Digest["gitCommit"] != strings.Repeat("a", 40) {
			t.Errorf("the provenance is %+v, %v", s, err)
		}
	}
}

// Without a key nothing is signed. An error about the key does not quote it.
func TestSealWithoutAKey(t *testing.T) {
	dir := release(t)
	var said bytes.Buffer
	args := []string{dir, "v1.2.3", "abc", "1790000000", "go1.26.8"}
	if err := run(args, func(string) string { return "" }, &said); err != nil || !strings.Contains(said.String(), "MINISIGN_KEY is not set") {
		t.Errorf("%v: %s", err, said.String())
	}
	if files := read(t, dir); len(files) != 4 {
		t.Errorf("it wrote %d files", len(files))
	}
	if err := run(args, func(string) string { return "hunter2" }, &said); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("with a wrong key: %v", err)
	}
}

// release returns a directory with the files of a release.
func release(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"a.tar.gz": "abc", "b.cdx.json": "{}"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// read returns the files of a directory.
func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = string(content)
	}
	return all
}
