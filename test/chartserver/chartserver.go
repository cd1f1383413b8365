// Package chartserver serves Helm charts for tests: from a registry, and from a repository with an index.
package chartserver

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
)

// Pack packs the files of a chart below a directory with its name. A name that begins with a slash is taken as it is, without
// the slash.
func Pack(chart string, files map[string]string) []byte {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipped)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := chart + "/" + name
		if whole, is := strings.CutPrefix(name, "/"); is {
			path = whole
		}
		must(archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path, Mode: 0o644, Size: int64(len(files[name]))}))
		_, err := io.WriteString(archive, files[name])
		must(err)
	}
	must(archive.Close())
	must(zipped.Close())
	return out.Bytes()
}

// Chart packs a chart with one ConfigMap, which has the version of the chart and the value greeting.
func Chart(name, version string) []byte {
	return Pack(name, map[string]string{
		"Chart.yaml":        fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %s\n", name, version),
		"values.yaml":       "greeting: hello\n",
		".helmignore":       "templates/\n",
		"templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n  namespace: {{ .Release.Namespace }}\ndata:\n  version: {{ .Chart.Version | quote }}\n  greeting: {{ .Values.greeting | quote }}\n",
	})
}

// Digest returns the digest of an archive.
func Digest(packed []byte) string {
	sum := sha256.Sum256(packed)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// A Registry is a registry for tests.
type Registry struct {
	*httptest.Server
	// User and Password are asked for if they are set.
	User, Password string
	// Requests are the methods and paths of what was asked for.
	Requests []string

	handler http.Handler
}

// NewRegistry returns a registry that speaks TLS.
func NewRegistry(t *testing.T) *Registry {
	r := &Registry{handler: registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
	r.Server = httptest.NewTLSServer(r)
	t.Cleanup(r.Close)
	return r
}

// ServeHTTP implements http.Handler.
func (r *Registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.Requests = append(r.Requests, req.Method+" "+req.URL.Path)
	if user, password, _ := req.BasicAuth(); r.User != "" && (user != r.User || password != r.Password) {
		w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
		http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"who are you"}]}`, http.StatusUnauthorized)
		return
	}
	r.handler.ServeHTTP(w, req)
}

// Host is HOST:PORT.
func (r *Registry) Host() string { return r.Listener.Addr().String() }

// Push pushes a chart as helm push does, and returns the digest of its archive. The path is that of the repository, with the
// name of the chart.
func (r *Registry) Push(ctx context.Context, path, version string, packed []byte) string {
	return Push(ctx, r.Client(), r.URL, r.User, r.Password, path, version, packed)
}

// Push pushes a chart to the registry at an address.
func Push(ctx context.Context, client *http.Client, address, user, password, path, version string, packed []byte) string {
	put := func(at, mediaType string, body []byte) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, address+at, bytes.NewReader(body))
		must(err)
		req.Header.Set("Content-Type", mediaType)
		if user != "" {
			req.SetBasicAuth(user, password)
		}
		res, err := client.Do(req)
		must(err)
		must(res.Body.Close())
		if res.StatusCode != http.StatusCreated {
			panic("push: " + res.Status)
		}
	}
	blob := func(mediaType string, body []byte) map[string]any {
		digest := Digest(body)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/v2/"+path+"/blobs/uploads/?digest="+digest, bytes.NewReader(body))
		must(err)
		req.Header.Set("Content-Type", "application/octet-stream")
		if user != "" {
			req.SetBasicAuth(user, password)
		}
		res, err := client.Do(req)
		must(err)
		must(res.Body.Close())
		if res.StatusCode != http.StatusCreated {
			panic("push: " + res.Status)
		}
		return map[string]any{"mediaType": mediaType, "digest": digest, "size": len(body)}
	}
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": blob("application/vnd.cncf.helm.config.v1+json", []byte("{}")),
		"layers": []any{blob("application/vnd.cncf.helm.chart.content.v1.tar+gzip", packed)},
	})
	must(err)
	put("/v2/"+path+"/manifests/"+strings.ReplaceAll(version, "+", "_"), "application/vnd.oci.image.manifest.v1+json", manifest)
	return Digest(packed)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
