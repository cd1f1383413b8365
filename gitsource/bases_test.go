package gitsource

import (
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/remote"
	"github.com/gitfleet/gitfleet/test/gitrepo"
)

// A base is fetched once, without its history, and read from the cache by everybody while its server is down.
func TestBases(t *testing.T) {
	g := gitrepo.New(t)
	old := g.Commit("first", map[string]string{"web/kustomization.yaml": "namePrefix: a-\n", "big": strings.Repeat("0123456789", 1000)})
	g.Git("tag", "-a", "v1", "-m", "one")
	tip := g.Commit("second", map[string]string{"web/kustomization.yaml": "namePrefix: b-\n"})
	server := serveGit(t, g)
	dir := t.TempDir()
	b := newBases(dir, config(t, server.URL))
	if _, err := b.Files(server.URL, tip); err == nil || !strings.Contains(err.Error(), "gitfleet lock") {
		t.Errorf("before the fetch: %v", err)
	}
	for ref, want := range map[string]string{"": tip, "main": tip, "v1": old, "refs/tags/v1": old, old: old} {
		got, err := b.Lock(t.Context(), server.URL, ref)
		if err != nil || got != want {
			t.Errorf("%q: %s, %v; want %s", ref, got, err, want)
		}
	}
	if _, err := b.Lock(t.Context(), server.URL, "v2"); err == nil || !strings.Contains(err.Error(), "branch or tag v2: not on the remote") {
		t.Errorf("an unknown tag: %v", err)
	}
	server.answer(func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusBadGateway); return true })
	other := newBases(dir, config(t, server.URL))
	for commit, want := range map[string]string{old: "namePrefix: a-\n", tip: "namePrefix: b-\n"} {
		if err := other.Fetch(t.Context(), server.URL, commit); err != nil {
			t.Fatal(err)
		}
		files, err := other.Files(server.URL, commit)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := fs.ReadFile(files, "web/kustomization.yaml"); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", commit, got, err)
		}
	}
	unknown := strings.Repeat("1", 40)
	if err := other.Fetch(t.Context(), server.URL, unknown); err == nil {
		t.Error("fetched from a server that is down")
	}
	if _, err := other.Files(server.URL, unknown); err == nil || !strings.Contains(err.Error(), "502") {
		t.Errorf("the reason of the last attempt is %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("the cache has %v, %v", entries, err)
	}
	if _, err := os.Stat(filepath.Join(dir, tip)); err != nil {
		t.Error(err)
	}
}

// What no process has opened for long is removed when something else is fetched, and what is in use stays.
func TestUnusedBasesAreRemoved(t *testing.T) {
	g := gitrepo.New(t)
	first := g.Commit("first", map[string]string{"a": "1"})
	second := g.Commit("second", map[string]string{"a": "2"})
	third := g.Commit("third", map[string]string{"a": "3"})
	server := serveGit(t, g)
	dir := t.TempDir()
	long := time.Now().Add(-2 * keepUnused)
	old := func(commit string) {
		t.Helper()
		if err := os.Chtimes(filepath.Join(dir, commit), long, long); err != nil {
			t.Fatal(err)
		}
	}
	for _, commit := range []string{first, second} {
		if err := newBases(dir, config(t, server.URL)).Fetch(t.Context(), server.URL, commit); err != nil {
			t.Fatal(err)
		}
		old(commit)
	}
	b := newBases(dir, config(t, server.URL))
	if _, err := b.Files(server.URL, second); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, second)); err != nil || info.ModTime().Equal(long) {
		t.Errorf("the use is not recorded: %v", err)
	}
	old(second)
	if err := b.Fetch(t.Context(), server.URL, third); err != nil {
		t.Fatal(err)
	}
	for commit, want := range map[string]bool{first: false, second: true, third: true} {
		if _, err := os.Stat(filepath.Join(dir, commit)); (err == nil) != want {
			t.Errorf("%s is there: %t", commit, err == nil)
		}
	}
}

