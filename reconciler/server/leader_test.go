package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A replica that does not lead says who does, to Kubernetes clients in a Status. It answers about itself only.
func TestOnlyTheLeaderAnswers(t *testing.T) {
	stands := errors.New("this replica stands by: one leads since 2026-03-01T10:00:00Z; ask that one at https://10.0.0.5:8443")
	s := New(NewRegistry())
	for _, path := range []string{"/apis/", "/webhook"} {
		s.Mount(path, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	}
	s.MountAction("sync", nil)
	s.Publish(measured())
	s.SetLeader(func() error { return stands }, func() bool { return stands == nil })
	answer := func(method, path string) (int, string) {
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
		return w.Code, strings.TrimSpace(w.Body.String())
	}
	for _, request := range []string{"GET /report", "GET /names", "GET /explain?placement=crp/web", "POST /actions/sync"} {
		method, path, _ := strings.Cut(request, " ")
		if code, text := answer(method, path); code != http.StatusServiceUnavailable || text != stands.Error() {
			t.Errorf("%s: %d %s", request, code, text)
		}
	}
	code, text := answer(http.MethodGet, "/apis/placement.kubernetes-fleet.io/v1/clusterresourceplacements")
	var said metav1.Status
	if err := json.Unmarshal([]byte(text), &said); err != nil || code != http.StatusServiceUnavailable || said.Message != stands.Error() || said.Reason != metav1.StatusReasonServiceUnavailable {
		t.Errorf("a Kubernetes client gets %d %s", code, text)
	}
	for path, want := range map[string]int{"/healthz": 200, "/metrics": 200, "/debug/goroutines": 200, "/apis/placement.kubernetes-fleet.io/v1": 200, "/readyz": 503, "/webhook": 503} {
		if code, text := answer(http.MethodGet, path); code != want || strings.Contains(text, "10.0.0.5") {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	stands = nil
	for _, path := range []string{"/report", "/readyz", "/webhook", "/apis/"} {
		if code, text := answer(http.MethodGet, path); code != http.StatusOK {
			t.Errorf("the leader answers %s with %d %s", path, code, text)
		}
	}
}
