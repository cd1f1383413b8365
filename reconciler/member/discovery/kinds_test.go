package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/test/apiserver"
)

// A discoveryServer serves discovery. Some groups may be broken, like those of an aggregated API that is
// down.
type discoveryServer struct {
	broken map[string]bool // group versions

	mu    sync.Mutex
	asked []string
}

var served = map[string][]metav1.APIResource{
	"v1": {
		{Name: "configmaps", Kind: "ConfigMap", Namespaced: true}, {Name: "namespaces", Kind: "Namespace"},
		{Name: "namespaces/status", Kind: "Namespace"}, {Name: "pods/eviction", Kind: "Eviction", Namespaced: true},
	},
	"apps/v1":            {{Name: "deployments", Kind: "Deployment", Namespaced: true}, {Name: "deployments/scale", Kind: "Scale", Namespaced: true}},
	"batch/v1":           {{Name: "jobs", Kind: "Job", Namespaced: true}},
	"metrics.example/v1": {{Name: "things", Kind: "Thing"}},
}

func (c *discoveryServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, r.URL.Path)
	w.Header().Set("Content-Type", "application/json")
	gv := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/apis"), "/api")
	gv = strings.TrimPrefix(gv, "/")
	switch {
	case c.broken[gv]:
		apiserver.Refuse(w, http.StatusServiceUnavailable, "error trying to reach service")
	case served[gv] != nil:
		json.NewEncoder(w).Encode(metav1.APIResourceList{GroupVersion: gv, APIResources: served[gv]})
	default:
		apiserver.Refuse(w, http.StatusNotFound, "the server could not find the requested resource")
	}
}

func (c *discoveryServer) kinds(t *testing.T) *Kinds {
	t.Helper()
	srv := httptest.NewServer(c)
	t.Cleanup(srv.Close)
	return kindsAt(srv.URL)
}

func kindsAt(url string) *Kinds { return kindsOf(&rest.Config{Host: url}) }

func kindsOf(cfg *rest.Config) *Kinds {
	return New(func() (*discovery.DiscoveryClient, error) { return discovery.NewDiscoveryClientForConfig(cfg) })
}

func gvks(names ...string) map[schema.GroupVersionKind]bool {
	all := map[string]schema.GroupVersionKind{
		"ConfigMap": {Version: "v1", Kind: "ConfigMap"}, "Namespace": {Version: "v1", Kind: "Namespace"}, "Scale": {Group: "apps", Version: "v1", Kind: "Scale"},
		"Deployment": {Group: "apps", Version: "v1", Kind: "Deployment"}, "Job": {Group: "batch", Version: "v1", Kind: "Job"},
		"Thing": {Group: "metrics.example", Version: "v1", Kind: "Thing"}, "Missing": {Group: "nowhere.example", Version: "v1", Kind: "Missing"},
		"Unknown": {Group: "apps", Version: "v1", Kind: "Unknown"}, "Old": {Group: "apps", Version: "v1beta1", Kind: "Deployment"},
	}
	out := map[schema.GroupVersionKind]bool{}
	for _, n := range names {
		out[all[n]] = true
	}
	return out
}

