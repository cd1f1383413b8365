package autoscaler

import (
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// An autoscaler is found even if it is on a later page of the list, unless it is leaving.
func TestAutoscalersAreFoundOnEveryPage(t *testing.T) {
	const hpa = `{"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v2","metadata":{"name":"web","namespace":"shop","ownerReferences":[{"apiVersion":"keda.sh/v1alpha1","kind":"ScaledObject","name":"web"}]},"spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"}}}`
	conn := connect(t, func(r *http.Request) string {
		if r.URL.Query().Get("continue") == "more" {
			return `{"kind":"HorizontalPodAutoscalerList","apiVersion":"autoscaling/v2","metadata":{},"items":[` + hpa + `]}`
		}
		return `{"kind":"HorizontalPodAutoscalerList","apiVersion":"autoscaling/v2","metadata":{"continue":"more"},"items":[]}`
	})
	by := api.Actor{Manager: "kube-controller-manager"}
	for name, there := range map[string]bool{"web": true, "other": false} {
		id := api.ID{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: name}
		if text, found := find(t.Context(), conn, id, by, Placed{}); found != there {
			t.Errorf("%s: %v, %s", name, found, text)
		}
	}
	id := api.ID{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}
	for _, kind := range []api.GroupKind{{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}, {Group: "keda.sh", Kind: "ScaledObject"}} {
		leaving := map[api.ID]bool{{Group: kind.Group, Kind: kind.Kind, Namespace: "shop", Name: "web"}: true}
		if text, found := find(t.Context(), conn, id, by, Placed{Leaving: leaving}); found {
			t.Errorf("while the %s is leaving: %s", kind.Kind, text)
		}
	}
}

// What KEDA scales is left to the ScaledObject that is placed, also while that is paused and has no
// HorizontalPodAutoscaler. What another tool scales is not.
func TestPausedScaledObjectScales(t *testing.T) {
	conn := connect(t, func(*http.Request) string {
		return `{"kind":"HorizontalPodAutoscalerList","apiVersion":"autoscaling/v2","metadata":{},"items":[]}`
	})
	id := api.ID{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}
	placed := Placed{Scaler: api.ID{Group: "keda.sh", Kind: "ScaledObject", Namespace: "shop", Name: "web"}}
	tests := []struct {
		manager string
		placed  Placed
		there   bool
	}{{"keda", placed, true}, {"keda", Placed{}, false}, {"helm", placed, false}}
	for _, test := range tests {
		name, there := find(t.Context(), conn, id, api.Actor{Manager: test.manager}, test.placed)
		if there != test.there || there && name != "the ScaledObject web" {
			t.Errorf("%s, placed %v: %v, %q", test.manager, test.placed, there, name)
		}
	}
}

// connect returns a connection to a server that answers requests with JSON.
func connect(t *testing.T, answer func(*http.Request) string) *connection.Conn {
	t.Helper()
	metrics := connection.NewMetrics()
	conn, err := connection.New(connection.Config{Cluster: "east", Timeout: time.Minute, Metrics: &metrics, Log: slog.New(slog.DiscardHandler)}, &rest.Config{Host: "https://server.example", Transport: apiserver.Answer(func(r *http.Request) *http.Response {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r, Body: io.NopCloser(strings.NewReader(answer(r)))}
	})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// Only fields in which an autoscaler differs from the manifest are contested, and the message says
// who scales the object and what to change.
func TestContestedFields(t *testing.T) {
	agrees := Rival{Rival: diff.Rival{Path: "/spec/paused", Wanted: "false", Value: "false"}, Name: "the field manager keda"}
	differs := Rival{Rival: diff.Rival{Path: "/spec/replicas", Wanted: "2", Value: "5", By: api.Actor{Manager: "hpa"}}, Name: "the HorizontalPodAutoscaler web"}
	if got := Paths([]Rival{agrees, differs}); !slices.Equal(got, []string{"/spec/paused", "/spec/replicas"}) {
		t.Errorf("paths: %q", got)
	}
	got := Contested([]Rival{agrees, differs})
	if len(got) != 1 || got[0].Path != "/spec/replicas" || got[0].ValueInHub != "2" || got[0].ValueInMember != "5" || got[0].By[0].Manager != "hpa" {
		t.Errorf("contested: %+v", got)
	}
	if text := Message([]Rival{agrees, differs}); !strings.HasPrefix(text, "the HorizontalPodAutoscaler web sets /spec/replicas to 5, the manifest to 2: ") || strings.Contains(text, "paused") {
		t.Errorf("it says %q", text)
	}
}
