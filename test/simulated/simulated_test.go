package simulated_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gitfleet/gitfleet/test/fleet"
	"github.com/gitfleet/gitfleet/test/simulated"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func clientOf(t *testing.T, config *rest.Config) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func put(t *testing.T, client dynamic.Interface, name, value string) *unstructured.Unstructured {
	t.Helper()
	force := true
	body := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"k":%q}}`, name, value)
	o, err := client.Resource(configMaps).Namespace("default").Patch(t.Context(), name, types.ApplyPatchType, []byte(body), metav1.PatchOptions{FieldManager: "t", Force: &force})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Kinds are discovered in both formats, and those of a CustomResourceDefinition once it is created.
func TestKindsAreDiscovered(t *testing.T) {
	c := simulated.New(simulated.Options{}).Cluster("a")
	client := discovery.NewDiscoveryClientForConfigOrDie(c.Config())
	find := func() (found []string) {
		t.Helper()
		_, lists, err := client.ServerGroupsAndResources()
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range lists {
			for _, r := range l.APIResources {
				one, err := client.ServerResourcesForGroupVersion(l.GroupVersion)
				if err != nil || !slices.ContainsFunc(one.APIResources, func(o metav1.APIResource) bool {
					return o.Name == r.Name && o.Kind == r.Kind && o.Namespaced == r.Namespaced
				}) {
					t.Errorf("%s %s is not in both formats: %v", l.GroupVersion, r.Name, err)
				}
				found = append(found, fmt.Sprintf("%s %s %t", l.GroupVersion, r.Name, r.Namespaced))
			}
		}
		return found
	}
	for _, want := range []string{"v1 configmaps true", "v1 namespaces false", "apps/v1 deployments true", "apps/v1 deployments/status true"} {
		if got := find(); !slices.Contains(got, want) {
			t.Errorf("no %s among %q", want, got)
		}
	}
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	if _, err := clientOf(t, c.Config()).Resource(crds).Patch(t.Context(), "things.example.com", types.ApplyPatchType, []byte(crd), metav1.PatchOptions{FieldManager: "t"}); err != nil {
		t.Fatal(err)
	}
	if got := find(); !slices.Contains(got, "example.com/v1 things true") {
		t.Errorf("no things among %q", got)
	}
	if v, err := client.ServerVersion(); err != nil || v.GitVersion != "v1.36.0" {
		t.Errorf("%v, %v", v, err)
	}
}

// A watch from a version that is not in the history any more gets 410 Gone, at its beginning or later.
func TestWatchOfAnOldVersionIsGone(t *testing.T) {
	c := simulated.New(simulated.Options{History: 5}).Cluster("a")
	client := clientOf(t, c.Config())
	old := put(t, client, "a", "0").GetResourceVersion()
	for i := range 20 {
		put(t, client, "a", fmt.Sprint(i+1))
	}
	w, err := client.Resource(configMaps).Watch(t.Context(), metav1.ListOptions{ResourceVersion: old})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	e := <-w.ResultChan()
	if err := apierrors.FromObject(e.Object); e.Type != watch.Error || !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Errorf("got %s: %v", e.Type, err)
	}
	if _, open := <-w.ResultChan(); open {
		t.Error("the watch continues after the error")
	}
}

// Bookmarks have the current version, and the first one ends the initial events.
func TestBookmarks(t *testing.T) {
	c := simulated.New(simulated.Options{Bookmarks: 20 * time.Millisecond}).Cluster("a")
	client := clientOf(t, c.Config())
	put(t, client, "a", "1")
	yes := true
	w, err := client.Resource(configMaps).Watch(t.Context(), metav1.ListOptions{
		AllowWatchBookmarks: true, SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	var got []string
	for len(got) < 3 {
		e := <-w.ResultChan()
		o := e.Object.(*unstructured.Unstructured)
		got = append(got, strings.Join([]string{string(e.Type), o.GetName(), o.GetAnnotations()["k8s.io/initial-events-end"]}, " "))
	}
	if want := []string{"ADDED a ", "BOOKMARK  true", "BOOKMARK  "}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// With the option Workloads a workload is available as soon as it is written.
func TestWorkloadsBecomeAvailable(t *testing.T) {
	for _, workloads := range []bool{false, true} {
		c := simulated.New(simulated.Options{Workloads: workloads}).Cluster("a")
		r := clientOf(t, c.Config()).Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).Namespace("default")
		if _, err := r.Patch(t.Context(), "web", types.ApplyPatchType, []byte(deployment("replicas: 3, ", "")), metav1.PatchOptions{FieldManager: "t"}); err != nil {
			t.Fatal(err)
		}
		o, err := r.Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got, _, _ := unstructured.NestedInt64(o.Object, "status", "availableReplicas")
		observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
		if want := map[bool]int64{true: 3}[workloads]; got != want || workloads && observed != o.GetGeneration() {
			t.Errorf("with workloads %t: %d are available at generation %d of %d", workloads, got, observed, o.GetGeneration())
		}
	}
}

// Requests are counted by verb and resource, and deleting a namespace deletes its objects.
func TestRequestsAreCounted(t *testing.T) {
	f := simulated.New(simulated.Options{})
	c := f.Cluster("a")
	client := clientOf(t, c.Config())
	put(t, client, "a", "1")
	put(t, client, "b", "1")
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	must(client.Resource(configMaps).Namespace("default").Get(t.Context(), "a", metav1.GetOptions{}))
	must(client.Resource(configMaps).List(t.Context(), metav1.ListOptions{}))
	if n := c.Len("configmaps"); n != 2 {
		t.Errorf("there are %d", n)
	}
	must(nil, client.Resource(namespaces).Delete(t.Context(), "default", metav1.DeleteOptions{}))
	if n := c.Len("configmaps"); n != 0 {
		t.Errorf("%d are left", n)
	}
	f.Cluster("idle")
	for key, want := range map[fleet.Key]int{
		{Verb: "APPLY", Resource: "configmaps"}: 2, {Verb: "GET", Resource: "configmaps"}: 1, {Verb: "LIST"}: 1,
		{Verb: "DELETE", Resource: "namespaces"}: 1, {}: 5,
	} {
		if got := f.Requests().Of(key); got != want {
			t.Errorf("%v was requested %d times, want %d", key, got, want)
		}
	}
}

// A cluster that was down has the same objects afterwards.
func TestClustersCanBeDown(t *testing.T) {
	c := simulated.New(simulated.Options{}).Cluster("a")
	client := clientOf(t, c.Config())
	put(t, client, "a", "1")
	c.Instead(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	if _, err := client.Resource(configMaps).Namespace("default").Get(t.Context(), "a", metav1.GetOptions{}); err == nil {
		t.Error("responds while it is down")
	}
	c.Instead(nil)
	if _, err := client.Resource(configMaps).Namespace("default").Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// Clusters are reached with their kubeconfigs and below one address, and share no objects.
func TestClustersAreIndependent(t *testing.T) {
	f := simulated.New(simulated.Options{})
	t.Cleanup(func() { f.Close() })
	for i := range 3 {
		put(t, clientOf(t, f.Cluster(fmt.Sprintf("c%d", i)).Config()), fmt.Sprintf("of-%d", i), "x")
	}
	dir := t.TempDir()
	if err := f.WriteKubeconfigs(dir); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 3 {
		t.Fatalf("%v, %v", files, err)
	}
	hosts := map[string]bool{}
	for i := range 3 {
		config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, fmt.Sprintf("c%d.kubeconfig", i)))
		if err != nil {
			t.Fatal(err)
		}
		hosts[config.Host] = true
		below := &rest.Config{Host: fmt.Sprintf("http://all/clusters/c%d", i), Transport: handled(f)}
		for _, config := range []*rest.Config{config, below} {
			list, err := clientOf(t, config).Resource(configMaps).List(t.Context(), metav1.ListOptions{})
			if err != nil || len(list.Items) != 1 || list.Items[0].GetName() != fmt.Sprintf("of-%d", i) {
				t.Errorf("c%d at %s: %v, %v", i, config.Host, list, err)
			}
		}
	}
	if len(hosts) != 3 {
		t.Errorf("addresses are shared: %v", hosts)
	}
}

func handled(h http.Handler) http.RoundTripper { return simulated.RoundTripper(h) }

// With many concurrent writers every watch gets an event for every object, in order.
func TestWatchesMissNothing(t *testing.T) {
	c := simulated.New(simulated.Options{}).Cluster("a")
	const writers, each = 4, 25
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var watchers, writing sync.WaitGroup
	for range 3 {
		w, err := clientOf(t, c.Config()).Resource(configMaps).Watch(ctx, metav1.ListOptions{ResourceVersion: "1"})
		if err != nil {
			t.Fatal(err)
		}
		watchers.Go(func() {
			defer w.Stop()
			last := uint64(0)
			for seen := map[string]bool{}; len(seen) < writers*each; {
				e, open := <-w.ResultChan()
				if !open {
					t.Errorf("ended after %d", len(seen))
					return
				}
				o := e.Object.(*unstructured.Unstructured)
				var version uint64
				if _, err := fmt.Sscan(o.GetResourceVersion(), &version); err != nil || version <= last {
					t.Errorf("%d after %d: %v", version, last, err)
				}
				last, seen[o.GetName()] = version, true
			}
		})
	}
	for n := range writers {
		client := clientOf(t, c.Config())
		writing.Go(func() {
			for i := range each {
				put(t, client, fmt.Sprintf("of-%d-%d", n, i), "x")
			}
		})
	}
	writing.Wait()
	watchers.Wait()
}

// Equal objects of many clusters share their memory, so each further cluster needs little.
func TestEqualObjectsShareTheirContent(t *testing.T) {
	f := simulated.New(simulated.Options{})
	fill := func(from, to int) {
		for n := from; n < to; n++ {
			client := clientOf(t, f.Cluster(fmt.Sprint("c", n)).Config())
			for i := range 20 {
				put(t, client, fmt.Sprint("o", i), strings.Repeat("x", 10_000))
			}
		}
	}
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	fill(0, 2)
	before := heap()
	fill(2, 22)
	if grown := int64(heap()-before) / (20 * 20); grown > 3000 {
		t.Errorf("an object of 10,000 bytes takes %d on each further cluster", grown)
	}
	runtime.KeepAlive(f)
}
