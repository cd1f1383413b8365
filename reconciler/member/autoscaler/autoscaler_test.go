package member

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// An autoscaler is found even if it is on a later page of the list.
func TestAutoscalersAreFoundOnEveryPage(t *testing.T) {
	const hpa = `{"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v2","metadata":{"name":"web"},"spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"}}}`
	s := sessionOf(t, &rest.Config{Host: "https://server.example", Transport: apiserver.Answer(func(r *http.Request) *http.Response {
		body := `{"kind":"HorizontalPodAutoscalerList","apiVersion":"autoscaling/v2","metadata":{"continue":"more"},"items":[]}`
		if r.URL.Query().Get("continue") == "more" {
			body = `{"kind":"HorizontalPodAutoscalerList","apiVersion":"autoscaling/v2","metadata":{},"items":[` + hpa + `]}`
		}
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r, Body: io.NopCloser(strings.NewReader(body))}
	})})
	by := api.Actor{Manager: "kube-controller-manager"}
	for name, there := range map[string]bool{"web": true, "other": false} {
		id := api.ID{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: name}
		if text, found := s.applier.executor().autoscaler(t.Context(), id, by); found != there {
			t.Errorf("%s: %v, %s", name, found, text)
		}
	}
}
