package server

import (
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A collector reckons gauges from the newest report when Prometheus asks.
type collector struct{ server *Server }

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("gitfleet_"+name, help, labels, nil)
}

var (
	headInfo       = describe("head_info", "Always 1: the commit in force.", "sha")
	headProblems   = describe("head_problems", "Problems that keep the newest commit from being in force.")
	gitLastSuccess = describe("git_last_success_timestamp_seconds", "When the remote last gave an answer that could be used.")
	gitFailures    = describe("git_failures", "Polls of the remote that failed since the last success.")
	clusterHealthy = describe("cluster_healthy", "1 if the member cluster answers and is ready.", "cluster")
	placementState = describe("placement_clusters", "Clusters of a placement by how far they are.", "placement", "state")
	drifted        = describe("drifted_objects", "Objects on clusters that differ from what the hub wants, by placement and what is done about it.", "placement", "state")
	suspensions    = describe("suspensions", "Suspensions in force, by what is suspended: a cluster, a placement or an object.", "of")
	suspendedSince = describe("suspended_since_timestamp_seconds", "When the oldest suspension in force began; missing if there is none.")
	// outstanding has KubeFleet's name, which its users have alerts on.
	outstanding = prometheus.NewDesc("fleet_workload_placement_status_last_timestamp_seconds",
		"When it was last looked at what a placement has to reach next; conditionType is Completed if that is nothing.",
		[]string{"namespace", "name", "generation", "conditionType", "status", "reason"}, nil)
)

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{headInfo, headProblems, gitLastSuccess, gitFailures, clusterHealthy, placementState, drifted, suspensions, suspendedSince, outstanding} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	r, _, _ := c.server.newest()
	if r == nil {
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	if hash := r.Source.InForce.Hash; hash != "" {
		gauge(headInfo, 1, hash)
	}
	gauge(headProblems, float64(len(r.Source.Problems)))
	gauge(gitFailures, float64(r.Source.Git.Failures))
	if at := r.Source.Git.LastSuccess; !at.IsZero() {
		gauge(gitLastSuccess, float64(at.Unix()))
	}
	for _, m := range r.Clusters {
		gauge(clusterHealthy, answers(m), m.Name)
	}
	for of, n := range suspended(r.Suspensions) {
		gauge(suspensions, float64(n), of)
	}
	if len(r.Suspensions) > 0 {
		gauge(suspendedSince, float64(oldest(r.Suspensions).Unix()))
	}
	differ := differing(r.Drifts)
	reach := func(m *metav1.ObjectMeta, spec *api.PlacementSpec, s *api.PlacementStatus) {
		o := status.OutstandingOf(m, spec, s.Conditions)
		gauge(outstanding, float64(r.At.Unix()), m.Namespace, m.Name, strconv.FormatInt(m.Generation, 10), o.Type, o.Status, o.Reason)
	}
	for _, p := range r.Placements {
		reach(&p.ObjectMeta, &p.Spec, &p.Status)
	}
	for _, p := range r.ResourcePlacements {
		reach(&p.ObjectMeta, &p.Spec, &p.Status)
	}
	for _, d := range r.Details {
		for _, state := range []api.DriftState{api.DriftStanding, api.DriftContested, api.DriftIgnored, api.DriftForeign} {
			gauge(drifted, float64(differ[d.Placement][state]), d.Placement, string(state))
		}
		for state, n := range states(d) {
			gauge(placementState, float64(n), d.Placement, state)
		}
	}
}

// differing counts by placement the objects that differ, each in one state. What
// is over does not count.
func differing(drifts []status.Drift) map[string]map[api.DriftState]int {
	all := map[string]map[api.DriftState]int{}
	for i := range drifts {
		d := &drifts[i]
		if d.State == api.DriftRepaired || d.State == api.DriftEnded {
			continue
		}
		if all[d.Placement] == nil {
			all[d.Placement] = map[api.DriftState]int{}
		}
		all[d.Placement][d.State]++
	}
	return all
}

// suspended counts suspensions by what they are of.
func suspended(all []status.Suspension) map[string]int {
	n := map[string]int{"cluster": 0, "placement": 0, "object": 0}
	for i := range all {
		switch {
		case all[i].Object != api.ID{}:
			n["object"]++
		case all[i].Placement != "":
			n["placement"]++
		default:
			n["cluster"]++
		}
	}
	return n
}

// oldest is when the first of some suspensions began.
func oldest(all []status.Suspension) time.Time {
	return slices.MinFunc(all, func(a, b status.Suspension) int { return a.Since.Compare(b.Since) }).Since
}

func answers(m *api.MemberCluster) float64 {
	for _, a := range m.Status.AgentStatus {
		for _, cond := range a.Conditions {
			if cond.Type == api.Healthy && cond.Status == "True" {
				return 1
			}
		}
	}
	return 0
}

// states counts the clusters of a placement; each is in one state.
func states(d *status.Detail) map[string]int {
	n := map[string]int{"available": 0, "applied": 0, "applying": 0, "held": 0, "removing": 0}
	for _, c := range d.Clusters {
		switch {
		case c.Removing:
			n["removing"]++
		case c.Held != "":
			n["held"]++
		case c.Available:
			n["available"]++
		case c.Applied:
			n["applied"]++
		default:
			n["applying"]++
		}
	}
	return n
}
