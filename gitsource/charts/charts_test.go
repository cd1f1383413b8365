package charts

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hostlimit"
	"github.com/gitfleet/gitfleet/gitsource/hub/lockfile"
	"github.com/gitfleet/gitfleet/gitsource/remote"
	"github.com/gitfleet/gitfleet/test/chartserver"
)

var limitsOfTests = Limits{ArchiveBytes: 1 << 20, UnpackedBytes: 1 << 20, CacheBytes: 10 << 20, Files: 10, Time: time.Minute}

// cacheFor returns a cache that trusts a server, with credentials for it if password is not empty.
func cacheFor(t *testing.T, server *httptest.Server, password string) *Cache {
	t.Helper()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	host := remote.Host{Auth: remote.Auth{CABundle: ca}}
	if password != "" {
		host.Username, host.Password = "bot", remote.SecretSource{Env: "PASSWORD"}
	}
	hosts := remote.Hosts{server.Listener.Addr().String(): host}
	return New(Config{Dir: filepath.Join(t.TempDir(), "charts"), Hosts: hosts, Getenv: func(string) string { return password }, Limits: limitsOfTests, Fetches: hostlimit.New(1 << 30)})
}

// keep adds an archive to a cache.
func keep(t *testing.T, c *Cache, digest string, data []byte) error {
	t.Helper()
	s := server{cfg: c.cfg}
	packed, err := s.receive(io.NopCloser(bytes.NewReader(data)), c.cfg.Limits.ArchiveBytes)
	if err != nil {
		t.Fatal(err)
	}
	return c.store(t.Context(), digest, packed)
}

func read(t *testing.T, c *Cache, chart lockfile.Chart, name string) string {
	t.Helper()
	files, err := c.Files(chart)
	if err != nil {
		t.Fatal(err)
	}
	text, err := fs.ReadFile(files, name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A range is locked to its newest version in a registry, with the digest of the archive. What is locked is fetched by this digest
// alone, whatever tags say since, and is there while the registry is down.
func TestRegistry(t *testing.T) {
	r := chartserver.NewRegistry(t)
	r.User, r.Password = "bot", "canaryPassword"
	for _, version := range []string{"1.1.0", "1.2.0+build.1", "1.3.0-rc.1", "2.0.0"} {
		r.Push(t.Context(), "team/charts/web", version, chartserver.Chart("web", version))
	}
	c := cacheFor(t, r.Server, r.Password)
	asked := lockfile.Request{Repository: "oci://" + r.Host() + "/team/charts", Name: "web", Version: "^1.0"}
	locked, err := c.Lock(t.Context(), asked)
	want := lockfile.Chart{Request: asked, Resolved: "1.2.0+build.1", Digest: chartserver.Digest(chartserver.Chart("web", "1.2.0+build.1"))}
	if err != nil || locked != want {
		t.Fatalf("locked %+v (%v)", locked, err)
	}
	r.Push(t.Context(), "team/charts/web", "1.2.0+build.1", chartserver.Chart("web", "6.6.6"))

	daemon := cacheFor(t, r.Server, r.Password)
	if _, err := daemon.Files(locked); err == nil || !strings.Contains(err.Error(), "it was not fetched yet") {
		t.Errorf("an empty cache: %v", err)
	}
	r.Requests = nil
	if err := daemon.Fetch(t.Context(), locked); err != nil {
		t.Fatal(err)
	}
	if i := slices.IndexFunc(r.Requests, func(q string) bool {
		return strings.Contains(q, "/manifests/") || strings.Contains(q, "/tags/") || !strings.HasPrefix(q, "GET ")
	}); i >= 0 {
		t.Errorf("more than the archive is asked for: %v", r.Requests)
	}
	if text := read(t, daemon, locked, "Chart.yaml"); !strings.Contains(text, "1.2.0+build.1") {
		t.Errorf("got %s", text)
	}
	r.Close()
	if err := daemon.Fetch(t.Context(), locked); err != nil {
		t.Errorf("what is cached is fetched again: %v", err)
	}
	other := locked
	other.Digest = "sha256:" + strings.Repeat("0", 64)
	err = daemon.Fetch(t.Context(), other)
	if _, again := daemon.Files(other); err == nil || again == nil || again.Error() != err.Error() {
		t.Errorf("why it is not there: %v, and %v", err, again)
	}
	if text := read(t, New(daemon.cfg), locked, "templates/cm.yaml"); text == "" {
		t.Error("after a restart the cache is empty")
	}
}

// Credentials are those of the host, and no error has them.
func TestCredentials(t *testing.T) {
	r := chartserver.NewRegistry(t)
	asked := lockfile.Request{Repository: "oci://" + r.Host(), Name: "web", Version: "1.0.0"}
	r.Push(t.Context(), "web", "1.0.0", chartserver.Chart("web", "1.0.0"))
	r.User, r.Password = "bot", "right"
	for password, why := range map[string]string{"": "401 Unauthorized: the registry asks for", "canaryWrong": "401 Unauthorized: the registry refuses the credentials", "right": ""} {
		_, err := cacheFor(t, r.Server, password).Lock(t.Context(), asked)
		if (err == nil) != (why == "") || err != nil && (strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), why)) {
			t.Errorf("%q: %v", password, err)
		}
	}
	c := New(Config{Dir: t.TempDir(), Limits: limitsOfTests, Fetches: hostlimit.New(1 << 30)})
	if _, err := c.Lock(t.Context(), asked); err == nil || !strings.Contains(err.Error(), "certificate") || !strings.Contains(err.Error(), "caBundle") {
		t.Errorf("a registry that is not trusted: %v", err)
	}
}

