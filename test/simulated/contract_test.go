package simulated_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/test/fleet"
	"github.com/gitfleet/gitfleet/test/simulated"
)

func TestMain(m *testing.M) { fleet.Main(m, fleet.Options{Clusters: 1}) }

// A step is one request. In its strings {uid} and {version} are those of the object in the last
// response, and {old} is the version before that.
type step struct {
	name                 string
	method, path, accept string
	contentType, body    string
	// less allows fields that only the response of the real server has, such as defaults.
	less bool
	// statusOnly compares only the status codes of the responses.
	statusOnly bool
	// retry repeats the request until it succeeds.
	retry bool
}

const (
	apply = "application/apply-patch+yaml"
	merge = "application/merge-patch+json"
	plain = "application/json"
	meta  = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
	metas = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

	maps        = "/api/v1/namespaces/contract/configmaps"
	deployments = "/apis/apps/v1/namespaces/contract/deployments"
	things      = "/apis/example.com/v1/namespaces/contract/things"
)

// configMap is one with some data, two pairs a line.
func configMap(name, label string, data ...string) string {
	o := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "labels": map[string]string{"app": label}}}
	values := map[string]string{}
	for _, pair := range data {
		k, v, _ := strings.Cut(pair, "=")
		values[k] = v
	}
	o["data"] = values
	text, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func deployment(replicas, env string) string {
	return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {` + replicas + `selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: "web:1"` + env + `}]}}}}`
}

const crd = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.example.com}, spec: {group: example.com, scope: Namespaced, names: {kind: Thing, listKind: ThingList, plural: things, singular: thing}, versions: [{name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`

