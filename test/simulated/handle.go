package simulated

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/test/fleet"
)

// A request is a request about objects.
type request struct {
	*http.Request
	kind                 *kind
	namespace, name, sub string
}

// ServeHTTP serves the Kubernetes API of the cluster.
func (c *Cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	down := c.down
	q, found := c.understand(r)
	c.requests[q.key()]++
	c.mu.Unlock()
	switch {
	case down != nil:
		down.ServeHTTP(w, r)
	case q.kind != nil:
		q.answer(w, c)
	case found:
		c.plain(w, r)
	default:
		fail(w, missing())
	}
}

// understand parses the path of a request. If it has no kind, the request is about the server;
// found is false if the path does not exist. The lock must be held.
func (c *Cluster) understand(r *http.Request) (q *request, found bool) {
	q = &request{Request: r}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	group, version := "", ""
	switch {
	case parts[0] == "api" && len(parts) > 2:
		version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		group, version, parts = parts[1], parts[2], parts[3:]
	default:
		return q, true
	}
	if parts[0] == "namespaces" && len(parts) > 2 && !(group == "" && (parts[2] == "status" || parts[2] == "finalize")) {
		q.namespace, parts = parts[1], parts[2:]
	}
	q.kind = c.served(group, version, parts[0])
	if len(parts) > 1 {
		q.name = parts[1]
	}
	if len(parts) > 2 {
		q.sub = parts[2]
	}
	switch {
	case q.kind == nil, len(parts) > 3, q.namespace != "" && !q.kind.namespaced, q.name != "" && q.namespace == "" && q.kind.namespaced,
		q.sub != "" && (q.sub != "status" || !q.kind.status):
		return &request{Request: r}, false
	}
	return q, true
}

// key returns the labels with which a real API server counts the request.
func (q *request) key() fleet.Key {
	if q.kind == nil {
		return fleet.Key{Verb: q.Method, Subresource: q.URL.Path}
	}
	verb := q.Method
	switch {
	case verb == http.MethodPatch && q.patchType() == applyType:
		verb = "APPLY"
	case verb == http.MethodGet && q.watches():
		verb = "WATCH"
	case verb == http.MethodGet && q.name == "":
		verb = "LIST"
	case verb == http.MethodDelete && q.name == "":
		verb = "DELETECOLLECTION"
	}
	return fleet.Key{Verb: verb, Group: q.kind.Group, Resource: q.kind.plural, Subresource: q.sub}
}

func (q *request) watches() bool {
	v := q.URL.Query().Get("watch")
	return q.name == "" && (v == "true" || v == "1")
}

const applyType = "application/apply-patch+yaml"

func (q *request) patchType() string {
	t, _, _ := mime.ParseMediaType(q.Header.Get("Content-Type"))
	return t
}

// manager returns the field manager of the request.
func (q *request) manager() string {
	if m := q.URL.Query().Get("fieldManager"); m != "" {
		return m
	}
	agent, _, _ := strings.Cut(q.UserAgent(), "/")
	return agent
}

func (q *request) dry() bool { return q.URL.Query().Get("dryRun") != "" }

// answer serves the request.
func (q *request) answer(w http.ResponseWriter, c *Cluster) {
	body, err := io.ReadAll(io.LimitReader(q.Body, 3<<20))
	if err != nil {
		return // the client has disconnected
	}
	if q.watches() && q.Method == http.MethodGet {
		q.watch(w, c)
		return
	}
	status, o, err := q.do(c, body)
	if err != nil {
		fail(w, err)
		return
	}
	write(w, status, o)
}

// do performs the request, and returns the response.
func (q *request) do(c *Cluster, body []byte) (status int, o any, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case q.Method == http.MethodGet && q.name == "":
		o, err = q.list(c)
		return http.StatusOK, o, err
	case q.Method == http.MethodPost && q.name == "":
		return q.post(c, body)
	case q.Method == http.MethodDelete && q.name == "":
		return q.deleteAll(c, body)
	case q.Method == http.MethodPatch && q.name != "" && q.patchType() == applyType:
		return q.apply(c, body)
	}
	before := c.find(q.kind, q.namespace, q.name)
	if before == nil && q.name != "" {
		return 0, nil, apierrors.NewNotFound(q.kind.resource(), q.name)
	}
	switch {
	case q.name == "":
	case q.Method == http.MethodGet:
		return http.StatusOK, q.shown(before), nil
	case q.Method == http.MethodPut:
		return q.put(c, before, body)
	case q.Method == http.MethodPatch:
		return q.patch(c, before, body)
	case q.Method == http.MethodDelete:
		return q.delete(c, before, body)
	}
	return 0, nil, apierrors.NewMethodNotSupported(q.kind.resource(), strings.ToLower(q.Method))
}

// shown returns an object in the requested form.
func (q *request) shown(o *object) any {
	if q.metadataOnly() {
		return o.partial()
	}
	return o.whole()
}

func (q *request) metadataOnly() bool {
	for accept := range strings.SplitSeq(q.Header.Get("Accept"), ",") {
		t, params, err := mime.ParseMediaType(strings.TrimSpace(accept))
		if err != nil || t != "application/json" && t != "*/*" {
			continue
		}
		return strings.HasPrefix(params["as"], "PartialObjectMetadata")
	}
	return false
}

// missing returns the error for a path that does not exist.
func missing() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound,
		Message: "the server could not find the requested resource", Details: &metav1.StatusDetails{},
	}}
}

func write(w http.ResponseWriter, status int, o any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	respond(w, o)
}

func respond(w http.ResponseWriter, o any) {
	_, _ = w.Write([]byte(marshal(o) + "\n")) // the client may have disconnected
}

// fail responds with an error in the form of an API server.
func fail(w http.ResponseWriter, err error) {
	var apiStatus apierrors.APIStatus
	if !errors.As(err, &apiStatus) {
		apiStatus = apierrors.NewInternalError(fmt.Errorf("simulated: %w", err))
	}
	status := apiStatus.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	write(w, int(status.Code), status)
}