func known(k *Kinds) []string {
	var out []string
	for _, h := range k.known {
		gvk, r := h.Value().gvk, h.Value().Resource
		if r.Group != gvk.Group || r.Version != gvk.Version {
			out = append(out, "wrong: "+gvk.String()+" "+r.String())
		}
		name := gvk.Kind + " " + r.Resource
		if r.Namespaced {
			name += " namespaced"
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Requested kinds are known afterwards if the server serves them. No other kinds are kept.
func TestKindsAreResolved(t *testing.T) {
	tests := map[string]struct {
		ask  []string
		want []string
	}{
		"one":                        {[]string{"ConfigMap"}, []string{"ConfigMap configmaps namespaced"}},
		"not a subresource":          {[]string{"Namespace", "Scale"}, []string{"Namespace namespaces"}},
		"two group versions":         {[]string{"ConfigMap", "Deployment"}, []string{"ConfigMap configmaps namespaced", "Deployment deployments namespaced"}},
		"many":                       {[]string{"ConfigMap", "Namespace", "Deployment", "Job"}, []string{"ConfigMap configmaps namespaced", "Deployment deployments namespaced", "Job jobs namespaced", "Namespace namespaces"}},
		"one that is not there":      {[]string{"Missing"}, nil},
		"an unknown kind of a group": {[]string{"Unknown", "Deployment"}, []string{"Deployment deployments namespaced"}},
		"another version":            {[]string{"Old", "ConfigMap"}, []string{"ConfigMap configmaps namespaced"}},
		"many, some not there":       {[]string{"ConfigMap", "Deployment", "Job", "Missing", "Old"}, []string{"ConfigMap configmaps namespaced", "Deployment deployments namespaced", "Job jobs namespaced"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			k := (&discoveryServer{}).kinds(t)
			for range 2 { // the second time is a retry
				if err := k.Resolve(t.Context(), gvks(test.ask...)); err != nil {
					t.Fatal(err)
				}
			}
			if got := known(k); !slices.Equal(got, test.want) {
				t.Errorf("known: %v, want %v", got, test.want)
			}
		})
	}
}

// Each group version of unknown kinds is requested once, and known kinds are not requested again.
func TestKindsAreAskedForRarely(t *testing.T) {
	c := &discoveryServer{}
	k := c.kinds(t)
	if err := k.Resolve(t.Context(), gvks("ConfigMap", "Deployment", "Job", "Thing")); err != nil {
		t.Fatal(err)
	}
	slices.Sort(c.asked)
	if want := []string{"/api/v1", "/apis/apps/v1", "/apis/batch/v1", "/apis/metrics.example/v1"}; !slices.Equal(c.asked, want) {
		t.Errorf("asked %v, want %v", c.asked, want)
	}
	c.asked = nil
	if err := k.Resolve(t.Context(), gvks("ConfigMap", "Deployment", "Job", "Thing")); err != nil || len(c.asked) > 0 {
		t.Errorf("asked again: %v, %v", c.asked, err)
	}
	// another kind of a known group needs one request
	if err := k.Resolve(t.Context(), gvks("ConfigMap", "Namespace")); err != nil {
		t.Fatal(err)
	}
	if want := []string{"/api/v1"}; !slices.Equal(c.asked, want) {
		t.Errorf("asked %v, want %v", c.asked, want)
	}
}

// A group whose discovery fails is reported, and other groups can still be resolved.
func TestBrokenGroupIsNobodyElsesTrouble(t *testing.T) {
	thing := schema.GroupVersionKind{Group: "metrics.example", Version: "v1", Kind: "Thing"}
	for _, ask := range [][]string{{"ConfigMap", "Thing"}, {"ConfigMap", "Deployment", "Job", "Thing"}} {
		t.Run(strings.Join(ask, " "), func(t *testing.T) {
			c := &discoveryServer{broken: map[string]bool{"metrics.example/v1": true}}
			k := c.kinds(t)
			for range 5 { // the order of the requests is random
				k.known, k.lookups = nil, nil
				if err := k.Resolve(t.Context(), gvks(ask...)); err != nil {
					t.Fatal(err)
				}
				if got := len(k.known); got != len(ask)-1 {
					t.Errorf("known: %v, want all but Thing", known(k))
				}
				if why := k.Why(thing).Error(); !strings.Contains(why, "error trying to reach service") {
					t.Errorf("of the broken one it says: %s", why)
				}
			}
			c.mu.Lock()
			c.broken = nil
			c.mu.Unlock()
			k.RetryLookups(nil)
			if err := k.Resolve(t.Context(), gvks(ask...)); err != nil || len(k.known) != len(ask) {
				t.Errorf("mended: %v, %v", known(k), err)
			}
			if why := k.Why(schema.GroupVersionKind{Group: "metrics.example", Version: "v1", Kind: "Other"}).Error(); !strings.HasPrefix(why, `no matches for kind "Other" in version "metrics.example/v1": the cluster has no CustomResourceDefinition of kind Other in group metrics.example with version v1`) {
				t.Errorf("of a kind that is not there it says: %s", why)
			}
		})
	}
}

// A server that does not respond causes an error in time, and not the result that no kinds are
// served.
func TestKindsOfASilentServer(t *testing.T) {
	for _, ask := range [][]string{{"ConfigMap"}, {"ConfigMap", "Deployment", "Job", "Thing"}} {
		hang := make(chan struct{})
		srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
		defer srv.Close()
		defer close(hang)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := kindsAt(srv.URL).Resolve(ctx, gvks(ask...)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("asked for %v: %v", ask, err)
		}
	}
}

// silentGroups let requests for some group versions end without a response.
type silentGroups struct{ silent map[string]bool }

func (d *silentGroups) RoundTrip(r *http.Request) (*http.Response, error) {
	if d.silent[strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/apis/"), "/api/")] {
		return nil, errors.New("no route to host")
	}
	return http.DefaultTransport.RoundTrip(r)
}

// If one group version does not respond, the others can be resolved, also when only that one is
// requested again. If none responds, that is an error.
func TestSilentGroup(t *testing.T) {
	srv := httptest.NewServer(&discoveryServer{})
	defer srv.Close()
	d := &silentGroups{silent: map[string]bool{"metrics.example/v1": true}}
	cfg := &rest.Config{Host: srv.URL, Transport: d}
	k, wanted := kindsOf(cfg), gvks("ConfigMap", "Deployment", "Job", "Thing")
	thing := schema.GroupVersionKind{Group: "metrics.example", Version: "v1", Kind: "Thing"}
	for range 2 {
		if err := k.Resolve(t.Context(), wanted); err != nil || len(k.known) != len(wanted)-1 {
			t.Fatalf("known: %v, %v", known(k), err)
		}
		if why, want := k.Why(thing).Error(), "ask for the kinds of metrics.example/v1: no route to host"; why != want {
			t.Errorf("of the silent one it says %q, want %q", why, want)
		}
		if !k.NextLookup(thing).After(time.Now()) {
			t.Error("no backoff")
		}
		k.lookups[thing] = lookup{}
	}
	if resources, err := Resources(t.Context(), cfg, wanted); err == nil {
		t.Errorf("incomplete resources: %v", resources)
	}
	d.silent["batch/v1"] = true
	if err := kindsOf(cfg).Resolve(t.Context(), gvks("Job", "Thing")); err == nil {
		t.Error("without any response, no error")
	}
	d.silent = nil
	if err := k.Resolve(t.Context(), wanted); err != nil || len(k.known) != len(wanted) || k.Failure(thing.GroupVersion()) != nil {
		t.Errorf("responding again: %v, %v", known(k), err)
	}
}