var contract = []step{
	{name: "make a namespace", method: "POST", path: "/api/v1/namespaces?fieldManager=one", contentType: plain, body: `{"metadata":{"name":"contract"}}`},
	{name: "apply a namespace", method: "PATCH", path: "/api/v1/namespaces/applied?fieldManager=one", contentType: apply, body: `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"applied","labels":{"a":"b"}}}`},
	{name: "apply something new", method: "PATCH", path: maps + "/a?fieldManager=one", contentType: apply, body: configMap("a", "x", "k=1", "l=1")},
	{name: "apply it again", method: "PATCH", path: maps + "/a?fieldManager=one", contentType: apply, body: configMap("a", "x", "k=1", "l=1")},
	{name: "conflict", method: "PATCH", path: maps + "/a?fieldManager=two", contentType: apply, body: configMap("a", "x", "k=2")},
	{name: "two conflicts", method: "PATCH", path: maps + "/a?fieldManager=two", contentType: apply, body: configMap("a", "y", "k=2", "l=2")},
	{name: "no conflict where both agree", method: "PATCH", path: maps + "/a?fieldManager=two", contentType: apply, body: configMap("a", "x", "k=1", "m=2")},
	{name: "force", method: "PATCH", path: maps + "/a?fieldManager=two&force=true", contentType: apply, body: configMap("a", "x", "k=2", "m=2")},
	{name: "give up a field", method: "PATCH", path: maps + "/a?fieldManager=one", contentType: apply, body: configMap("a", "x")},
	{name: "metadata of an apply", method: "PATCH", path: maps + "/a?fieldManager=one", accept: meta, contentType: apply, body: configMap("a", "x", "n=1")},
	{name: "try to apply", method: "PATCH", path: maps + "/a?fieldManager=one&dryRun=All", contentType: apply, body: configMap("a", "x", "n=9")},
	{name: "try to make", method: "PATCH", path: maps + "/none?fieldManager=one&dryRun=All", contentType: apply, body: configMap("none", "x", "n=9")},
	{name: "nothing came of it", method: "GET", path: maps + "/none"},
	{name: "read", method: "GET", path: maps + "/a"},
	{name: "read metadata", method: "GET", path: maps + "/a", accept: meta},
	{name: "edit by merging", method: "PATCH", path: maps + "/a?fieldManager=kubectl-edit", contentType: merge, body: `{"data":{"n":"edited","o":"new"}}`},
	{name: "edit without a change", method: "PATCH", path: maps + "/a?fieldManager=kubectl-edit", contentType: merge, body: `{"data":{"n":"edited"}}`},
	{name: "edit by operations", method: "PATCH", path: maps + "/a?fieldManager=kubectl-patch", contentType: "application/json-patch+json", body: `[{"op":"replace","path":"/data/m","value":"op"}]`},
	{name: "edit strategically", method: "PATCH", path: maps + "/a?fieldManager=kubectl-patch", contentType: "application/strategic-merge-patch+json", body: `{"metadata":{"annotations":{"note":"x"}}}`},
	{name: "an operation that fails", method: "PATCH", path: maps + "/a?fieldManager=kubectl-patch", contentType: "application/json-patch+json", body: `[{"op":"test","path":"/data/m","value":"other"}]`, statusOnly: true},
	{name: "replace what has changed", method: "PUT", path: maps + "/a?fieldManager=put", contentType: plain, body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","resourceVersion":"{old}"},"data":{"z":"1"}}`},
	{name: "replace", method: "PUT", path: maps + "/a?fieldManager=put", contentType: plain, body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"app":"x"},"resourceVersion":"{version}"},"data":{"z":"1"}}`},
	{name: "apply to what has changed", method: "PATCH", path: maps + "/a?fieldManager=one&force=true", contentType: apply, body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","resourceVersion":"{old}"},"data":{"z":"2"}}`},
	{name: "apply to this version", method: "PATCH", path: maps + "/a?fieldManager=one&force=true", contentType: apply, body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","resourceVersion":"{version}"},"data":{"z":"3"}}`},
	{name: "put back what was replaced", method: "PATCH", path: maps + "/a?fieldManager=one&force=true", contentType: apply, body: configMap("a", "x", "n=1")},
	{name: "make what is there", method: "POST", path: maps, contentType: plain, body: configMap("a", "x")},
	{name: "make more", method: "POST", path: maps + "?fieldManager=one", contentType: plain, body: configMap("b", "y", "k=1")},
	{name: "and more", method: "POST", path: maps + "?fieldManager=one", contentType: plain, body: configMap("c", "x", "k=1")},
	{name: "list", method: "GET", path: maps},
	{name: "list by label", method: "GET", path: maps + "?labelSelector=app%3Dx"},
	{name: "list by name", method: "GET", path: maps + "?fieldSelector=metadata.name%3Db"},
	{name: "list metadata everywhere", method: "GET", path: "/api/v1/configmaps?labelSelector=app", accept: metas},
	{name: "list a page", method: "GET", path: maps + "?limit=2"},
	{name: "list what is not there", method: "GET", path: maps + "?labelSelector=app%3Dz"},
	{name: "apply where no namespace is", method: "PATCH", path: "/api/v1/namespaces/nowhere/configmaps/a?fieldManager=one", contentType: apply, body: configMap("a", "x")},
	{name: "read what is not there", method: "GET", path: maps + "/zzz"},
	{name: "delete what is not there", method: "DELETE", path: maps + "/zzz"},
	{name: "edit what is not there", method: "PATCH", path: maps + "/zzz", contentType: merge, body: `{}`},
	{name: "a kind that is not served", method: "GET", path: "/apis/example.com/v1/namespaces/contract/things", statusOnly: true},
	{name: "a group that is not served", method: "GET", path: "/apis/example.com/v1", statusOnly: true},

	{name: "a workload", method: "PATCH", path: deployments + "/web?fieldManager=one", contentType: apply, body: deployment("replicas: 1, ", `, env: [{name: A, value: "1"}]`), less: true},
	{name: "another adds to a list", method: "PATCH", path: deployments + "/web?fieldManager=two", contentType: apply, body: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {containers: [{name: main, env: [{name: B, value: "2"}]}]}}}}`, less: true},
	{name: "another takes a field of a list", method: "PATCH", path: deployments + "/web?fieldManager=two", contentType: apply, body: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {containers: [{name: main, env: [{name: A, value: "2"}]}]}}}}`, less: true},
	{name: "a status changes", method: "PATCH", path: deployments + "/web/status?fieldManager=controller", contentType: merge, body: `{"status":{"replicas":1,"observedGeneration":1}}`, less: true},
	{name: "a status is no spec", method: "PATCH", path: deployments + "/web?fieldManager=mixed", contentType: merge, body: `{"status":{"replicas":7},"spec":{"replicas":2}}`, less: true},
	{name: "a spec is no status", method: "PATCH", path: deployments + "/web/status?fieldManager=mixed", contentType: merge, body: `{"status":{"replicas":2},"spec":{"replicas":9}}`, less: true},
	{name: "put back what was scaled", method: "PATCH", path: deployments + "/web?fieldManager=one&force=true", contentType: apply, body: deployment("replicas: 1, ", `, env: [{name: A, value: "1"}]`), less: true},

	{name: "define a kind", method: "PATCH", path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.com?fieldManager=one", contentType: apply, body: crd, statusOnly: true},
	{name: "until it is served", method: "GET", path: things, statusOnly: true, retry: true},
	{name: "one of that kind", method: "PATCH", path: things + "/t?fieldManager=one", contentType: apply, body: `{apiVersion: example.com/v1, kind: Thing, metadata: {name: t, finalizers: [example.com/wait]}, spec: {list: [1, 2], deep: {x: 1}}}`},
	{name: "lists of it are whole", method: "PATCH", path: things + "/t?fieldManager=two", contentType: apply, body: `{apiVersion: example.com/v1, kind: Thing, metadata: {name: t}, spec: {list: [3]}}`},
	{name: "its status", method: "PATCH", path: things + "/t/status?fieldManager=two", contentType: merge, body: `{"status":{"ready":true}}`},
	{name: "its generation", method: "PATCH", path: things + "/t?fieldManager=two", contentType: merge, body: `{"spec":{"deep":{"x":2}}}`},
	{name: "list them", method: "GET", path: things},
	{name: "delete what is to be finished", method: "DELETE", path: things + "/t", contentType: plain, body: `{"propagationPolicy":"Background"}`},
	{name: "finish it", method: "PATCH", path: things + "/t?fieldManager=two", contentType: merge, body: `{"metadata":{"finalizers":null}}`},
	{name: "it is gone", method: "GET", path: things + "/t"},

	{name: "look", method: "GET", path: maps + "/b"},
	{name: "delete another", method: "DELETE", path: maps + "/b", contentType: plain, body: `{"preconditions":{"uid":"11111111-2222-3333-4444-555555555555"}}`},
	{name: "delete another version", method: "DELETE", path: maps + "/b", contentType: plain, body: `{"preconditions":{"resourceVersion":"1"}}`, statusOnly: true},
	{name: "try to delete", method: "DELETE", path: maps + "/b?dryRun=All", statusOnly: true},
	{name: "delete", method: "DELETE", path: maps + "/b", contentType: plain, body: `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"{uid}"}}`},
	{name: "delete all", method: "DELETE", path: maps + "?labelSelector=app%3Dx", statusOnly: true},
	{name: "nothing is left", method: "GET", path: maps + "?labelSelector=app"},
}

