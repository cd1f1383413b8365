package forecast

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// Version identifies the JSON schema of a plan, which docs/plan-json.md describes. Fields of a version are never
// removed; new ones may be added.
const Version = "gitfleet.dev/plan/v1"

// A Document is a plan in JSON; see docs/plan-json.md.
type Document struct {
	APIVersion string      `json:"apiVersion"`
	Commit     string      `json:"commit"`
	Placements []Placement `json:"placements"`
	Clusters   []Cluster   `json:"clusters"`
	// Changes are set only if there is an earlier plan.
	Changes *DescribedChanges `json:"changes,omitempty"`
	// Deletions are set only if there is an earlier plan, and Recreations only if its contents are known.
	Deletions   []Deletion   `json:"deletions,omitzero"`
	Recreations []Recreation `json:"recreations,omitzero"`
	Problems    []Problem    `json:"problems"`
}

// A Placement is one placement of a plan.
type Placement struct {
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	PolicyHash string `json:"policyHash"`
	// RenamedFrom is the key of a renamed placement in the earlier plan.
	RenamedFrom string `json:"renamedFrom,omitempty"`
	// Unclear says why it is not certain whether the placement was renamed since the earlier plan, and what to do.
	Unclear string `json:"unclear,omitempty"`
	// Abandons says that the objects of the placement stay on the clusters when it is removed.
	Abandons          bool               `json:"abandons,omitempty"`
	Conditions        []metav1.Condition `json:"conditions"`
	SelectedResources []Resource         `json:"selectedResources"`
	// Decisions has every cluster, the selected ones first, in the scheduler's order.
	Decisions []Decision `json:"decisions"`
	// Calendar says in which stages, after which tasks and in which windows clusters get new content; empty if there are none.
	Calendar []string  `json:"calendar,omitempty"`
	Problems []Problem `json:"problems"`
}

// A Resource is an object that a placement selects.
type Resource struct {
	Group     string                  `json:"group"`
	Version   string                  `json:"version"`
	Kind      string                  `json:"kind"`
	Namespace string                  `json:"namespace"`
	Name      string                  `json:"name"`
	Envelope  *api.EnvelopeIdentifier `json:"envelope,omitempty"`
}

// A Decision is the decision about one cluster for one placement.
type Decision struct {
	Cluster             string `json:"cluster"`
	Selected            bool   `json:"selected"`
	AffinityScore       *int32 `json:"affinityScore"`
	TopologySpreadScore *int32 `json:"topologySpreadScore"`
	Reason              string `json:"reason"`
	// Picked says that the reason is only that the policy has picked the cluster, followed by Note.
	Picked bool   `json:"picked,omitempty"`
	Note   string `json:"note,omitempty"`
}

// A Cluster has the objects that a cluster has in the end.
type Cluster struct {
	Name    string   `json:"name"`
	Objects []Object `json:"objects"`
}

