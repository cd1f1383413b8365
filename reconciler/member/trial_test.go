package member_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/test/simulated"
)

// A gatekeeper is in front of a cluster. It denies some objects by name, and notes what would
// be stored.
type gatekeeper struct {
	next   http.RoundTripper
	denies map[string]string

	mu     sync.Mutex
	stored []string
}

func (g *gatekeeper) RoundTrip(r *http.Request) (*http.Response, error) {
	g.mu.Lock()
	if r.Method != http.MethodGet && r.URL.Query().Get("dryRun") != "All" && !strings.HasSuffix(r.URL.Path, "accessreviews") {
		g.stored = append(g.stored, r.Method+" "+r.URL.Path)
	}
	g.mu.Unlock()
	name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	if why := g.denies[name]; why != "" && r.Method == http.MethodPatch {
		code, reason := http.StatusForbidden, metav1.StatusReasonForbidden
		if strings.Contains(why, "dry run") {
			code, reason = http.StatusBadRequest, metav1.StatusReasonBadRequest
		}
		body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Status","status":"Failure","code":%d,"reason":%q,"message":%q}`, code, reason, why)
		return &http.Response{StatusCode: code, Request: r, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader([]byte(body)))}, nil
	}
	return g.next.RoundTrip(r)
}

// A trial has the cluster say what would become of objects, those too that are not there yet,
// and stores nothing.
func TestTry(t *testing.T) {
	cluster := simulated.New(simulated.Options{}).Cluster("east")
	direct := cluster.Config()
	gate := &gatekeeper{next: cluster.RoundTripper(), denies: map[string]string{
		"denied": `admission webhook "policy" denied the request: hunter2-of-the-trial is not allowed`, "there-denied": `admission webhook "policy" denied the request`,
		"untried": `admission webhook "old" does not support dry run`,
	}}
	for _, name := range []string{"theirs", "there-denied", "kept", "other"} {
		body := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"default"},"data":{"key":"theirs"}}`, name)
		if _, err := mapsOf(t, direct).Patch(t.Context(), name, types.ApplyPatchType, []byte(body), metav1.PatchOptions{FieldManager: "kubectl"}); err != nil {
			t.Fatal(err)
		}
	}
	object := func(kind, namespace, name string) *work.Manifest {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name}}}
		switch {
		case kind == "Unheard":
			o.SetAPIVersion("example.com/v1")
		case kind == "Secret":
			o.Object["stringData"] = map[string]any{"password": "hunter2-of-the-trial"}
		case kind == "ConfigMap":
			o.Object["data"] = map[string]any{"key": "sent"}
		}
		o.SetNamespace(namespace)
		return &work.Manifest{Object: &api.Object{ID: api.IDOf(o), Object: o, Hash: "h"}}
	}
	web, never := api.PlacementKey{Name: "web"}, api.PlacementKey{Name: "never"}
	works := []work.Work{
		{Placement: web, Revision: placement.Revision{Commit: "c", Hash: "1"}, Strategy: api.ApplyStrategy{WhenToTakeOver: api.TakeOverAlways, WhenToApply: api.ApplyAlways}, Manifests: []*work.Manifest{
			object("Namespace", "", "coming"), object("ConfigMap", "coming", "inside"), object("ConfigMap", "absent", "nowhere"), object("ConfigMap", "default", "new"),
			object("ConfigMap", "default", "theirs"), object("ConfigMap", "default", "there-denied"), object("ConfigMap", "default", "untried"),
			object("ConfigMap", "default", "other"), object("Secret", "default", "denied"), object("Unheard", "default", "x"),
		}},
		{Placement: never, Revision: placement.Revision{Commit: "c", Hash: "1"}, Strategy: api.ApplyStrategy{WhenToTakeOver: api.TakeOverNever, WhenToApply: api.ApplyAlways}, Manifests: []*work.Manifest{object("ConfigMap", "default", "kept")}},
	}
	var targets []member.Target
	for _, w := range works {
		for _, m := range w.Manifests {
			if m.ID.Name != "other" {
				targets = append(targets, member.Target{Placement: w.Placement, ID: m.ID})
			}
		}
	}
	p, _, err := member.Peek(t.Context(), member.Config{
		Name: "east", Fleet: "prod", Encoder: member.NewEncoder("prod", "https://git.example.com/fleet"), Log: slog.New(slog.DiscardHandler),
		Connect: func(context.Context) (*rest.Config, error) {
			return &rest.Config{Host: direct.Host, Transport: gate, QPS: -1}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	changes, err := p.Try(t.Context(), works, targets)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range changes {
		text := fmt.Sprintf("%s %s", c.Effect, c.ID.Name)
		for what, is := range map[string]bool{" taken over": c.TakesOver, " refused": c.Refused} {
			if is {
				text += what
			}
		}
		for _, d := range c.Diffs {
			text += fmt.Sprintf(" %s %v", d.Path, d.By)
		}
		if c.Message != "" {
			text += ": " + c.Message
		}
		got = append(got, text)
	}
	want := []string{
		"add coming",
		"add inside: not tried: Namespace/coming is not there yet",
		`fail nowhere: namespaces "absent" not found`,
		"add new",
		"change theirs taken over /data/key [kubectl (Apply)]",
		`fail there-denied taken over: admission webhook "policy" denied the request`,
		`unknown untried: admission webhook "old" does not support dry run`,
		`fail denied: admission webhook "policy" denied the request: (redacted for security reasons) is not allowed`,
		"fail x: ",
		"differ kept refused: Failed to apply the manifest (error: no ownership of the object in the member cluster; takeover is needed)",
	}
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(gate.stored) > 0 {
		t.Errorf("it was written: %q", gate.stored)
	}
}
