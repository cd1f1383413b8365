package main

import (
	"encoding/json"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// planVersion names the schema of a plan in JSON. What has this version keeps
// its fields; new ones may come.
const planVersion = "gitfleet.dev/plan/v1"

type planDocument struct {
	APIVersion string          `json:"apiVersion"`
	Commit     string          `json:"commit"`
	Placements []planPlacement `json:"placements"`
	Clusters   []planCluster   `json:"clusters"`
	Problems   []planProblem   `json:"problems"`
}

type planPlacement struct {
	Kind              string                   `json:"kind"`
	Namespace         string                   `json:"namespace"`
	Name              string                   `json:"name"`
	PolicyHash        string                   `json:"policyHash"`
	Conditions        []metav1.Condition       `json:"conditions"`
	SelectedResources []api.ResourceIdentifier `json:"selectedResources"`
	// Decisions cover every cluster, the selected first, in the scheduler's
	// order.
	Decisions []planDecision `json:"decisions"`
	Problems  []planProblem  `json:"problems"`
}

type planDecision struct {
	Cluster             string `json:"cluster"`
	Selected            bool   `json:"selected"`
	AffinityScore       *int32 `json:"affinityScore"`
	TopologySpreadScore *int32 `json:"topologySpreadScore"`
	Reason              string `json:"reason"`
}

type planCluster struct {
	Name    string       `json:"name"`
	Objects []planObject `json:"objects"`
}

type planObject struct {
	Group     string `json:"group"`
	Version   string `json:"version"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Placement string `json:"placement"`
}

type planProblem struct {
	Path     string       `json:"path"`
	Line     int          `json:"line"`
	Document int          `json:"document"`
	Field    string       `json:"field"`
	Severity hub.Severity `json:"severity"`
	Message  string       `json:"message"`
}

func (p planProblem) text() string {
	return hub.Problem{Origin: api.Origin{Path: p.Path, Line: p.Line}, Field: p.Field, Message: p.Message}.Error()
}

// describePlan turns a plan into its document.
func describePlan(s *hub.Snapshot, p *plan.Plan) planDocument {
	d := planDocument{APIVersion: planVersion, Commit: s.Commit.Hash, Placements: []planPlacement{}, Clusters: []planCluster{}}
	report := status.Build(status.Input{Plan: p, Head: s, Ledger: ledger.New()})
	statuses := map[api.PlacementKey]api.PlacementStatus{}
	for _, c := range report.Placements {
		statuses[api.PlacementKey{Name: c.Name}] = c.Status
	}
	for _, r := range report.ResourcePlacements {
		statuses[api.PlacementKey{Namespace: r.Namespace, Name: r.Name}] = r.Status
	}
	objects := map[string][]planObject{}
	for _, pl := range p.Placements {
		d.Placements = append(d.Placements, describePlacement(pl, statuses[pl.Key]))
		for _, c := range pl.Clusters {
			objects[c.Binding.Cluster] = append(objects[c.Binding.Cluster], contents(pl.Key, c)...)
		}
	}
	for _, c := range p.Members {
		d.Clusters = append(d.Clusters, planCluster{Name: c.Name, Objects: append([]planObject{}, objects[c.Name]...)})
	}
	d.Problems = describeProblems(s.Warnings)
	return d
}

func describeProblems(ps hub.Problems) []planProblem {
	out := []planProblem{}
	for _, p := range ps {
		out = append(out, planProblem{p.Path, p.Line, p.Document, p.Field, p.Severity, p.Message})
	}
	return out
}

func describePlacement(p *plan.Placement, s api.PlacementStatus) planPlacement {
	out := planPlacement{
		Kind: p.Key.Kind(), Namespace: p.Key.Namespace, Name: p.Key.Name, PolicyHash: p.Schedule.Policy,
		SelectedResources: append([]api.ResourceIdentifier{}, s.SelectedResources...),
		Decisions:         []planDecision{}, Problems: describeProblems(p.Warnings),
	}
	// Of the conditions a plan can tell only the first: the rest happens on
	// clusters.
	if len(s.Conditions) > 0 {
		out.Conditions = s.Conditions[:1]
		out.Conditions[0].LastTransitionTime = metav1.Time{}
	}
	for _, dec := range p.Schedule.Decisions {
		row := planDecision{Cluster: dec.Cluster, Selected: dec.Selected, Reason: dec.Reason}
		if dec.Score != nil {
			row.AffinityScore, row.TopologySpreadScore = &dec.Score.Affinity, &dec.Score.Spread
		}
		out.Decisions = append(out.Decisions, row)
	}
	return out
}

func contents(key api.PlacementKey, c *plan.OnCluster) []planObject {
	var out []planObject
	for _, m := range c.Content.Manifests {
		out = append(out, planObject{
			Group: m.ID.Group, Version: m.Object.Object.GroupVersionKind().Version, Kind: m.ID.Kind,
			Namespace: m.ID.Namespace, Name: m.ID.Name, Placement: key.String(),
		})
	}
	return out
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
