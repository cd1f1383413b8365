package member_test

import (
	"bytes"
	"context"
	"errors"
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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/test/simulated"
)

// An admissionTransport is a transport in front of a cluster. It denies some objects by name, and
// records what would be stored and which objects are tried.
type admissionTransport struct {
	next   http.RoundTripper
	denies map[string]string
	// codes are the status codes of responses that replace those of the cluster, by method and
	// path.
	codes map[string]int

	mu            sync.Mutex
	stored, tried []string
}

func (g *admissionTransport) status(r *http.Request, code int, reason metav1.StatusReason, why string) (*http.Response, error) {
	body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Status","status":"Failure","code":%d,"reason":%q,"message":%q}`, code, reason, why)
	return &http.Response{StatusCode: code, Request: r, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader([]byte(body)))}, nil
}

func (g *admissionTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	g.mu.Lock()
	if r.Method != http.MethodGet && r.URL.Query().Get("dryRun") != "All" && !strings.HasSuffix(r.URL.Path, "accessreviews") {
		g.stored = append(g.stored, r.Method+" "+r.URL.Path)
	}
	if r.Method == http.MethodPatch {
		g.tried = append(g.tried, r.URL.Path)
	}
	g.mu.Unlock()
	switch code := g.codes[r.Method+" "+r.URL.Path]; code {
	case 0:
	case -1:
		return nil, errors.New("dial tcp 10.0.0.1:6443: no route to host")
	case http.StatusInternalServerError:
		return g.status(r, code, metav1.StatusReasonInternalError, `failed calling webhook "policy": no endpoints`)
	case http.StatusServiceUnavailable:
		return g.status(r, code, metav1.StatusReasonServiceUnavailable, "the server is currently unable to handle the request")
	default:
		return g.status(r, code, metav1.StatusReasonNotFound, "not found")
	}
	name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	if why := g.denies[name]; why != "" && r.Method == http.MethodPatch {
		code, reason := http.StatusForbidden, metav1.StatusReasonForbidden
		if strings.Contains(why, "dry run") {
			code, reason = http.StatusBadRequest, metav1.StatusReasonBadRequest
		}
		return g.status(r, code, reason, why)
	}
	return g.next.RoundTrip(r)
}

// Try determines the effects on objects, also on those that do not exist yet, and stores
// nothing.
func TestTry(t *testing.T) {
	cluster := simulated.New(simulated.Options{}).Cluster("east")
	direct := cluster.Config()
	gate := &admissionTransport{next: cluster.RoundTripper(), denies: map[string]string{
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
		return &work.Manifest{Object: &api.Object{ID: api.IDOf(o), Content: o, Hash: "h"}}
	}
	web, never := api.PlacementKey{Name: "web"}, api.PlacementKey{Name: "never"}
	works := []*work.Work{
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
	changes := tryAt(t, direct.Host, gate, works, targets)
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
		"add inside: Namespace/coming is not there yet",
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

// tryAt returns the result of Try for a cluster behind an admissionTransport.
func tryAt(t *testing.T, host string, gate *admissionTransport, works []*work.Work, targets []member.Target) []member.Change {
	t.Helper()
	changes, err := previewAt(t, host, gate).Try(t.Context(), works, targets)
	if err != nil {
		t.Fatal(err)
	}
	return changes
}

// previewAt returns a preview of a cluster behind an admissionTransport.
func previewAt(t *testing.T, host string, gate *admissionTransport) *member.Preview {
	t.Helper()
	p, _, err := member.Peek(t.Context(), member.Config{
		Name: "east", Fleet: "prod", Encoder: apply.NewEncoder("prod", "https://git.example.com/fleet"), Log: slog.New(slog.DiscardHandler),
		Connect: func(context.Context) (*rest.Config, error) {
			return &rest.Config{Host: host, Transport: gate, QPS: -1}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

const gadgets = "/apis/example.com/v1/namespaces/default/gadgets/"

func configMap(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "default"}, "data": map[string]any{"key": "sent"},
	}}
}

// gadget returns an object of a kind that definitionOf defines.
func gadget(group, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1", "kind": "Gadget", "metadata": map[string]any{"name": name, "namespace": "default"}, "spec": map[string]any{"size": "1"},
	}}
}

func definitionOf(group string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "gadgets." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced", "names": map[string]any{"kind": "Gadget", "plural": "gadgets"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true}},
		},
	}}
}