// The same requests get the same answers from a simulated cluster, over HTTPS
// and in this process, and from a real API server.
func TestResponsesMatchAnAPIServer(t *testing.T) {
	simulation := simulated.New(simulated.Options{})
	t.Cleanup(func() { simulation.Close() })
	served, err := simulation.Cluster("served").Listen()
	if err != nil {
		t.Fatal(err)
	}
	real := newContractClient(t, fleet.Shared(t).Members()[0].Config)
	askers := map[string]*contractClient{"over HTTPS": newContractClient(t, served), "in process": newContractClient(t, simulation.Cluster("near").Config())}
	for _, s := range contract {
		want := real.request(t, s)
		for end := time.Now().Add(20 * time.Second); s.retry && want.status != http.StatusOK && time.Now().Before(end); {
			want = real.request(t, s)
		}
		for how, a := range askers {
			got := a.request(t, s)
			if got.status != want.status {
				t.Errorf("%s, %s: answers %d, want %d\n%s\n%s", s.name, how, got.status, want.status, got.text(), want.text())
				continue
			}
			if s.statusOnly {
				continue
			}
			if diff := compare("", got.body, want.body, s.less); diff != "" {
				t.Errorf("%s, %s: %s\n got %s\nwant %s", s.name, how, diff, got.text(), want.text())
			}
		}
	}
}

