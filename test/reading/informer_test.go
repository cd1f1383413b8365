package reading

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

var crp = schema.GroupVersionResource{Group: api.PlacementGroup, Version: "v1beta1", Resource: "clusterresourceplacements"}

func client(t *testing.T, d *daemon) dynamic.Interface {
	t.Helper()
	c, err := dynamic.NewForConfig(&rest.Config{Host: d.url, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// turn changes some placements, removes one and adds one, and returns the names and generations
// of all.
func (d *daemon) turn(i int) map[string]int64 {
	want := map[string]int64{}
	d.publish(func(r *status.Report) {
		r.Placements = slices.Clone(r.Placements)
		changed := placed("web", "", "aks-member-1")
		changed.Generation = int64(i)
		r.Placements[1] = changed
		r.Placements[2] = placed(fmt.Sprintf("web-%d", i), "", "aks-member-1")
		for _, p := range r.Placements {
			want[p.Name] = p.Generation
		}
	})
	return want
}

// An informer converges to the current state, also after many changes and after restarts of the
// daemon, which force it to list again.
func TestInformersListAgainAfterARestart(t *testing.T) {
	d := start(t)
	d.fill()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	informer := dynamicinformer.NewDynamicSharedInformerFactory(client(t, d), 0).ForResource(crp).Informer()
	news := make(chan struct{}, 1)
	tell := func() {
		select {
		case news <- struct{}{}:
		default:
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { tell() }, UpdateFunc: func(any, any) { tell() }, DeleteFunc: func(any) { tell() },
	}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); informer.RunWithContext(ctx) }()
	defer func() { cancel(); <-ended }()
	var want map[string]int64
	for round := range 3 {
		for i := range 50 {
			want = d.turn(100*round + i + 10)
		}
		for !has(informer.GetStore(), want) {
			select {
			case <-news:
			case <-ctx.Done():
				t.Fatalf("round %d: the informer has %v, want %v", round, informer.GetStore().ListKeys(), want)
			}
		}
		d.restart()
		d.hangUp()
	}
}

func has(s cache.Store, want map[string]int64) bool {
	items := s.List()
	for _, item := range items {
		o := item.(*unstructured.Unstructured)
		if generation, there := want[o.GetName()]; !there || generation != o.GetGeneration() {
			return false
		}
	}
	return len(items) == len(want)
}

// A watch resumes where it ended, as long as the daemon runs.
func TestWatchesAreResumed(t *testing.T) {
	d := start(t)
	d.fill()
	placements := client(t, d).Resource(crp)
	list, err := placements.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d.turn(7)
	w, err := placements.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion(), AllowWatchBookmarks: true})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for range 3 {
		e := <-w.ResultChan()
		got = append(got, string(e.Type)+" "+e.Object.(*unstructured.Unstructured).GetName())
	}
	w.Stop()
	slices.Sort(got)
	if text := strings.Join(got, ", "); text != "ADDED web-7, DELETED web-2-crp, MODIFIED web" {
		t.Errorf("since the list: %s", text)
	}
	d.restart()
	w, err = placements.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err == nil {
		e := <-w.ResultChan()
		w.Stop()
		err = apierrors.FromObject(e.Object)
	}
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Errorf("a version from before a restart: %v", err)
	}
}

// A watch with sendInitialEvents gets the current objects, a bookmark, and then the changes.
func TestWatchListSendsInitialEvents(t *testing.T) {
	d := start(t)
	d.fill()
	yes := true
	w, err := client(t, d).Resource(crp).Watch(t.Context(), metav1.ListOptions{
		SendInitialEvents: &yes, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for _, want := range []string{"ADDED crp-1", "ADDED web", "ADDED web-2-crp", "BOOKMARK "} {
		e := <-w.ResultChan()
		o := e.Object.(*unstructured.Unstructured)
		if got := string(e.Type) + " " + o.GetName(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if e.Type == watch.Bookmark && o.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
			t.Errorf("the bookmark: %v", o.Object)
		}
	}
}

// Watchers that do not read delay neither the daemon nor other clients, and changes are not
// buffered for them.
func TestSlowWatchersDelayNobody(t *testing.T) {
	d := start(t)
	d.fill()
	for range 20 {
		resp, err := http.Get(d.url + "/apis/placement.kubernetes-fleet.io/v1beta1/clusterresourceplacements?watch=1")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if _, err := io.ReadFull(resp.Body, make([]byte, 1)); err != nil {
			t.Fatal(err) // it has begun, and is not read on
		}
	}
	clusters := make([]string, 500)
	for i := range clusters {
		clusters[i] = fmt.Sprintf("member-%d", i)
	}
	large := func(i int) {
		d.publish(func(r *status.Report) {
			p := placed("web", "", clusters...) // some 150 KiB
			p.Generation = int64(i)
			r.Placements = []*api.ClusterResourcePlacement{p}
		})
	}
	large(1)
	before := heap()
	const changes = 500
	for i := range changes {
		large(i + 2)
	}
	w, err := client(t, d).Resource(crp).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if e := <-w.ResultChan(); e.Object.(*unstructured.Unstructured).GetGeneration() != changes+1 {
		t.Errorf("the watch begins with generation %d", e.Object.(*unstructured.Unstructured).GetGeneration())
	}
	if grown := heap() - before; grown > 60<<20 {
		t.Errorf("%d MiB more after %d changes of 150 KiB that nobody read", grown>>20, changes)
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
