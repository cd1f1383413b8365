package simulated

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
)

// A stream is the response to a watch.
type stream struct {
	*request
	w       http.ResponseWriter
	cluster *Cluster
	chosen  func(*object) bool
	version uint64 // the last version that was sent
	// restored is that of the cluster when the watch began.
	restored int
}

// watch sends changes until the client disconnects.
func (q *request) watch(w http.ResponseWriter, c *Cluster) {
	chosen, err := q.chosen()
	if err != nil {
		fail(w, err)
		return
	}
	s := &stream{request: q, w: w, cluster: c, chosen: chosen}
	if !s.begin() {
		return
	}
	query := q.URL.Query()
	var bookmarks, ends <-chan time.Time
	if query.Get("allowWatchBookmarks") == "true" {
		ticker := time.NewTicker(c.fleet.options.Bookmarks)
		defer ticker.Stop()
		bookmarks = ticker.C
	}
	if seconds, _ := strconv.Atoi(query.Get("timeoutSeconds")); seconds > 0 {
		timer := time.NewTimer(time.Duration(seconds) * time.Second)
		defer timer.Stop()
		ends = timer.C
	}
	for {
		changed, err := s.follow()
		if err != nil {
			return
		}
		select {
		case <-q.Context().Done():
			return
		case <-ends:
			return
		case <-bookmarks:
			if s.bookmark(nil) != nil {
				return
			}
		case <-changed:
		}
	}
}

// begin determines the version from which the watch sends changes, and sends the current objects
// if the request names none. It reports whether the watch continues.
func (s *stream) begin() bool {
	query := s.URL.Query()
	text := query.Get("resourceVersion")
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil && text != "" {
		fail(s.w, apierrors.NewBadRequest("Invalid value: \""+text+"\": strconv.ParseUint: parsing \""+text+"\": invalid syntax"))
		return false
	}
	c := s.cluster
	c.mu.Lock()
	s.restored = c.restored
	_, _, gone := c.since(version, s.kind, s.namespace)
	initial := query.Get("sendInitialEvents") == "true"
	var there []*object
	if version == 0 || initial {
		there, gone = c.list(s.kind, s.namespace), nil
		version = c.version
	}
	c.mu.Unlock()
	s.version = version
	s.w.Header().Set("Content-Type", "application/json")
	s.w.WriteHeader(http.StatusOK)
	if gone != nil {
		_ = s.send("ERROR", statusOf(gone))
		return false
	}
	for _, o := range there {
		if s.chosen(o) && s.send("ADDED", s.shown(o)) != nil {
			return false
		}
	}
	if initial {
		_ = s.bookmark(map[string]any{"k8s.io/initial-events-end": "true"})
	}
	s.flush()
	return true
}

// errRestored ends the watches of a cluster that was restored.
var errRestored = errors.New("restored")

func statusOf(err error) metav1.Status {
	status := err.(apierrors.APIStatus).Status()
	status.Kind, status.APIVersion = "Status", "v1"
	return status
}

// follow sends the changes since the last call, and returns a channel that is closed on the next
// change. An error ends the watch.
func (s *stream) follow() (<-chan struct{}, error) {
	c := s.cluster
	c.mu.Lock()
	events, version, err := c.since(s.version, s.kind, s.namespace)
	if version < s.version {
		version = s.version
	}
	ended := s.restored != c.restored
	if c.changed == nil {
		c.changed = make(chan struct{})
	}
	changed := c.changed
	c.mu.Unlock()
	if ended {
		return nil, errRestored
	}
	if err != nil {
		_ = s.send("ERROR", statusOf(err))
		s.flush()
		return nil, err
	}
	for _, e := range events {
		if err := s.event(e); err != nil {
			return nil, err
		}
	}
	if s.version = version; len(events) > 0 {
		s.flush()
	}
	return changed, nil
}

// event sends one change as a client with the selectors of the request sees it.
func (s *stream) event(e event) error {
	was := e.before != nil && s.chosen(e.before)
	is := e.after != nil && s.chosen(e.after)
	switch {
	case is && was:
		return s.send("MODIFIED", s.shown(s.asServed(e.after)))
	case is:
		return s.send("ADDED", s.shown(s.asServed(e.after)))
	case was:
		last := *e.before
		last.version = e.version
		return s.send("DELETED", s.shown(s.asServed(&last)))
	}
	return nil
}

func (s *stream) asServed(o *object) *object {
	if o.kind == s.kind {
		return o
	}
	other := *o
	other.kind = s.kind
	return &other
}

func (s *stream) bookmark(annotations map[string]any) error {
	meta := map[string]any{"resourceVersion": strconv.FormatUint(s.version, 10), "creationTimestamp": nil}
	if annotations != nil {
		meta["annotations"] = annotations
	}
	o := map[string]any{"apiVersion": s.kind.GroupVersion().String(), "kind": s.kind.Kind, "metadata": meta}
	if s.metadataOnly() {
		o["apiVersion"], o["kind"] = "meta.k8s.io/v1", "PartialObjectMetadata"
	}
	err := s.send("BOOKMARK", o)
	s.flush()
	return err
}

func (s *stream) send(what string, o any) error {
	text, err := json.Marshal(map[string]any{"type": what, "object": o})
	if err == nil {
		_, err = s.w.Write(append(text, '\n'))
	}
	return err
}

func (s *stream) flush() {
	if f, ok := s.w.(http.Flusher); ok {
		f.Flush()
	}
}
