package status

import (
	"cmp"
	"slices"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status/updaterun"
)

// TreeVersion is the schema of a tree in JSON. Fields of this version are never removed; new
// ones may be added.
const TreeVersion = "gitfleet.dev/tree/v1"

// A Tree is a placement with its clusters, and each cluster with its objects.
type Tree struct {
	APIVersion string         `json:"apiVersion"`
	Placement  string         `json:"placement"` // crp/NAME or rp/NAMESPACE/NAME
	Origin     string         `json:"origin"`    // its position in the repository; empty if it was deleted
	UpdateRun  *updaterun.Run `json:"updateRun,omitempty"`
	Clusters   []TreeCluster  `json:"clusters"`
}

// A TreeCluster has the objects of a placement on one cluster.
type TreeCluster struct {
	Cluster string `json:"cluster"`
	Commit  string `json:"commit,omitempty"` // of the assigned content
	Stage   string `json:"stage,omitempty"`  // of the update run
	// Objects are the assigned objects in the order of application; empty if they are not
	// known.
	Objects []TreeObject `json:"objects"`
}

// A TreeObject is one object on one cluster.
type TreeObject struct {
	api.ResourceIdentifier
	State   TreeState `json:"state"`
	Message string    `json:"message,omitempty"` // why the object is not available
}

// A TreeState is the state of an object.
type TreeState string

// The states of an object.
const (
	ObjectAvailable   TreeState = "available"
	ObjectProgressing TreeState = "progressing" // it is becoming available
	ObjectFailed      TreeState = "failed"      // it was refused, or will not become available by itself
	ObjectPending     TreeState = "pending"     // the member has not reported it yet
	ObjectYielded     TreeState = "yielded"     // another placement owns it on the cluster
)

// Tree returns the objects of a placement (crp/NAME or rp/NAMESPACE/NAME) on all its clusters,
// or on one if cluster is not empty. The error is an *UnknownError if one of them does not
// exist. A deleted placement has a tree until it is removed from all clusters.
func (r *Report) Tree(name, cluster string) (*Tree, error) {
	var entry *placementEntry
	for e := range r.entries.Values() {
		if e.detail.Placement == name {
			entry = e
		}
	}
	if entry == nil {
		_, err := r.inGit(name)
		return nil, err
	}
	p := entry.of
	t := &Tree{APIVersion: TreeVersion, Placement: name, Origin: entry.detail.Origin, UpdateRun: entry.detail.UpdateRun, Clusters: []TreeCluster{}}
	clusters := p.Clusters
	if cluster != "" {
		c := p.On(cluster)
		if c == nil {
			return nil, unknown("cluster", cluster, p.Clusters, func(c *plan.OnCluster) string { return c.Binding.Cluster })
		}
		clusters = []*plan.OnCluster{c}
	}
	for _, c := range clusters {
		of := treeCluster(c)
		of.Stage = stageOf(p.Record.Runs, t.UpdateRun, of.Cluster)
		t.Clusters = append(t.Clusters, of)
	}
	return t, nil
}

// stageOf returns the stage of an update run that a cluster is in; empty if there is none.
func stageOf(runs []placement.Run, of *updaterun.Run, cluster string) string {
	for i := range runs {
		if of == nil || runs[i].Name != of.Name {
			continue
		}
		for _, s := range runs[i].Stages {
			if slices.Contains(s.Clusters, cluster) {
				return s.Name
			}
		}
	}
	return ""
}

// treeCluster returns what the placement has on one cluster.
func treeCluster(c *plan.OnCluster) TreeCluster {
	out := TreeCluster{Cluster: c.Binding.Cluster, Commit: c.Binding.Assigned.Commit, Objects: []TreeObject{}}
	content := assignedContent(c)
	if content == nil {
		return out
	}
	seen := c.LastKnown()
	states := map[api.ID]*protocol.ObjectState{}
	if seen != nil {
		for i := range seen.Exceptions {
			states[seen.Exceptions[i].ID] = &seen.Exceptions[i]
		}
	}
	for _, m := range content.Manifests {
		out.Objects = append(out.Objects, treeObject(c, m, seen, states[m.ID]))
	}
	for _, refused := range content.Refused {
		out.Objects = append(out.Objects, TreeObject{refused.Identifier(), ObjectFailed, refused.Message()})
	}
	return out
}

// assignedContent returns the content assigned to the cluster; nil if there is none or it is
// not known.
func assignedContent(c *plan.OnCluster) *work.Rendered {
	before := c.PreviousContent
	switch {
	case c.Binding.Removing || !c.Binding.HasRevision():
		return nil
	case c.UpToDate() && c.Err == nil && c.Content.Hash != "":
		return c.Content
	case before != nil && before.Hash == c.Binding.Assigned.Hash:
		return before
	}
	return nil
}

// treeObject returns one object. An object that a complete report does not mention is
// available.
func treeObject(c *plan.OnCluster, m *work.Manifest, seen *protocol.WorkState, s *protocol.ObjectState) TreeObject {
	out := TreeObject{ResourceIdentifier: m.Identifier(), State: ObjectAvailable}
	i := slices.IndexFunc(c.Unusual().Yielded, func(y plan.Yielded) bool { return y.ID == m.ID })
	switch {
	case i >= 0:
		out.State, out.Message = ObjectYielded, "the placement "+c.Unusual().Yielded[i].To.String()+" has it on this cluster"
	case s != nil && !s.Applied.OK:
		out.State, out.Message = ObjectProgressing, s.Applied.Message()
		if s.HasFailed() || c.TimedOut {
			out.State = ObjectFailed
		}
	case s != nil && !s.Available.OK:
		out.State, out.Message = ObjectProgressing, s.Available.Message()
		if s.HasFailed() || c.TimedOut {
			out.State, out.Message = ObjectFailed, cmp.Or(s.Failure, s.Available.Message())
		}
	case seen == nil || !seen.Done:
		out.State = ObjectPending
	}
	return out
}
