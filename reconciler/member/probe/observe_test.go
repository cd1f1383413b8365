package probe

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// A pagedCluster serves the requests of a probe page by page, as an API server does.
type pagedCluster struct {
	nodes, pods []map[string]any
	namespaces  []string
	perPage     int
	refuse      map[string]int // status code by path
}

func (c *pagedCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if code := c.refuse[r.URL.Path]; code != 0 {
		apiserver.Refuse(w, code, "no")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/readyz":
		fmt.Fprint(w, "ok")
	case "/version":
		json.NewEncoder(w).Encode(map[string]any{"major": "1", "gitVersion": "v1.35.2"})
	case "/api/v1/nodes":
		c.page(w, r, c.nodes, func(int) {})
	case "/api/v1/pods":
		if got := r.URL.Query().Get("fieldSelector"); got != "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed" {
			apiserver.Refuse(w, http.StatusBadRequest, "asked for "+got)
			return
		}
		c.page(w, r, c.pods, func(int) {})
	case "/api/v1/namespaces":
		if !strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadataList") {
			apiserver.Refuse(w, http.StatusBadRequest, "asked for more than metadata")
			return
		}
		items := make([]map[string]any, len(c.namespaces))
		c.page(w, r, items, func(i int) {
			items[i] = map[string]any{"metadata": map[string]any{"name": c.namespaces[i], "uid": "uid of " + c.namespaces[i]}}
		})
	default:
		apiserver.Refuse(w, http.StatusNotFound, r.URL.Path)
	}
}

// page answers with a page of items, of which fill makes each that is on it.
func (c *pagedCluster) page(w http.ResponseWriter, r *http.Request, items []map[string]any, fill func(i int)) {
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil {
		apiserver.Refuse(w, http.StatusBadRequest, "a list without a limit")
		return
	}
	to := min(len(items), from+min(limit, c.perPage))
	for i := from; i < to; i++ {
		fill(i)
	}
	meta := map[string]any{}
	if to < len(items) {
		meta["continue"] = strconv.Itoa(to)
	}
	json.NewEncoder(w).Encode(map[string]any{"metadata": meta, "items": items[from:to]})
}

func node(cpu, memory, allocatableCPU, allocatableMemory string) map[string]any {
	return map[string]any{"status": map[string]any{
		"capacity":    map[string]any{"cpu": cpu, "memory": memory, "pods": "110"},
		"allocatable": map[string]any{"cpu": allocatableCPU, "memory": allocatableMemory, "pods": "110"},
	}}
}

// pod returns a pod with containers that request these resources.
func pod(requests ...map[string]any) map[string]any {
	var containers []any
	for _, r := range requests {
		containers = append(containers, map[string]any{"resources": map[string]any{"requests": r}})
	}
	return map[string]any{"spec": map[string]any{"containers": containers}}
}

func requests(cpu, memory string) map[string]any {
	out := map[string]any{}
	if cpu != "" {
		out["cpu"] = cpu
	}
	if memory != "" {
		out["memory"] = memory
	}
	return out
}