// The same changes give the same watch events.
func TestWatchEventsMatchAnAPIServer(t *testing.T) {
	simulation := simulated.New(simulated.Options{})
	real := newContractClient(t, fleet.Shared(t).Members()[0].Config)
	near := newContractClient(t, simulation.Cluster("near").Config())
	const maps = "/api/v1/namespaces/watched/configmaps"
	steps := []step{
		{method: "POST", path: "/api/v1/namespaces?fieldManager=one", contentType: plain, body: `{"metadata":{"name":"watched"}}`},
		{method: "PATCH", path: maps + "/before?fieldManager=one", contentType: apply, body: configMap("before", "x", "k=1")},
		{method: "PATCH", path: maps + "/a?fieldManager=one", contentType: apply, body: configMap("a", "x", "k=1")},
		{method: "PATCH", path: maps + "/a?fieldManager=one", contentType: apply, body: configMap("a", "x", "k=2")},
		{method: "PATCH", path: maps + "/other?fieldManager=one", contentType: apply, body: configMap("other", "y", "k=2")},
		{method: "PATCH", path: maps + "/other?fieldManager=one", contentType: apply, body: configMap("other", "x", "k=2")},
		{method: "PATCH", path: maps + "/a?fieldManager=one", contentType: apply, body: configMap("a", "z", "k=2")},
		{method: "DELETE", path: maps + "/other"},
	}
	for _, accept := range []string{"", meta} {
		for how, query := range map[string]string{
			"from a version": "resourceVersion={from}", "by label": "resourceVersion={from}&labelSelector=app%3Dx", "from the beginning": "",
		} {
			events := map[*contractClient][]any{}
			for _, a := range []*contractClient{real, near} {
				var from string
				for i, s := range steps {
					s.statusOnly = true
					a.request(t, s)
					if i == 1 {
						from = a.version
					}
				}
				events[a] = a.watch(t, maps+"?watch=true&timeoutSeconds=1&"+strings.ReplaceAll(query, "{from}", from), accept)
				a.request(t, step{method: "DELETE", path: maps, statusOnly: true})
			}
			if diff := compare("", events[near], events[real], false); diff != "" {
				t.Errorf("%s, %q: %s\n got %s\nwant %s", how, accept, diff, text(events[near]), text(events[real]))
			}
			if len(events[real]) == 0 {
				t.Errorf("%s, %q: there are no events", how, accept)
			}
		}
	}
}

// A contractClient sends requests to one server and makes the responses comparable.
type contractClient struct {
	client        *http.Client
	host          string
	uid           string
	version, last string
	uids          map[string]string
	versions      map[string]string
}

func newContractClient(t *testing.T, config *rest.Config) *contractClient {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return &contractClient{client: client, host: config.Host, uids: map[string]string{}, versions: map[string]string{}}
}

type reply struct {
	status int
	body   any
}

func (r reply) text() string { return text(r.body) }

