package kubeapi

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// large is a placement on a hundred clusters.
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

// BenchmarkAsk is what it costs to ask for placements, whole and as kubectl
// shows them, of 1,000 on 100 clusters each.
func BenchmarkAsk(b *testing.B) {
	s := serve(b, fleet(b))
	for name, ask := range map[string]struct{ path, accept string }{
		"list":  {"/clusterresourceplacements", "application/json"},
		"table": {"/clusterresourceplacements", "application/json;as=Table;v=v1;g=meta.k8s.io"},
		"get":   {"/clusterresourceplacements/placement-0500", "application/json"},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, s.url+placementPath+ask.path, nil)
				if err != nil {
					b.Fatal(err)
				}
				req.Header.Set("Accept", ask.accept)
				req.Header.Set("Accept-Encoding", "identity")
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					b.Fatal(err)
				}
				n, err := io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if err != nil || resp.StatusCode != http.StatusOK || n < 1000 {
					b.Fatalf("%d, %d bytes: %v", resp.StatusCode, n, err)
				}
			}
		})
	}
}

// BenchmarkPublish is what a report costs in which one placement of 1,000 is
// another.
func BenchmarkPublish(b *testing.B) {
	r := fleet(b)
	s := serve(b, r)
	generation := int64(1)
	for b.Loop() {
		generation++
		next := *r
		next.Placements = slices.Clone(r.Placements)
		next.Placements[500] = crpOf("placement-0500", generation)
		s.api.Publish(&next)
	}
}