// An index says which versions there are, and where their archives are. One on another host gets no credentials.
func TestIndex(t *testing.T) {
	archives := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("another host gets the credentials")
		}
		w.Write(chartserver.Chart("web", "1.0.0")) //nolint:errcheck // the client would see it
	}))
	t.Cleanup(archives.Close)
	index := ""
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "bot" || password != "canaryPassword" {
			http.Error(w, "who are you, "+password, http.StatusUnauthorized)
			return
		}
		switch r.URL.Path {
		case "/charts/index.yaml":
			fmt.Fprint(w, index) //nolint:errcheck // as above
		case "/charts/web-1.1.0.tgz":
			w.Write(chartserver.Chart("web", "1.1.0")) //nolint:errcheck // as above
		case "/charts/moved.tgz":
			http.Redirect(w, r, archives.URL+"/web.tgz", http.StatusFound)
		case "/charts/plain.tgz":
			http.Redirect(w, r, strings.Replace(archives.URL, "https", "http", 1), http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	entry := func(version, url, digest string) string {
		return fmt.Sprintf("  - {version: %s, urls: ['%s'], digest: '%s'}\n", version, url, digest)
	}
	newer, older := chartserver.Digest(chartserver.Chart("web", "1.1.0")), chartserver.Digest(chartserver.Chart("web", "1.0.0"))
	for name, test := range map[string]struct {
		entries, version string
		want             string // the version and the digest, or a part of the error
	}{
		"the newest of a range":        {entry("1.1.0", "web-1.1.0.tgz", strings.TrimPrefix(newer, "sha256:")) + entry("1.0.0", "gone.tgz", ""), "1.x", "1.1.0 " + newer},
		"no digest in the index":       {entry("1.1.0", server.URL+"/charts/web-1.1.0.tgz", ""), "1.1.0", "1.1.0 " + newer},
		"a redirect to another host":   {entry("1.0.0", "moved.tgz", older), "1.0.0", "1.0.0 " + older},
		"a redirect to plain HTTP":     {entry("1.0.0", "plain.tgz", older), "1.0.0", "is neither secret nor authentic"},
		"another digest":               {entry("1.1.0", "web-1.1.0.tgz", older), "1.1.0", "and index.yaml says " + older},
		"a version that is not there":  {entry("1.1.0", "web-1.1.0.tgz", ""), "^2", "none of the 1 versions there is in ^2"},
		"an archive that is not there": {entry("1.1.0", "gone.tgz", ""), "1.1.0", "404"},
		"a file of the machine":        {entry("1.1.0", "file:///etc/passwd", ""), "1.1.0", "is no address"},
		"no such chart":                {"", "1.1.0", "has no chart web"},
		"not YAML":                     {"\t", "1.1.0", "index.yaml is not valid"},
	} {
		t.Run(name, func(t *testing.T) {
			if index = "entries:\n  web:\n" + test.entries; test.entries == "" {
				index = "entries: {}\n"
			}
			c := cacheFor(t, server, "canaryPassword")
			own, _ := c.cfg.Hosts.Of(server.Listener.Addr().String())
			c.cfg.Hosts[archives.Listener.Addr().String()] = remote.Host{Auth: remote.Auth{CABundle: own.CABundle}} // the same certificate
			locked, err := c.Lock(t.Context(), lockfile.Request{Repository: server.URL + "/charts", Name: "web", Version: test.version})
			got := locked.Resolved + " " + locked.Digest
			if err != nil {
				got = err.Error()
			}
			if strings.Contains(got, "canary") || err == nil && got != test.want || err != nil && !strings.Contains(got, test.want) {
				t.Errorf("got %s", got)
			}
			if err == nil {
				daemon := cacheFor(t, server, "canaryPassword")
				daemon.cfg.Hosts = c.cfg.Hosts
				if err := daemon.Fetch(t.Context(), locked); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A server that sends too much, or another archive than the one that is locked, or nothing, is given up.
func TestServersAreBounded(t *testing.T) {
	wait := make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/large":
			w.Write(make([]byte, 2<<20)) //nolint:errcheck // the client stops reading
		case "/hangs":
			<-wait
		default:
			w.Write(chartserver.Chart("web", "1.0.0")) //nolint:errcheck // the client would see it
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(wait) })
	c := cacheFor(t, server, "")
	c.cfg.Limits.Time = 300 * time.Millisecond
	for path, want := range map[string]string{
		"/large": "the archive is larger than 1 MiB", "/hangs": "it took longer than 300ms", "/other": "and not sha256:000",
	} {
		chart := lockfile.Chart{Request: lockfile.Request{Repository: server.URL, Name: "web", Version: "1"}, Digest: "sha256:" + strings.Repeat("0", 64), URL: server.URL + path}
		if err := c.Fetch(t.Context(), chart); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if entries, _ := os.ReadDir(c.cfg.Dir); len(entries) > 0 {
		t.Errorf("the cache has %v", entries)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Fetch(ctx, lockfile.Chart{Request: lockfile.Request{Repository: server.URL}, URL: server.URL + "/hangs"}); err == nil || !strings.Contains(err.Error(), "canceled") {
		t.Errorf("a cancelled fetch: %v", err)
	}
}

// An error about a server without TLS says what to set.
func TestPlainServers(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	host := server.Listener.Addr().String()
	for _, scheme := range []string{"oci://", "https://"} {
		c := New(Config{Dir: filepath.Join(t.TempDir(), "charts"), Limits: limitsOfTests, Fetches: hostlimit.New(1 << 30)})
		if _, err := c.Lock(t.Context(), lockfile.Request{Repository: scheme + host + "/charts", Name: "web", Version: "1"}); err == nil || !strings.Contains(err.Error(), "set hosts[].plainHTTP for") {
			t.Errorf("%s: %v", scheme, err)
		}
	}
}

// What leads out of the chart, is no regular file or is too much is refused, and nothing is written outside of the cache.
func TestHostileArchives(t *testing.T) {
	files := func(more map[string]string) []byte {
		more["Chart.yaml"] = "name: web\n"
		return chartserver.Pack("web", more)
	}
	link := func(kind byte) []byte {
		var out bytes.Buffer
		zipped := gzip.NewWriter(&out)
		archive := tar.NewWriter(zipped)
		archive.WriteHeader(&tar.Header{Typeflag: kind, Name: "web/templates/link", Linkname: "/etc/passwd"}) //nolint:errcheck // in memory
		archive.Close()                                                                                       //nolint:errcheck // as above
		zipped.Close()                                                                                        //nolint:errcheck // as above
		return out.Bytes()
	}
	many := map[string]string{}
	for i := range 11 {
		many[fmt.Sprint("templates/", i)] = ""
	}
	for name, test := range map[string]struct {
		packed []byte
		want   string
	}{
		"a path that leads out":  {files(map[string]string{"../../../evil": "x"}), "is outside the chart"},
		"another one":            {files(map[string]string{"/web/../../evil": "x"}), "is outside the chart"},
		"an absolute path":       {files(map[string]string{"//etc/evil": "x"}), "is no path of a file"},
		"a path of Windows":      {files(map[string]string{`..\evil`: "x"}), "is no path of a file"},
		"no first directory":     {files(map[string]string{"/evil": "x"}), "is no path of a file"},
		"a symbolic link":        {link(tar.TypeSymlink), "is not a regular file"},
		"a hard link":            {link(tar.TypeLink), "is not a regular file"},
		"a device":               {link(tar.TypeChar), "is not a regular file"},
		"a bomb":                 {files(map[string]string{"bomb": strings.Repeat("0", 3<<20)}), "unpacked it takes more than 1 MiB"},
		"many files":             {files(many), "more than 10 files"},
		"deep directories":       {files(map[string]string{strings.Repeat("d/", 30) + "f": ""}), "nested deeper"},
		"no chart":               {chartserver.Pack("web", map[string]string{"values.yaml": ""}), "it has no Chart.yaml"},
		"no archive":             {[]byte("<html>"), "not a packed chart"},
		"an archive that is cut": {files(map[string]string{})[:60], "not a packed chart"},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(Config{Dir: filepath.Join(t.TempDir(), "a", "charts"), Limits: limitsOfTests, Fetches: hostlimit.New(1 << 30)})
			if err := keep(t, c, chartserver.Digest(test.packed), test.packed); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
			if entries, _ := os.ReadDir(c.cfg.Dir); len(entries) > 0 {
				t.Errorf("the cache has %v", entries)
			}
		})
	}
}

// The files of a chart are a file system, whose content is read when it is needed. A damaged archive is fetched again.
func TestFiles(t *testing.T) {
	packed := chartserver.Chart("web", "1.0.0")
	chart := lockfile.Chart{Digest: chartserver.Digest(packed)}
	c := New(Config{Dir: t.TempDir(), Limits: limitsOfTests, Fetches: hostlimit.New(1 << 30)})
	if err := keep(t, c, chart.Digest, packed); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second has only the names
		files, err := c.Files(chart)
		if err != nil {
			t.Fatal(err)
		}
		if err := fstest.TestFS(files, "Chart.yaml", "values.yaml", "templates/cm.yaml"); err != nil {
			t.Error(err)
		}
		if _, err := fs.Stat(files, ignoreFile); err == nil {
			t.Error("the chart has a list of what is ignored, which packing has applied")
		}
	}
	if err := os.WriteFile(c.path(chart.Digest), packed[:50], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(c.cfg).Files(chart); err == nil {
		t.Error("a damaged archive is used")
	}
}

// What no process uses for a month is removed, and what a process that was killed has left behind, within an hour.
func TestPrune(t *testing.T) {
	c := New(Config{Dir: t.TempDir(), Limits: limitsOfTests, Fetches: hostlimit.New(1 << 30)})
	now := time.Now()
	for name, age := range map[string]time.Duration{"used.tgz": 29 * 24 * time.Hour, "unused.tgz": 31 * 24 * time.Hour, ".tmp-new": time.Minute, ".tmp-old": 2 * time.Hour} {
		path := filepath.Join(c.cfg.Dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now, now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.prune(now); err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(filepath.Join(c.cfg.Dir, "*"))
	for i := range left {
		left[i] = filepath.Base(left[i])
	}
	if got := fmt.Sprint(left); got != "[.tmp-new used.tgz]" {
		t.Errorf("left are %s", got)
	}
}

// All charts in the cache have a limit. Those that were not used for longest make room, and those in use stay.
func TestTheCacheOfChartsIsBounded(t *testing.T) {
	c := New(Config{Dir: t.TempDir(), Limits: limitsOfTests})
	var digests []string
	for i := range 4 {
		packed := chartserver.Chart("web", fmt.Sprintf("1.0.%d", i))
		digests = append(digests, chartserver.Digest(packed))
		c.cfg.Limits.CacheBytes = 3*int64(len(packed)) + 100
		if err := keep(t, c, digests[i], packed); err != nil {
			t.Fatal(err)
		}
		old := time.Now().Add(time.Duration(i-10) * time.Hour)
		if err := os.Chtimes(c.path(digests[i]), old, old); err != nil {
			t.Fatal(err)
		}
	}
	for i, digest := range digests {
		if _, err := c.Files(lockfile.Chart{Digest: digest}); (err == nil) != (i > 0) { // which uses it
			t.Errorf("chart %d: %v", i, err)
		}
	}
	packed := chartserver.Chart("web", "2.0.0")
	if err := keep(t, c, chartserver.Digest(packed), packed); err == nil || !strings.Contains(err.Error(), "all charts that were used within 1h0m0s") {
		t.Errorf("although all are in use: %v", err)
	}
	if entries, _ := os.ReadDir(c.cfg.Dir); len(entries) != 3 {
		t.Errorf("the cache has %v", entries)
	}
}

// What a server sends for charts counts for its share, whatever it is, and another server is asked nevertheless.
func TestBytesOfAServerAreCounted(t *testing.T) {
	index := strings.Repeat("# as many bytes as it likes\n", 1000)
	serve := func() *httptest.Server {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, index) }))
		t.Cleanup(server.Close)
		return server
	}
	server, other := serve(), serve()
	c := cacheFor(t, server, "")
	c.cfg.Fetches = hostlimit.New(int64(len(index)))
	var err error
	for range hostlimit.HostFetches + 1 {
		_, err = c.Lock(t.Context(), lockfile.Request{Repository: server.URL, Name: "web", Version: "1"})
	}
	if err == nil || !strings.Contains(err.Error(), "it is asked again in") {
		t.Errorf("after too many lists: %v", err)
	}
	_, err = c.Lock(t.Context(), lockfile.Request{Repository: other.URL, Name: "web", Version: "1"})
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("another server: %v", err)
	}
}
