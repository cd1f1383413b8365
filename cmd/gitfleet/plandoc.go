package main

import (
	"encoding/json"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
)

// planVersion names the schema of a plan in JSON, which docs/plan-json.md
// describes. What has this version keeps its fields; new ones may come.
const planVersion = "gitfleet.dev/plan/v1"

type planDocument struct {
	APIVersion string          `json:"apiVersion"`
	Commit     string          `json:"commit"`
	Placements []planPlacement `json:"placements"`
	Clusters   []planCluster   `json:"clusters"`
	// Deletions are there only if there is something to compare with.
	Deletions []planDeletion `json:"deletions,omitzero"`
	Problems  []planProblem  `json:"problems"`
}

type planPlacement struct {
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	PolicyHash string `json:"policyHash"`
	// RenamedFrom is the key in the earlier plan of a placement that was renamed since.
	RenamedFrom string `json:"renamedFrom,omitempty"`
	// Unclear is why it is not certain whether the placement was renamed since the
	// earlier plan, and what to do.
	Unclear string `json:"unclear,omitempty"`
	// Abandons says that its objects stay on the clusters when it goes.
	Abandons          bool               `json:"abandons,omitempty"`
	Conditions        []metav1.Condition `json:"conditions"`
	SelectedResources []planResource     `json:"selectedResources"`
	// Decisions cover every cluster, the selected first, in the scheduler's
	// order.
	Decisions []planDecision `json:"decisions"`
	Problems  []planProblem  `json:"problems"`
}

type planResource struct {
	Group     string                  `json:"group"`
	Version   string                  `json:"version"`
	Kind      string                  `json:"kind"`
	Namespace string                  `json:"namespace"`
	Name      string                  `json:"name"`
	Envelope  *api.EnvelopeIdentifier `json:"envelope,omitempty"`
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
	// Placement is crp/NAME or rp/NAMESPACE/NAME.
	Placement string `json:"placement"`
	// Kept says that it stays on the cluster when nothing wants it any more.
	Kept bool `json:"kept,omitempty"`
}

type planProblem struct {
	Path     string       `json:"path"`
	Line     int          `json:"line"`
	Document int          `json:"document"`
	Field    string       `json:"field"`
	Severity hub.Severity `json:"severity"`
	Message  string       `json:"message"`
}

// filled has empty lists where there are none: whoever reads the JSON need not
// ask for null.
func (d planDocument) filled() planDocument {
	if d.Placements == nil {
		d.Placements = []planPlacement{}
	}
	if d.Clusters == nil {
		d.Clusters = []planCluster{}
	}
	if d.Problems == nil {
		d.Problems = []planProblem{}
	}
	return d
}

// key names a placement crp/NAME or rp/NAMESPACE/NAME.
func (p planPlacement) key() string {
	return api.PlacementKey{Namespace: p.Namespace, Name: p.Name}.String()
}

// selected are the clusters that the placement takes, in order.
func (p planPlacement) selected() []string {
	var names []string
	for _, d := range p.Decisions {
		if d.Selected {
			names = append(names, d.Cluster)
		}
	}
	return names
}

// title is the name of the object as every command takes it, such as
// Deployment.apps/web/web.
func (o planObject) title() string {
	return o.id().String()
}

func (p planProblem) text() string {
	return hub.Problem{Origin: api.Origin{Path: p.Path, Line: p.Line}, Field: p.Field, Message: p.Message}.Error()
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
