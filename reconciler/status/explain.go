package status

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/plan"
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

// An UnknownError says that no object has the requested name.
type UnknownError struct {
	// What is the kind, such as "placement"; Exist are the existing names.
	What, Name string
	Exist      []string
}

// unknown returns the error that none of all has a name, sorted as all are.
func unknown[T any](what, name string, all []T, nameOf func(T) string) *UnknownError {
	e := &UnknownError{What: what, Name: name}
	for _, t := range all {
		e.Exist = append(e.Exist, nameOf(t))
	}
	return e
}

func (e *UnknownError) Error() string {
	const few = 20
	text := "there is no " + e.What + " " + e.Name
	if len(e.Exist) == 0 {
		return text + ", and no other either"
	}
	if near := e.suggestion(); near != "" {
		return text + "; did you mean " + near + "?"
	}
	text += "; there are " + strings.Join(e.Exist[:min(few, len(e.Exist))], ", ")
	if more := len(e.Exist) - few; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// suggestion returns the name that the user probably meant: one that is similar to the given
// name, or whose last part is.
func (e *UnknownError) suggestion() string {
	if len(e.Name) <= 3 { // too short for a suggestion
		return ""
	}
	if near := api.Closest(e.Name, e.Exist); near != "" || strings.Contains(e.Name, "/") {
		return near
	}
	var last []string
	for _, name := range e.Exist {
		last = append(last, name[strings.LastIndexByte(name, '/')+1:])
	}
	if i := slices.Index(last, api.Closest(e.Name, last)); i >= 0 {
		return e.Exist[i]
	}
	return ""
}

// A scheduling is the scheduler's input for one placement, and its result.
type scheduling struct {
	outline Explanation
	of      *plan.Placement
}

func newScheduling(p *plan.Placement, s api.PlacementStatus) scheduling {
	return scheduling{of: p, outline: Explanation{
		APIVersion: ExplainVersion, Placement: p.Key.String(), Origin: p.Spec.Origin.String(),
		PlacementType: p.Spec.Spec.Policy.Type(), PolicyHash: p.Schedule.Policy,
		Wanted: p.Schedule.Wanted, Found: p.Schedule.Found,
		Scheduled: s.Conditions[0], Problems: append([]string{}, texts(p.Warnings)...),
	}}
}

// Explain returns why a placement (crp/NAME or rp/NAMESPACE/NAME) goes to its clusters: all
// clusters, or one if cluster is not empty. The error is an *UnknownError if the placement or
// the cluster does not exist.
func (r *Report) Explain(name, cluster string) (*Explanation, error) {
	q, err := r.schedulingOf(name)
	if err != nil {
		return nil, err
	}
	e := q.outline
	e.Commit = r.InForce.Commit.Hash
	e.Clusters = []ExplainedCluster{}
	request := q.of.SchedulerInput()
	if request == nil {
		return &e, nil
	}
	all := placement.Explain(*request)
	for _, c := range all {
		if cluster == "" || c.Cluster == cluster {
			e.Clusters = append(e.Clusters, explained(c))
			if on := q.of.On(c.Cluster); on != nil && c.Selected {
				e.Clusters[len(e.Clusters)-1].Waits = on.Waits
			}
		}
	}
	if cluster != "" && len(e.Clusters) == 0 {
		err := unknown("cluster", cluster, all, func(c placement.Explanation) string { return c.Cluster })
		slices.Sort(err.Exist)
		return nil, err
	}
	return &e, nil
}

// schedulingOf returns the scheduler's input and result for a placement.
func (r *Report) schedulingOf(name string) (*scheduling, error) {
	nameOf := func(e *placementEntry) string { return e.detail.Placement }
	var inGit []*placementEntry // the others are being removed
	for e := range r.entries.Values() {
		if e.of.Spec == nil {
			continue
		}
		if nameOf(e) == name {
			return &e.scheduling, nil
		}
		inGit = append(inGit, e)
	}
	err := unknown("placement", name, inGit, nameOf)
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
