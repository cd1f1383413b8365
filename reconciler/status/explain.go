package status

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// ExplainVersion is the schema of an explanation in JSON. Fields of this version are never
// removed; new ones may be added.
const ExplainVersion = "gitfleet.dev/explain/v1"

// An Explanation says why a placement goes to its clusters.
type Explanation struct {
	APIVersion    string            `json:"apiVersion"`
	Commit        string            `json:"commit"`
	Placement     string            `json:"placement"` // crp/NAME or rp/NAMESPACE/NAME
	Origin        string            `json:"origin"`    // its position in the repository
	PlacementType api.PlacementType `json:"placementType"`
	PolicyHash    string            `json:"policyHash"`
	Wanted        int               `json:"wanted"`    // how many clusters the policy requests
	Found         int               `json:"found"`     // how many there are
	Scheduled     metav1.Condition  `json:"scheduled"` // the placement's condition
	Problems      []string          `json:"problems"`  // warnings about the placement
	// Clusters are in the order of the decisions; empty if the scheduler was not called, for
	// the reason in Scheduled.
	Clusters []ExplainedCluster `json:"clusters"`
}

// An ExplainedCluster says why one cluster was selected or not. Its fields are those of
// [placement.Explanation].
type ExplainedCluster struct {
	Cluster             string `json:"cluster"`
	Selected            bool   `json:"selected"`
	AffinityScore       *int32 `json:"affinityScore"`
	TopologySpreadScore *int32 `json:"topologySpreadScore"`
	Reason              string `json:"reason"`
	// Waits is why a selected cluster does not get the newest content yet; empty if it does, and without a daemon.
	Waits     string                    `json:"waits,omitempty"`
	How       string                    `json:"how,omitempty"`
	Filters   []placement.Verdict       `json:"filters,omitempty"`
	Required  []placement.TermVerdict   `json:"required,omitempty"`
	Preferred []placement.Contribution  `json:"preferred,omitempty"`
	Spread    []placement.SpreadVerdict `json:"spread,omitempty"`
	Tie       string                    `json:"tie,omitempty"`
	Change    []string                  `json:"change,omitempty"`
}

// Explain returns why a placement (crp/NAME or rp/NAMESPACE/NAME) goes to its clusters: all
// clusters, or one if cluster is not empty. The error is an *UnknownError if the placement or
// the cluster does not exist.
func (r *Report) Explain(name, cluster string) (*Explanation, error) {
	found, err := r.inGit(name)
	if err != nil {
		return nil, err
	}
	p := found.of
	e := &Explanation{
		APIVersion: ExplainVersion, Commit: r.InForce.Commit.Hash, Placement: name, Origin: p.Spec.Origin.String(),
		PlacementType: p.Spec.Spec.Policy.Type(), PolicyHash: p.Schedule.Policy, Wanted: p.Schedule.Wanted, Found: p.Schedule.Found,
		Scheduled: found.status().Conditions[0], Problems: append([]string{}, texts(p.Warnings)...), Clusters: []ExplainedCluster{},
	}
	request := p.SchedulerInput()
	if request == nil {
		return e, nil
	}
	all := placement.Explain(*request)
	for _, c := range all {
		if cluster == "" || c.Cluster == cluster {
			e.Clusters = append(e.Clusters, explained(c))
			if on := p.On(c.Cluster); on != nil && c.Selected {
				e.Clusters[len(e.Clusters)-1].Waits = on.Waits
			}
		}
	}
	if cluster != "" && len(e.Clusters) == 0 {
		err := unknown("cluster", cluster, all, func(c placement.Explanation) string { return c.Cluster })
		slices.Sort(err.Exist)
		return nil, err
	}
	return e, nil
}

// inGit returns the report of a placement that is not being removed. The error is an *UnknownError if there is none.
func (r *Report) inGit(name string) (*placementEntry, error) {
	nameOf := func(e *placementEntry) string { return e.detail.Placement }
	var all []*placementEntry
	for e := range r.entries.Values() {
		if e.of.Spec == nil {
			continue
		}
		if nameOf(e) == name {
			return e, nil
		}
		all = append(all, e)
	}
	err := unknown("placement", name, all, nameOf)
	slices.Sort(err.Exist)
	return nil, err
}

func explained(c placement.Explanation) ExplainedCluster {
	out := ExplainedCluster{
		Cluster: c.Cluster, Selected: c.Selected, Reason: c.Reason, How: c.How, Filters: c.Filters,
		Required: c.Required, Preferred: c.Preferred, Spread: c.Spread, Tie: c.Tie, Change: c.Change,
	}
	if c.Score != nil {
		out.AffinityScore, out.TopologySpreadScore = &c.Score.Affinity, &c.Score.Spread
	}
	return out
}
