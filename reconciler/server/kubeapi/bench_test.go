package kubeapi

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// large returns a placement on a hundred clusters.
func large(name string, generation int64) *api.ClusterResourcePlacement {
	p := crpOf(name, generation)
	condition := func(typ string) metav1.Condition {
		return metav1.Condition{
			Type: typ, Status: metav1.ConditionTrue, Reason: "RolloutStarted", ObservedGeneration: generation,
			Message: "Detected the new changes on the resources and started the rollout process", LastTransitionTime: metav1.Now(),
		}
	}
	for i := range 100 {
		s := api.PerClusterPlacementStatus{ClusterName: fmt.Sprintf("member-%d", i), ObservedResourceIndex: "0"}
		for _, typ := range []string{api.Scheduled, api.RolloutStarted, api.Overridden, api.WorkSynchronized, api.Applied, api.Available} {
			s.Conditions = append(s.Conditions, condition(typ))
		}
		p.Status.PlacementStatuses = append(p.Status.PlacementStatuses, s)
	}
	return p
}

func fleet(b *testing.B) *status.Report {
	b.Helper()
	var placements []*api.ClusterResourcePlacement
	for i := range 1000 {
		placements = append(placements, large(fmt.Sprintf("placement-%04d", i), 1))
	}
	return reportOf(nil, placements...)
}

// BenchmarkAsk measures requests for placements, complete and as tables for kubectl, of 1,000
// placements on 100 clusters each.
func BenchmarkAsk(b *testing.B) {
	s := serve(b, fleet(b))
	for name, ask := range map[string]struct{ path, accept string }{
		"list":  {"/clusterresourceplacements", "application/json"},
		"table": {"/clusterresourceplacements", "application/json;as=Table;v=v1;g=meta.k8s.io"},
		"get":   {"/clusterresourceplacements/placement-0500", "application/json"},
	} {
		b.Run(name, func(b *testing.B) {
			read(b, s.url+placementPath+ask.path, ask.accept) // the first request encodes
			for b.Loop() {
				read(b, s.url+placementPath+ask.path, ask.accept)
			}
		})
	}
}

// BenchmarkFirstList measures the first list of 1,000 placements on 100 clusters each, compared
// with a server that encodes the same placements with encoding/json in as many goroutines.
func BenchmarkFirstList(b *testing.B) {
	r := fleet(b)
	s := serve(b, r)
	const path = placementPath + "/clusterresourceplacements"
	b.Run("gitfleet", func(b *testing.B) {
		read(b, s.url+path, "application/json") // grows the heap
		for b.Loop() {
			b.StopTimer()
			next := *r
			next.Placements = make([]*api.ClusterResourcePlacement, len(r.Placements))
			for i, p := range r.Placements {
				another := *p
				next.Placements[i] = &another
			}
			s.api.Publish(&next)
			runtime.GC()
			b.StartTimer()
			read(b, s.url+path, "application/json")
		}
	})
	b.Run("json", func(b *testing.B) {
		plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			encoded := make([][]byte, len(r.Placements))
			var group errgroup.Group
			group.SetLimit(runtime.GOMAXPROCS(0))
			for i, p := range r.Placements {
				group.Go(func() (err error) {
					encoded[i], err = json.Marshal(p)
					return err
				})
			}
			if err := group.Wait(); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			for _, p := range encoded {
				w.Write(p)
			}
		}))
		defer plain.Close()
		read(b, plain.URL, "application/json")
		for b.Loop() {
			b.StopTimer()
			runtime.GC()
			b.StartTimer()
			read(b, plain.URL, "application/json")
		}
	})
}

// read requests placements.
func read(b *testing.B, url, accept string) {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, url, nil)
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("Accept-Encoding", "identity")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || n < 1000 {
		b.Fatalf("%s: %d, %d bytes: %v", url, resp.StatusCode, n, err)
	}
}

// BenchmarkPublish measures the publication of a report in which one of many placements has
// changed.
func BenchmarkPublish(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprintf("placements=%d", n), func(b *testing.B) {
			r := fleet(b)
			r.Placements = r.Placements[:n]
			s := serve(b, r)
			generation := int64(1)
			b.ReportAllocs()
			for b.Loop() {
				generation++
				next := *r // with the same list, so that it is not built in the benchmark
				next.Placements[50] = crpOf("placement-0050", generation)
				s.api.Publish(&next)
			}
		})
	}
}