// An object is tried only if a dry run stores nothing. If the server cannot decide about an
// object, or a definition in the same plan decides about it, the object is not refused.
// Suspended objects are left out.
func TestTryReportsUnknownEffects(t *testing.T) {
	const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
	for name, test := range map[string]struct {
		defined []string // the groups whose definitions the cluster has
		codes   map[string]int
		objects []*unstructured.Unstructured
		// others belong to the works but are not among the targets.
		others    []*unstructured.Unstructured
		there     bool
		suspended string
		want      string
		tried     []string
	}{
		"a defined kind":                       {defined: []string{"example.com"}, objects: []*unstructured.Unstructured{gadget("example.com", "a")}, want: "add a", tried: []string{gadgets + "a"}},
		"an aggregated API":                    {defined: []string{"example.com"}, codes: map[string]int{"GET " + definitions + "gadgets.example.com": 404}, objects: []*unstructured.Unstructured{gadget("example.com", "a")}, want: "unknown a: it is served by an API that may ignore dry runs"},
		"an aggregated API of a like name":     {defined: []string{"metrics.k8s.io"}, codes: map[string]int{"GET " + definitions + "gadgets.metrics.k8s.io": 404}, objects: []*unstructured.Unstructured{gadget("metrics.k8s.io", "a")}, want: "unknown a: it is served by an API that may ignore dry runs"},
		"definitions that cannot be read":      {defined: []string{"example.com"}, codes: map[string]int{"GET " + definitions + "gadgets.example.com": 503}, objects: []*unstructured.Unstructured{gadget("example.com", "a")}, want: "unknown a: whether its API may ignore dry runs cannot be told: the server is currently unable"},
		"a webhook that is down":               {codes: map[string]int{"PATCH /api/v1/namespaces/default/configmaps/a": 500}, objects: []*unstructured.Unstructured{configMap("a")}, want: `unknown a: failed calling webhook "policy": no endpoints`, tried: []string{"/api/v1/namespaces/default/configmaps/a"}},
		"a webhook of an object that is there": {codes: map[string]int{"PATCH /api/v1/namespaces/default/configmaps/a": 500}, objects: []*unstructured.Unstructured{configMap("a")}, there: true, want: `unknown a: failed calling webhook "policy": no endpoints`, tried: []string{"/api/v1/namespaces/default/configmaps/a"}},
		"a server that is not available":       {codes: map[string]int{"PATCH /api/v1/namespaces/default/configmaps/a": 503}, objects: []*unstructured.Unstructured{configMap("a")}, want: "unknown a: the server is currently unable", tried: []string{"/api/v1/namespaces/default/configmaps/a"}},
		"a server that does not answer":        {codes: map[string]int{"PATCH /api/v1/namespaces/default/configmaps/a": -1}, objects: []*unstructured.Unstructured{configMap("a")}, want: "unknown a: the API server does not answer", tried: []string{"/api/v1/namespaces/default/configmaps/a"}},
		"discovery that fails":                 {codes: map[string]int{"GET /apis/example.com/v1": 503}, objects: []*unstructured.Unstructured{gadget("example.com", "a")}, want: "unknown a: the cluster cannot serve example.com/v1 now: the server is currently unable"},
		"a definition that comes with it":      {objects: []*unstructured.Unstructured{gadget("example.com", "a")}, others: []*unstructured.Unstructured{definitionOf("example.com")}, want: "unknown a: the cluster does not have its CustomResourceDefinition gadgets.example.com as the plan has it"},
		"a definition that changes": {
			defined: []string{"example.com"}, codes: map[string]int{"PATCH " + gadgets + "a": 404}, objects: []*unstructured.Unstructured{gadget("example.com", "a")}, others: []*unstructured.Unstructured{definitionOf("example.com")},
			want: "unknown a: the cluster does not have its CustomResourceDefinition gadgets.example.com as the plan has it", tried: []string{gadgets + "a"},
		},
		"a suspended placement": {objects: []*unstructured.Unstructured{configMap("a")}, suspended: "for maintenance"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := simulated.New(simulated.Options{}).Cluster("east")
			direct := cluster.Config()
			for _, group := range test.defined {
				client, err := dynamic.NewForConfig(direct)
				if err != nil {
					t.Fatal(err)
				}
				at := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
				if _, err := at.Create(t.Context(), definitionOf(group), metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			if test.there {
				other := configMap("a")
				other.Object["data"] = map[string]any{"key": "theirs"}
				if _, err := mapsOf(t, direct).Create(t.Context(), other, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			w := &work.Work{
				Placement: api.PlacementKey{Name: "web"}, Revision: placement.Revision{Commit: "c", Hash: "1"}, Suspended: test.suspended,
				Strategy: api.ApplyStrategy{WhenToTakeOver: api.TakeOverAlways, WhenToApply: api.ApplyAlways},
			}
			var targets []member.Target
			for i, o := range slices.Concat(test.objects, test.others) {
				w.Manifests = append(w.Manifests, &work.Manifest{Object: &api.Object{ID: api.IDOf(o), Content: o, Hash: "h"}})
				if i < len(test.objects) {
					targets = append(targets, member.Target{Placement: w.Placement, ID: api.IDOf(o)})
				}
			}
			gate := &admissionTransport{next: cluster.RoundTripper(), codes: test.codes}
			got := ""
			for _, c := range tryAt(t, direct.Host, gate, []*work.Work{w}, targets) {
				got += strings.TrimSuffix(fmt.Sprintf("%s %s: %s", c.Effect, c.ID.Name, c.Message), ": ")
			}
			if !strings.HasPrefix(got, test.want) || test.want == "" && got != "" {
				t.Errorf("it says %q, want %q", got, test.want)
			}
			if !slices.Equal(gate.tried, test.tried) || len(gate.stored) > 0 {
				t.Errorf("tried are %q, want %q; stored are %q", gate.tried, test.tried, gate.stored)
			}
		})
	}
}

// The server decides by a dry run what differs, also for objects that gitfleet would not
// change. Neither comparison requests a dry run of an object of an aggregated API, which may
// ignore that it is a dry run.
func TestServerChanges(t *testing.T) {
	cluster := simulated.New(simulated.Options{}).Cluster("east")
	direct := cluster.Config()
	client, err := dynamic.NewForConfig(direct)
	if err != nil {
		t.Fatal(err)
	}
	create := func(resource schema.GroupVersionResource, namespace string, o *unstructured.Unstructured) {
		t.Helper()
		if _, err := client.Resource(resource).Namespace(namespace).Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	create(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, "", definitionOf("example.com"))
	theirs, aggregated := configMap("theirs"), gadget("example.com", "aggregated")
	theirs.Object["data"] = map[string]any{"key": "theirs"}
	aggregated.Object["spec"] = map[string]any{"size": "2"}
	create(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "default", theirs)
	create(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}, "default", aggregated)
	w := &work.Work{
		Placement: api.PlacementKey{Name: "web"}, Revision: placement.Revision{Commit: "c", Hash: "1"},
		Strategy: api.ApplyStrategy{WhenToTakeOver: api.TakeOverNever, WhenToApply: api.ApplyAlways},
	}
	for _, o := range []*unstructured.Unstructured{configMap("new"), configMap("theirs"), gadget("example.com", "aggregated")} {
		w.Manifests = append(w.Manifests, &work.Manifest{Object: &api.Object{ID: api.IDOf(o), Content: o, Hash: "h"}})
	}
	for name, test := range map[string]struct {
		compare func(*member.Preview, context.Context, []*work.Work) ([]member.Change, error)
		want    []string
		tried   []string
	}{
		"gitfleet decides": {(*member.Preview).Changes, []string{"add new", "differ theirs", "differ aggregated"}, nil},
		"the server decides": {(*member.Preview).ServerChanges, []string{"add new", "change theirs /data/key", "differ aggregated"},
			[]string{"/api/v1/namespaces/default/configmaps/new", "/api/v1/namespaces/default/configmaps/theirs"}},
	} {
		t.Run(name, func(t *testing.T) {
			gate := &admissionTransport{next: cluster.RoundTripper(), codes: map[string]int{"GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.example.com": 404}}
			changes, err := test.compare(previewAt(t, direct.Host, gate), t.Context(), []*work.Work{w})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range changes {
				text := string(c.Effect) + " " + c.ID.Name
				for _, d := range c.Diffs {
					text += " " + d.Path
				}
				got = append(got, text)
			}
			if !slices.EqualFunc(got, test.want, strings.HasPrefix) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			slices.Sort(gate.tried)
			if tried := slices.Compact(gate.tried); !slices.Equal(tried, test.tried) || len(gate.stored) > 0 {
				t.Errorf("tried are %q, want %q; stored are %q", tried, test.tried, gate.stored)
			}
		})
	}
	w.Strategy.WhenToTakeOver, w.Strategy.Type = api.TakeOverAlways, api.ReportDiff
	gate := &admissionTransport{next: cluster.RoundTripper(), codes: map[string]int{"GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.example.com": 404}}
	w.Manifests = w.Manifests[2:]
	changes, err := previewAt(t, direct.Host, gate).Changes(t.Context(), []*work.Work{w})
	if err != nil || len(changes) != 1 || len(changes[0].Diffs) != 1 || changes[0].Diffs[0].Path != "/spec/size" || len(gate.tried) > 0 {
		t.Errorf("compared without a dry run: %v %+v, tried %q", err, changes, gate.tried)
	}
}
