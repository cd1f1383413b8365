package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/test/reports"
	"github.com/gitfleet/gitfleet/test/tempfile"
)

// unpacked returns the files of a bug report.
func unpacked(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v %v", info.Mode(), err)
	}
	zipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(zipped); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(h.Name, "gitfleet-bugreport/")] = string(text)
	}
}

// A canary in every place that may have a secret is in no file of a bug report; everything else
// is.
func TestABugReportHasNoSecrets(t *testing.T) {
	const canary = "kanarie-Vogel-4711"
	encoded := base64.StdEncoding.EncodeToString([]byte(canary))
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("MY_PASSWORD", canary)
	token := tempfile.Write(t, "token", canary+"\n")
	config := tempfile.Write(t, "gitfleet.yaml", "source:\n  url: https://ada:"+canary+"@git.example.com/fleet\n  tokenFile: "+token+"\n  passwordEnv: MY_PASSWORD\nmembers: {kubeconfigDir: /etc/members}\n")

	r := reports.Sample()
	r.Source.Git.URL = "https://git.example.com/fleet"
	r.Source.Git.Error = "get https://ada:" + canary + "@git.example.com: refused"
	r.Source.Problems = problem.List{{Origin: api.Origin{Path: "a.yaml"}, Message: "Authorization: Basic " + encoded}}
	r.Details[0].Warnings = []string{"password=" + canary, "-----BEGIN RSA PRIVATE KEY-----\n" + canary + "\n-----END RSA PRIVATE KEY-----", "the token is " + canary}
	record := history.Open(history.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	done, cancel := context.WithCancel(context.Background())
	record.Add(history.Entry{Kind: history.Commit, Event: history.Refused, Message: "see " + encoded + " and eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx." + canary})
	cancel()
	record.Run(done)
	daemon := server.New(server.NewRegistry())
	daemon.Publish(r)
	daemon.Mount("GET /history", server.HistoryHandler(record))
	daemon.Mount("GET /debug/log", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "level=WARN msg=\"apply failed\" err=\"token="+canary+"\"\n")
	}))
	srv := httptest.NewServer(daemon.Handler())
	t.Cleanup(srv.Close)

	var out, errOut bytes.Buffer
	if code := run([]string{"bugreport", "--config", config, "--server", srv.URL}, &out, &errOut); code != exit.OK {
		t.Fatalf("%d: %s%s", code, &out, &errOut)
	}
	name := strings.TrimSpace(out.String())
	if filepath.Base(name) != name || !strings.HasPrefix(name, "gitfleet-") || !strings.HasSuffix(name, ".tar.gz") {
		t.Errorf("it is called %q", name)
	}
	files := unpacked(t, name)
	for f, text := range files {
		for _, secret := range []string{canary, encoded, "PRIVATE KEY"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s has %s:\n%s", f, secret, text)
			}
		}
	}
	for f, want := range map[string]string{
		"versions.txt": "client gitfleet", "gitfleet.yaml": "kubeconfigDir: /etc/members", "report.json": `"crp/web"`,
		"metrics.txt": "gitfleet_commit_info", "goroutines.txt": "goroutine profile", "history.jsonl": `"event":"refused"`,
		"log.txt": "apply failed",
	} {
		if !strings.Contains(files[f], want) {
			t.Errorf("%s has no %s:\n%.500s", f, want, files[f])
		}
	}
}

// If something cannot be collected, the bug report says so and has the rest.
func TestABugReportOfWhatThereIs(t *testing.T) {
	nobody := httptest.NewServer(nil)
	nobody.Close()
	t.Chdir(t.TempDir())
	var out, errOut bytes.Buffer
	if code := run([]string{"bugreport", "--server", nobody.URL, "-f", "it.tar.gz"}, &out, &errOut); code != exit.Failed {
		t.Errorf("exit code %d", code)
	}
	files := unpacked(t, "it.tar.gz")
	if !strings.Contains(files["errors.txt"], "report.json: no daemon answers") || files["versions.txt"] == "" || !strings.Contains(errOut.String(), "it.tar.gz has the others") {
		t.Errorf("%v\n%s", files, &errOut)
	}
	if said := say("bugreport", "--server", nobody.URL, "-f", "it.tar.gz"); !strings.Contains(said, "file exists") {
		t.Errorf("written over: %s", said)
	}
}