// The size of a cluster is that of its nodes together, and the available part is what its
// running pods do not request, on any number of pages.
func TestObserve(t *testing.T) {
	var manyPods []map[string]any
	for range 1_234 {
		manyPods = append(manyPods, pod(requests("1m", "1Mi")))
	}
	tests := map[string]struct {
		in   pagedCluster
		want map[string]string
	}{
		"no nodes": {pagedCluster{}, map[string]string{
			"kubernetes-fleet.io/node-count": "0", "total-cpu": "0", "total-memory": "0",
			"allocatable-cpu": "0", "allocatable-memory": "0", "available-cpu": "0", "available-memory": "0",
		}},
		"nodes without pods": {pagedCluster{nodes: []map[string]any{node("4", "8Gi", "3500m", "7Gi"), node("2", "4Gi", "2", "3Gi")}}, map[string]string{
			"kubernetes-fleet.io/node-count": "2", "total-cpu": "6", "total-memory": "12Gi",
			"allocatable-cpu": "5500m", "allocatable-memory": "10Gi", "available-cpu": "5500m", "available-memory": "10Gi",
		}},
		"pods": {pagedCluster{
			nodes: []map[string]any{node("4", "8Gi", "4", "8Gi")},
			pods:  []map[string]any{pod(requests("500m", "1Gi"), requests("250m", "")), pod(requests("", "")), pod()},
		}, map[string]string{
			"kubernetes-fleet.io/node-count": "1", "total-cpu": "4", "total-memory": "8Gi",
			"allocatable-cpu": "4", "allocatable-memory": "8Gi", "available-cpu": "3250m", "available-memory": "7Gi",
		}},
		"more asked for than there is": {pagedCluster{
			nodes: []map[string]any{node("1", "1Gi", "1", "1Gi")}, pods: []map[string]any{pod(requests("3", "512Mi"))},
		}, map[string]string{
			"kubernetes-fleet.io/node-count": "1", "total-cpu": "1", "total-memory": "1Gi",
			"allocatable-cpu": "1", "allocatable-memory": "1Gi", "available-cpu": "0", "available-memory": "512Mi",
		}},
		"many pods": {pagedCluster{nodes: []map[string]any{node("4", "8Gi", "4", "8Gi")}, pods: manyPods}, map[string]string{
			"kubernetes-fleet.io/node-count": "1", "total-cpu": "4", "total-memory": "8Gi",
			"allocatable-cpu": "4", "allocatable-memory": "8Gi", "available-cpu": "2766m", "available-memory": "6958Mi",
		}},
		"a value that is none": {pagedCluster{nodes: []map[string]any{node("4", "8Gi", "4", "8Gi"), node("lots", "", "many", "8Gi")}}, map[string]string{
			"kubernetes-fleet.io/node-count": "2", "total-cpu": "4", "total-memory": "8Gi",
			"allocatable-cpu": "4", "allocatable-memory": "16Gi", "available-cpu": "4", "available-memory": "16Gi",
		}},
	}
	for name, test := range tests {
		for _, perPage := range []int{1, 500} {
			t.Run(fmt.Sprintf("%s, %d a page", name, perPage), func(t *testing.T) {
				c := test.in
				c.perPage = perPage
				if perPage == 1 && len(c.pods) > 100 {
					c.perPage = 300
				}
				c.namespaces = []string{"default", "kube-system", "app"}
				o, err := proberAt(t, &c).observe(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				want := map[string]string{"k8s.io/k8s-version": "v1.35.2"}
				for name, value := range test.want {
					if !strings.Contains(name, "/") {
						name = api.ResourcePropertyPrefix + name
					}
					want[name] = value
				}
				if !maps.Equal(o.properties, want) {
					t.Errorf("properties: %v\nwant: %v", o.properties, want)
				}
				if o.uid != "uid of kube-system" {
					t.Errorf("identity: %s", o.uid)
				}
				if got := slices.Sorted(maps.Keys(o.namespaces)); !slices.Equal(got, []string{"app", "default", "kube-system"}) {
					t.Errorf("namespaces: %v", got)
				}
			})
		}
	}
}

// A property that cannot be read is unknown, and neither zero nor complete. The others are
// reported, and the error says what is missing.
func TestObserveWithoutPermission(t *testing.T) {
	all := []string{"k8s.io/k8s-version", "kubernetes-fleet.io/node-count", "allocatable-cpu", "allocatable-memory", "available-cpu", "available-memory", "total-cpu", "total-memory"}
	tests := map[string]struct {
		refuse string
		says   string
		lacks  []string
		uid    string
	}{
		"nodes":      {"/api/v1/nodes", "read nodes", all[1:], "uid of kube-system"},
		"pods":       {"/api/v1/pods", "read pods", []string{"available-cpu", "available-memory"}, "uid of kube-system"},
		"namespaces": {"/api/v1/namespaces", "read namespaces", nil, ""},
		"version":    {"/version", "read version", all[:1], "uid of kube-system"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := &pagedCluster{
				nodes: []map[string]any{node("4", "8Gi", "4", "8Gi")}, namespaces: []string{"kube-system"},
				perPage: 500, refuse: map[string]int{test.refuse: http.StatusForbidden},
			}
			if seen := proberAt(t, c).Probe(t.Context(), true).Seen("east"); !strings.Contains(seen.Unread, test.says) || !seen.Healthy {
				t.Errorf("seen: %+v, want %q", seen, test.says)
			}
			o, err := proberAt(t, c).observe(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("it says: %v, want %q", err, test.says)
			}
			for _, p := range all {
				_, has := o.properties[p]
				if !has {
					_, has = o.properties[api.ResourcePropertyPrefix+p]
				}
				if lacks := slices.Contains(test.lacks, p); has == lacks {
					t.Errorf("%s: told %t, want %t", p, has, !lacks)
				}
			}
			if o.uid != test.uid {
				t.Errorf("identity: %q, want %q", o.uid, test.uid)
			}
		})
	}
}

// If a server always has one more page, the probe ends with its context.
func TestObserveEndsWithContext(t *testing.T) {
	hang := make(chan struct{})
	server := serverOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "pods") || strings.HasSuffix(r.URL.Path, "nodes") {
			select {
			case <-hang:
			case <-r.Context().Done():
			}
			return
		}
		json.NewEncoder(w).Encode(map[string]any{"metadata": map[string]any{}, "items": []any{}})
	}))
	defer close(hang)
	if p := proberWith(t, 100*time.Millisecond, server).Probe(t.Context(), true); p.Err != nil {
		t.Errorf("a cluster that is ready is not, because it cannot be counted in time: %v", p.Err)
	}
}

// A cluster with more namespaces than are kept, or with longer names, is observed without them.
func TestNamespacesAreBounded(t *testing.T) {
	for _, name := range []string{"n", strings.Repeat("long", 1<<17)} {
		c := &pagedCluster{perPage: 500}
		for n := range min(connection.MaxKeptItems+1, connection.MaxNamespaceText/len(name)+2) {
			c.namespaces = append(c.namespaces, name+strconv.Itoa(n))
		}
		if len(name) > 10 {
			c.perPage = 4
		}
		o := &observation{}
		if err := proberAt(t, c).observeNamespaces(t.Context(), o); !connection.IsExceeded(err) || o.namespaces != nil {
			t.Errorf("%d namespaces such as %.10s: %v", len(c.namespaces), name, err)
		}
	}
}

// A name that no namespace can have is not kept, and so reaches no status.
func TestNamesOfNamespacesAreShort(t *testing.T) {
	c := &pagedCluster{perPage: 500, namespaces: []string{"web", strings.Repeat("n", connection.MaxNamespaceName), strings.Repeat("n", 2<<20)}}
	o := &observation{}
	if err := proberAt(t, c).observeNamespaces(t.Context(), o); err != nil || len(o.namespaces) != 2 {
		t.Errorf("%d namespaces, %v", len(o.namespaces), err)
	}
}
