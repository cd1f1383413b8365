package member_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/test/simulated"
)

// An ingressServer is a cluster with an Ingress whose port belongs to a canary controller. The
// rules of an Ingress are replaced as a whole.
type ingressServer struct {
	*watched
	direct dynamic.ResourceInterface
	next   http.RoundTripper

	mu       sync.Mutex
	requests []string // methods of the requests for the Ingress, except watches
	before   func()   // called before the next write
}

// RoundTrip implements http.RoundTripper.
func (s *ingressServer) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/ingresses/web") {
		s.mu.Lock()
		s.requests = append(s.requests, r.Method)
		before := s.before
		if r.Method == http.MethodPatch {
			s.before = nil
		}
		s.mu.Unlock()
		if before != nil && r.Method == http.MethodPatch {
			before()
		}
	}
	return s.next.RoundTrip(r)
}

// sent returns the requests since the last call.
func (s *ingressServer) sent() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := strings.Join(s.requests, " ")
	s.requests = nil
	return all
}

func newIngressServer(t *testing.T) *ingressServer {
	cluster := simulated.New(simulated.Options{}).Cluster("east")
	s := &ingressServer{next: cluster.RoundTripper()}
	client, err := dynamic.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	s.direct = client.Resource(schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"}).Namespace("default")
	s.watched = &watched{t: t, config: &rest.Config{Host: cluster.Config().Host, Transport: s, QPS: -1}}
	return s
}

// ingress sets what Git has: the port 80, which is left to others, and a path.
func (s *ingressServer) ingress(path, hash string) {
	s.hash = hash
	s.content = &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
		"metadata": map[string]any{"name": "web", "namespace": "default", "annotations": map[string]any{api.IgnoreFieldsAnnotation: port}},
		"spec": map[string]any{"rules": []any{map[string]any{"host": "a.example.com", "http": map[string]any{"paths": []any{map[string]any{
			"path": path, "pathType": "Prefix", "backend": map[string]any{"service": map[string]any{"name": "web", "port": map[string]any{"number": int64(80)}}},
		}}}}}},
	}}
}

const port = "/spec/rules/0/http/paths/0/backend/service/port/number"

// shift writes the port as the canary controller does.
func (s *ingressServer) shift(number int) {
	s.t.Helper()
	s.patch("canary-controller", fmt.Sprintf(`[{"op": "replace", "path": %q, "value": %d}]`, port, number))
}

func (s *ingressServer) patch(manager, patch string) {
	s.t.Helper()
	if _, err := s.direct.Patch(s.t.Context(), "web", types.JSONPatchType, []byte(patch), metav1.PatchOptions{FieldManager: manager}); err != nil {
		s.t.Fatal(err)
	}
}

// expect checks the path and port on the cluster.
func (s *ingressServer) expect(path string, number int) {
	s.t.Helper()
	synctest.Wait()
	o, err := s.direct.Get(s.t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	want := fmt.Sprintf("path:%s pathType:Prefix", path)
	if text := fmt.Sprint(o.Object["spec"]); !strings.Contains(text, want) || !strings.Contains(text, fmt.Sprintf("number:%d]", number)) {
		s.t.Errorf("it is %s, want the path %s and the port %d", text, path, number)
	}
}

// While another controller moves a part of an atomic list that the manifest leaves to it, that is
// no drift, however often; a new version of the rest of the list arrives beside its latest value,
// also if the controller writes between the read and the apply; and nothing is sent when idle.
func TestPartsOfAtomicListsAreLeft(t *testing.T) {
	for _, mode := range []api.DriftMode{"", api.DriftReport, api.DriftPropose} {
		t.Run(string(mode), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newIngressServer(t)
				s.mode = mode
				s.ingress("/v1", "1")
				s.start()
				s.expect("/v1", 80)
				for i := range 5 {
					time.Sleep(10 * time.Second)
					s.shift(81 + i)
					s.expect("/v1", 81+i)
					if d := s.drift(); d.State != api.DriftIgnored || d.Count != 1 || len(d.Paths) != 1 || d.Paths[0].Path != port || d.Paths[0].ValueInMember != fmt.Sprint(81+i) {
						t.Errorf("it is remembered as %+v", d)
					}
				}
				s.sent()
				time.Sleep(3 * time.Hour)
				s.expect("/v1", 85)
				if n := s.sent(); n != "" {
					t.Errorf("while nothing happens, it sends %s", n)
				}

				s.shift(86)
				s.ingress("/v2", "2")
				s.Set(s.works())
				s.expect("/v2", 86)
				s.before = func() { s.shift(99) }
				s.sent()
				s.ingress("/v3", "3")
				s.Set(s.works())
				s.expect("/v3", 99)
				if got := s.sent(); !strings.HasPrefix(got, "GET PATCH GET PATCH") {
					t.Errorf("after a conflict it sends %s", got)
				}

				// The value of the rest of the list is still reverted, and not that of the port.
				s.patch("kubectl-edit", `[{"op": "replace", "path": "/spec/rules/0/http/paths/0/path", "value": "/evil"}]`)
				time.Sleep(time.Second)
				if mode == "" {
					s.expect("/v3", 99)
				}
				if d := s.drift(); mode == "" && (d.State != api.DriftIgnored || d.Count != 2) || mode != "" && d.State != api.DriftHeld || len(d.Paths) != 1 {
					t.Errorf("it is remembered as %+v", d)
				}
				s.stop()
			})
		})
	}
}

// If it is not clear which item of an atomic list a field belongs to, the object is not written,
// and the condition names the field and what to do.
func TestUnclearItemsOfAtomicListsAreNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newIngressServer(t)
		s.ingress("/v1", "1")
		s.start()
		s.shift(90)
		s.expect("/v1", 90)
		s.ingress("/v2", "2")
		rule := s.content.Object["spec"].(map[string]any)["rules"].([]any)[0].(map[string]any)
		rule["http"] = map[string]any{"paths": []any{map[string]any{"pathType": "Exact", "backend": map[string]any{"service": map[string]any{
			"name": "web", "port": map[string]any{"number": int64(80)},
		}}}, map[string]any{"pathType": "ImplementationSpecific"}}}
		s.Set(s.works())
		time.Sleep(time.Second)
		s.expect("/v1", 90)
		s.watched.mu.Lock()
		failed := s.seen.Exceptions
		s.watched.mu.Unlock()
		if len(failed) != 1 || failed[0].Applied.OK || !strings.Contains(failed[0].Applied.Message(), port) || !strings.Contains(failed[0].Applied.Message(), "take the field out of the annotation") {
			t.Errorf("the report has %+v", failed)
		}
		s.ingress("/v1", "3")
		s.Set(s.works())
		s.expect("/v1", 90)
		s.stop()
	})
}