// Credentials go to the host of the source and to no other.
func TestCredentialsOfBases(t *testing.T) {
	g := gitrepo.New(t)
	g.Commit("first", map[string]string{"a": "b"})
	own, other := serveGit(t, g), serveGit(t, g)
	seen := map[*gitServer]string{}
	for _, s := range []*gitServer{own, other} {
		s.answer(func(_ http.ResponseWriter, r *http.Request) bool {
			seen[s] += r.Header.Get("Authorization")
			return false
		})
	}
	t.Setenv("TOKEN", "abc")
	cfg := config(t, own.URL+"/fleet.git")
	cfg.Auth, cfg.Getenv = remote.Auth{Token: remote.SecretSource{Env: "TOKEN"}}, os.Getenv
	b := newBases(t.TempDir(), cfg)
	for _, s := range []*gitServer{own, other} {
		if _, err := b.Lock(t.Context(), s.URL, "main"); err != nil {
			t.Fatal(err)
		}
	}
	if seen[own] == "" || seen[other] != "" {
		t.Errorf("the own host got %q, another %q", seen[own], seen[other])
	}
}

// What is larger than the limits is not fetched, and leaves nothing behind.
func TestBasesAreBounded(t *testing.T) {
	g := gitrepo.New(t)
	commit := g.Commit("first", map[string]string{"a": gitrepo.Noise(100_000)})
	server := serveGit(t, g)
	cfg := config(t, server.URL)
	cfg.Limits.FetchBytes = 10_000
	dir := t.TempDir()
	if err := newBases(dir, cfg).Fetch(t.Context(), server.URL, commit); err == nil || !strings.Contains(err.Error(), "limits.fetchBytes") {
		t.Errorf("got %v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("left %v", entries)
	}
	for url, want := range map[string]string{
		"file:///etc": "allowFile", "http://example.com/a": "allowHTTP", "git@example.com:a/b": "sshKeyFile", "https://u:p@example.com/a": "credentials",
	} {
		if err := newBases(dir, Config{}).Fetch(t.Context(), url, commit); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "u:p") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// Each server gets the credentials of its own entry, and that of the source those of the source.
func TestBasesHaveTheCredentialsOfTheirHosts(t *testing.T) {
	got := map[string]string{} // password by host
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		got[r.Host] = password
		http.Error(w, "no", http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	port := ":" + strings.Split(server.Listener.Addr().String(), ":")[1]
	token := func(name string) remote.Auth { return remote.Auth{Token: remote.SecretSource{Env: name}} }
	b := newBases(t.TempDir(), Config{
		URL: "http://127.0.0.1" + port + "/hub", Auth: token("source"), AllowHTTP: true, Getenv: func(name string) string { return name },
		Hosts: remote.Hosts{"localhost": {Auth: token("host")}, "localhost.localdomain" + port: {Auth: token("port")}},
	})
	want := map[string]string{"127.0.0.1": "source", "localhost": "host"}
	for host, password := range want {
		err := b.Fetch(t.Context(), "http://"+host+port+"/base", strings.Repeat("1", 40))
		if sent, asked := got[host+port]; !asked || sent != password {
			t.Errorf("%s gets %q (%v)", host, sent, err)
		}
	}
	if _, known := b.cfg.Hosts.Of("localhost.localdomain:1"); known {
		t.Error("an entry with a port is used for another port")
	}
}

// A base whose fetch must not begin is not fetched, and the reason is kept.
func TestBasesAreGuarded(t *testing.T) {
	g := gitrepo.New(t)
	commit := g.Commit("first", map[string]string{"a": "1"})
	server := serveGit(t, g)
	cfg := config(t, server.URL)
	refuse, ended := true, 0
	cfg.Hooks.Fetching = func(object string) (func(), error) {
		if refuse {
			return nil, errors.New("not again: " + object)
		}
		return func() { ended++ }, nil
	}
	b := newBases(t.TempDir(), cfg)
	if err := b.Fetch(t.Context(), server.URL, commit); err == nil || !strings.Contains(err.Error(), "not again: "+commit) {
		t.Errorf("it is fetched: %v", err)
	}
	if _, err := b.Files(server.URL, commit); err == nil || !strings.Contains(err.Error(), "not again") {
		t.Errorf("the reason is %v", err)
	}
	refuse = false
	if err := b.Fetch(t.Context(), server.URL, commit); err != nil || ended != 1 {
		t.Errorf("it is not fetched: %v, ended %d", err, ended)
	}
}