func text(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

func (a *contractClient) request(t *testing.T, s step) reply {
	t.Helper()
	response := a.send(t, s)
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var body map[string]any
	if err := json.Unmarshal(raw, &body); err != nil {
		return reply{response.StatusCode, string(raw)}
	}
	if m, _ := body["metadata"].(map[string]any); m["uid"] != nil {
		a.uid = fmt.Sprint(m["uid"])
		if version := fmt.Sprint(m["resourceVersion"]); version != a.version {
			a.last, a.version = a.version, version
		}
	}
	if s.statusOnly {
		return reply{response.StatusCode, body}
	}
	return reply{response.StatusCode, a.alike(body, "")}
}

func (a *contractClient) send(t *testing.T, s step) *http.Response {
	t.Helper()
	fill := strings.NewReplacer("{uid}", a.uid, "{version}", a.version, "{old}", a.last)
	request, err := http.NewRequestWithContext(t.Context(), s.method, strings.TrimSuffix(a.host, "/")+s.path, strings.NewReader(fill.Replace(s.body)))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "application/json")
	if s.accept != "" {
		request.Header.Set("Accept", s.accept)
	}
	if s.contentType != "" {
		request.Header.Set("Content-Type", s.contentType)
	}
	request.Header.Set("User-Agent", "asker/1")
	response, err := a.client.Do(request)
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	return response
}

// watch returns all events until the server ends the watch.
func (a *contractClient) watch(t *testing.T, path, accept string) []any {
	t.Helper()
	response := a.send(t, step{name: "watch", method: "GET", path: path, accept: accept})
	defer response.Body.Close()
	var events []any
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		var event map[string]any
		if err := json.Unmarshal(bytes.TrimSpace(lines.Bytes()), &event); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		events = append(events, a.alike(event, ""))
	}
	return events
}

var uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// alike gives names to what no two servers have in common.
func (a *contractClient) alike(v any, field string) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, value := range v {
			out[name] = a.alike(value, name)
		}
		if meta, ok := out["metadata"].(map[string]any); ok && out["items"] != nil {
			delete(meta, "resourceVersion") // of a whole list: others write, too
			if meta["continue"] == "" {
				delete(meta, "continue")
			} else if meta["continue"] != nil {
				meta["continue"] = "something"
			}
		}
		return out
	case []any:
		out := []any{}
		for _, value := range v {
			out = append(out, a.alike(value, ""))
		}
		if field == "managedFields" { // those of one second are in another order
			slices.SortStableFunc(out, func(a, b any) int {
				name := func(v any) string { m := v.(map[string]any); return fmt.Sprint(m["operation"], m["manager"]) }
				return strings.Compare(name(a), name(b))
			})
		}
		return out
	case string:
		switch field {
		case "resourceVersion":
			return known(a.versions, v, "version")
		case "creationTimestamp", "deletionTimestamp", "time":
			return "a time"
		}
		return uuids.ReplaceAllStringFunc(v, func(uid string) string { return known(a.uids, uid, "uid") })
	}
	return v
}

// known returns what stands for an identifier: a word and the number of identifiers before it.
func known(all map[string]string, one, what string) string {
	if all[one] == "" {
		all[one] = fmt.Sprintf("%s %d", what, len(all))
	}
	return all[one]
}

// compare describes the first difference between two responses; empty if there is none. With less,
// want may have fields that got does not have.
func compare(at string, got, want any, less bool) string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s is %v", at, got)
		}
		for name := range g {
			if _, ok := w[name]; !ok {
				return fmt.Sprintf("%s.%s is there: %v", at, name, g[name])
			}
		}
		for name := range w {
			if _, ok := g[name]; !ok && less && !strings.HasSuffix(at, ".managedFields") {
				continue
			}
			if diff := compare(at+"."+url.PathEscape(name), g[name], w[name], less); diff != "" {
				return diff
			}
		}
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return fmt.Sprintf("%s has other entries", at)
		}
		for i := range w {
			if diff := compare(fmt.Sprintf("%s[%d]", at, i), g[i], w[i], less); diff != "" {
				return diff
			}
		}
	default:
		if got != want {
			return fmt.Sprintf("%s is %v, want %v", at, got, want)
		}
	}
	return ""
}
