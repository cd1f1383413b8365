package apiserver

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConfigMaps is an API server that only has ConfigMaps, which can be created, applied, read,
// listed and deleted. After a number of writes it fails.
type ConfigMaps struct {
	mu sync.Mutex
	// Stored are the ConfigMaps by name, Writes the requests that changed them, in order.
	Stored map[string]json.RawMessage
	Writes []string
	// Intact is the number of writes until every write is refused; never if negative.
	Intact int
}

// NewConfigMaps returns a server without ConfigMaps that does not fail.
func NewConfigMaps() *ConfigMaps {
	return &ConfigMaps{Stored: map[string]json.RawMessage{}, Intact: -1}
}

// Clone returns a server that stores the same ConfigMaps and does not fail.
func (s *ConfigMaps) Clone() *ConfigMaps {
	return &ConfigMaps{Stored: maps.Clone(s.Stored), Intact: -1}
}

// Names returns the names of the ConfigMaps, sorted.
func (s *ConfigMaps) Names() []string { return slices.Sorted(maps.Keys(s.Stored)) }

// ServeHTTP implements http.Handler.
func (s *ConfigMaps) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	name := path.Base(r.URL.Path)
	if r.Method != http.MethodGet {
		if s.Intact == 0 {
			Refuse(w, http.StatusServiceUnavailable, "broken")
			return
		}
		s.Intact--
		s.Writes = append(s.Writes, r.Method+" "+name)
	}
	switch {
	case r.Method == http.MethodPost:
		raw, _ := io.ReadAll(r.Body)
		var o struct{ Metadata struct{ Name string } }
		if err := json.Unmarshal(raw, &o); err != nil || s.Stored[o.Metadata.Name] != nil {
			Refuse(w, http.StatusConflict, "already exists")
			return
		}
		s.Stored[o.Metadata.Name] = raw
		w.WriteHeader(http.StatusCreated)
		w.Write(WithUID(o.Metadata.Name, raw)) //nolint:errcheck // the test would see it
	case r.Method == http.MethodGet && name != "configmaps":
		if s.Stored[name] == nil {
			Refuse(w, http.StatusNotFound, "not found")
			return
		}
		w.Write(WithUID(name, s.Stored[name])) //nolint:errcheck // the test would see it
	case r.Method == http.MethodPatch:
		raw, _ := io.ReadAll(r.Body)
		s.Stored[name] = raw
		w.Write(WithUID(name, raw)) //nolint:errcheck // the test would see it
	case r.Method == http.MethodDelete && s.Stored[name] == nil:
		Refuse(w, http.StatusNotFound, "not found")
	case r.Method == http.MethodDelete:
		delete(s.Stored, name)
		json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess}) //nolint:errcheck // the test would see it
	default:
		var items []json.RawMessage
		for _, name := range s.Names() {
			items = append(items, s.Stored[name])
		}
		json.NewEncoder(w).Encode(map[string]any{"apiVersion": "v1", "kind": "ConfigMapList", "metadata": map[string]any{}, "items": items}) //nolint:errcheck // the test would see it
	}
}

// WithUID returns a stored ConfigMap as the server sends it.
func WithUID(name string, raw []byte) []byte {
	return bytes.Replace(raw, []byte(`"metadata":{`), []byte(`"metadata":{"uid":"uid of `+name+`",`), 1)
}
