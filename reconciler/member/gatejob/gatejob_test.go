package gatejob

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// jobs is an API server that has at most one Job. It sets the same fields as a real one.
type jobs struct {
	live     map[string]any // nil if there is none
	refuses  int            // the status code of every creation; 0 for none
	requests []string
}

// ServeHTTP implements http.Handler.
func (s *jobs) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests = append(s.requests, r.Method+" "+r.URL.Query().Get("dryRun"))
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method == http.MethodPost && s.refuses > 0:
		apiserver.Refuse(w, s.refuses, "no")
		return
	case r.Method == http.MethodPost:
		raw, _ := io.ReadAll(r.Body)
		var o map[string]any
		json.Unmarshal(raw, &o) //nolint:errcheck // the test would see it
		stored(o)
		if !r.URL.Query().Has("dryRun") {
			s.live = o
		}
		json.NewEncoder(w).Encode(o) //nolint:errcheck // the test would see it
		return
	case s.live == nil:
		apiserver.Refuse(w, http.StatusNotFound, "not found")
		return
	}
	json.NewEncoder(w).Encode(s.live) //nolint:errcheck // the test would see it
}

// stored sets what an API server sets in a new Job.
func stored(o map[string]any) {
	name, _, _ := unstructured.NestedString(o, "metadata", "name")
	set := func(value any, path ...string) { unstructured.SetNestedField(o, value, path...) } //nolint:errcheck // the test would see it
	set("uid of "+name, "metadata", "uid")
	set("1", "metadata", "resourceVersion")
	set(false, "spec", "suspend")
	set("ClusterFirst", "spec", "template", "spec", "dnsPolicy")
	set("uid of "+name, "spec", "selector", "matchLabels", "batch.kubernetes.io/controller-uid")
	for label, value := range map[string]string{"controller-uid": "uid of " + name, "job-name": name} {
		set(value, "spec", "template", "metadata", "labels", label)
		set(value, "spec", "template", "metadata", "labels", "batch.kubernetes.io/"+label)
	}
}

func conn(t *testing.T, h http.Handler) *connection.Conn {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	metrics := connection.NewMetrics()
	c, err := connection.New(connection.Config{Cluster: "east", Timeout: time.Minute, Metrics: &metrics}, &rest.Config{Host: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// smoke is the Job of a gate.
func smoke() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "batch/v1", "kind": "Job",
		"metadata": map[string]any{
			"namespace": "checks", "name": "smoke-1", "labels": map[string]any{api.RolloutGateLabel: "smoke"}, "annotations": map[string]any{api.FleetIDAnnotation: "ours"},
		},
		"spec": map[string]any{"backoffLimit": int64(0), "template": map[string]any{"spec": map[string]any{
			"restartPolicy": "Never", "containers": []any{map[string]any{"name": "smoke", "image": "example.com/smoke"}},
		}}},
	}}
}

// A Job is created once, and read after that. One that has ended counts only if it is the gate's, and as the API server would make it now,
// apart from what a scheduler of Jobs changes.
func TestJobsAreCreatedOnceAndCompared(t *testing.T) {
	ended := func(o map[string]any, typ string) {
		o["status"] = map[string]any{"conditions": []any{map[string]any{"type": typ, "status": "True"}}}
	}
	set := func(o map[string]any, value any, path ...string) { unstructured.SetNestedField(o, value, path...) } //nolint:errcheck // the test would see it
	const get, create, dryRun = "GET ", "POST ", "POST All"
	for name, test := range map[string]struct {
		change   func(o map[string]any) // nil for a Job that does not exist
		refuses  int
		requests []string
		err      string
	}{
		"new":                  {nil, 0, []string{get, create}, ""},
		"no permission":        {nil, http.StatusForbidden, []string{get, create}, "no"},
		"created meanwhile":    {nil, http.StatusConflict, []string{get, create}, ""},
		"running":              {func(map[string]any) {}, 0, []string{get}, ""},
		"completed":            {func(o map[string]any) { ended(o, "Complete") }, 0, []string{get, dryRun}, ""},
		"failed":               {func(o map[string]any) { ended(o, "Failed") }, 0, []string{get, dryRun}, ""},
		"of another fleet":     {func(o map[string]any) { set(o, "theirs", "metadata", "annotations", api.FleetIDAnnotation) }, 0, []string{get}, "the Job checks/smoke-1 is not gitfleet's; delete it there"},
		"without a label":      {func(o map[string]any) { ended(o, "Complete"); set(o, map[string]any{}, "metadata", "labels") }, 0, []string{get}, "is not gitfleet's"},
		"with another command": {func(o map[string]any) { ended(o, "Complete"); container(o)["command"] = []any{"true"} }, 0, []string{get, dryRun}, "the Job checks/smoke-1 is not as in Git, and does not count; delete it there, and it is created again"},
		"with another image":   {func(o map[string]any) { ended(o, "Complete"); container(o)["image"] = "example.com/true" }, 0, []string{get, dryRun}, "is not as in Git"},
		"with no completions":  {func(o map[string]any) { ended(o, "Complete"); set(o, int64(0), "spec", "completions") }, 0, []string{get, dryRun}, "is not as in Git"},
		"failed, with another": {func(o map[string]any) { ended(o, "Failed"); container(o)["image"] = "example.com/false" }, 0, []string{get, dryRun}, "is not as in Git"},
		"on another node": {func(o map[string]any) {
			ended(o, "Complete")
			set(o, map[string]any{"zone": "a"}, "spec", "template", "spec", "nodeSelector")
		}, 0, []string{get, dryRun}, ""},
		"admitted by Kueue": {func(o map[string]any) {
			ended(o, "Complete")
			set(o, "main", "spec", "template", "metadata", "labels", "kueue.x-k8s.io/podset")
			set(o, "flavor", "spec", "template", "metadata", "annotations", "kueue.x-k8s.io/workload")
		}, 0, []string{get, dryRun}, ""},
		"with an annotation": {func(o map[string]any) {
			ended(o, "Complete")
			set(o, "true", "spec", "template", "metadata", "annotations", "example.com/skip")
		}, 0, []string{get, dryRun}, "is not as in Git"},
		"it cannot be compared": {func(o map[string]any) { ended(o, "Complete") }, http.StatusForbidden, []string{get, dryRun}, "compare the Job checks/smoke-1 with Git: no"},
	} {
		s := &jobs{refuses: test.refuses}
		if test.change != nil {
			s.live = smoke().Object
			stored(s.live)
			test.change(s.live)
		}
		got, err := run(t.Context(), conn(t, s), smoke())
		if !slices.Equal(s.requests, test.requests) {
			t.Errorf("%s: requests are %q, want %q", name, s.requests, test.requests)
		}
		switch {
		case test.err == "" && (err != nil || got.GetName() != "smoke-1"):
			t.Errorf("%s: %v, %v", name, got, err)
		case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)):
			t.Errorf("%s: %v, want %q", name, err, test.err)
		}
	}
}

// container returns the container of a Job, which may be changed.
func container(o map[string]any) map[string]any {
	pod := o["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	one := maps.Clone(pod["containers"].([]any)[0].(map[string]any))
	pod["containers"] = []any{one}
	return one
}