// An Object is an object on a cluster.
type Object struct {
	Group     string `json:"group"`
	Version   string `json:"version"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Placement is crp/NAME or rp/NAMESPACE/NAME.
	Placement string `json:"placement"`
	// Kept says that the object stays on the cluster when no placement selects it any more.
	Kept bool `json:"kept,omitempty"`
}

// A Problem is a problem at one position of the repository.
type Problem struct {
	Path     string           `json:"path"`
	Line     int              `json:"line"`
	Document int              `json:"document"`
	Field    string           `json:"field"`
	Severity problem.Severity `json:"severity"`
	Message  string           `json:"message"`
}

// DescribedChanges are the differences from an earlier plan in JSON.
type DescribedChanges struct {
	// None says that there are no differences.
	None bool `json:"none"`
	// ContentsKnown says that the contents of the earlier plan are known. Otherwise only names are compared, and Contents
	// is empty.
	ContentsKnown bool                       `json:"contentsKnown"`
	Placements    []DescribedPlacementChange `json:"placements"`
	Clusters      []DescribedClusterChange   `json:"clusters"`
	Contents      []DescribedContentChange   `json:"contents"`
}

// A DescribedPlacementChange has the differences of one placement.
type DescribedPlacementChange struct {
	Placement   string          `json:"placement"`
	New         bool            `json:"new,omitempty"`
	Gone        bool            `json:"gone,omitempty"`
	RenamedFrom string          `json:"renamedFrom,omitempty"`
	Unclear     bool            `json:"unclear,omitempty"`
	Gained      []string        `json:"gained"`
	Lost        []string        `json:"lost"`
	PolicyFrom  string          `json:"policyFrom,omitempty"`
	PolicyTo    string          `json:"policyTo,omitempty"`
	Settings    []SettingChange `json:"settings"`
}

// A DescribedClusterChange has the differences in the names of the objects of one cluster. Deleted objects are in the
// document's Deletions.
type DescribedClusterChange struct {
	Cluster  string         `json:"cluster"`
	New      bool           `json:"new,omitempty"`
	Gone     bool           `json:"gone,omitempty"`
	Gained   []Object       `json:"gained"`
	Released []Object       `json:"released"`
	Passed   []PassedObject `json:"passed"`
}

// A DescribedContentChange is an object whose content changes on some clusters.
type DescribedContentChange struct {
	Object
	Clusters []string `json:"clusters"`
	// Origin is the position of the object in the repository, FILE:LINE.
	Origin string `json:"origin"`
	// Fields are masked in Secrets.
	Fields []DescribedField `json:"fields"`
	// Diff is a unified diff of the object as YAML, without a header and masked in Secrets. It is empty if the object is
	// too large, or nothing that is compared differs.
	Diff string `json:"diff"`
}

// A DescribedField is a field that changes.
type DescribedField struct {
	Path string `json:"path"`
	// Before and After are the values as text; empty if there is none.
	Before string `json:"before"`
	After  string `json:"after"`
}

// notNil returns a list that is not null in JSON.
func notNil[T any](list []T) []T { return append([]T{}, list...) }

// NotLoaded returns the document of a commit that does not load.
func NotLoaded(problems problem.List) Document { return newDocument("", problems) }

// newDocument returns a document with empty lists, so that the JSON has no null lists.
func newDocument(commit string, problems problem.List) Document {
	return Document{APIVersion: Version, Commit: commit, Placements: []Placement{}, Clusters: []Cluster{}, Problems: describeProblems(problems)}
}

// without returns a copy of the document that leaves out some placements and their objects.
func (d *Document) without(placements map[*plan.Placement]bool) *Document {
	if len(placements) == 0 {
		return d
	}
	dropped := map[string]bool{}
	for p := range placements {
		dropped[p.Key.String()] = true
	}
	out := *d
	out.Placements, out.Clusters = nil, make([]Cluster, 0, len(d.Clusters))
	for _, p := range d.Placements {
		if !dropped[p.Key()] {
			out.Placements = append(out.Placements, p)
		}
	}
	for _, c := range d.Clusters {
		left := Cluster{Name: c.Name}
		for _, o := range c.Objects {
			if !dropped[o.Placement] {
				left.Objects = append(left.Objects, o)
			}
		}
		out.Clusters = append(out.Clusters, left)
	}
	return &out
}

func (p Placement) key() api.PlacementKey {
	return api.PlacementKey{Namespace: p.Namespace, Name: p.Name}
}

// Key returns crp/NAME or rp/NAMESPACE/NAME.
func (p Placement) Key() string { return p.key().String() }

// Selected returns the clusters that the placement selects, in order.
func (p Placement) Selected() []string {
	var names []string
	for _, d := range p.Decisions {
		if d.Selected {
			names = append(names, d.Cluster)
		}
	}
	return names
}

// ID identifies the object.
func (o Object) ID() api.ID {
	return api.ID{Group: o.Group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
}

// Error returns the problem on one line that begins with its position.
func (p Problem) Error() string {
	return problem.Problem{Origin: api.Origin{Path: p.Path, Line: p.Line}, Field: p.Field, Message: p.Message}.Error()
}

// A Deletion is an object that would be deleted from a cluster.
type Deletion struct {
	Cluster string `json:"cluster"`
	Object
	// Blocked is the reason why the deletion is blocked until a commit allows it; empty if it is not. The JSON field keeps
	// the name that the schema promises.
	Blocked string `json:"held,omitempty"`
}

// A Recreation is an object that would be deleted from a cluster and created again, since it requests that and an
// immutable field of it changes.
type Recreation struct {
	Cluster string `json:"cluster"`
	Object
	// Certain says that it would be recreated. If it is false, that depends on the cluster.
	Certain bool `json:"certain"`
	// Blocked is the same for the recreation.
	Blocked string `json:"held,omitempty"`
}

// A PassedObject is an object that stays on its cluster and now belongs to another placement.
type PassedObject struct {
	Object
	From string `json:"from"` // the placement that it belonged to
}

func describeProblems(ps problem.List) []Problem {
	out := []Problem{}
	for _, p := range ps {
		out = append(out, Problem{p.Path, p.Line, p.Document, p.Field, p.Severity, p.Message})
	}
	return out
}
