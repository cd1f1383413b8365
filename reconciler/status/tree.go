package status

import (
	"cmp"
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// TreeVersion names the schema of a tree in JSON. What has this version keeps its
// fields; new ones may come.
const TreeVersion = "gitfleet.dev/tree/v1"

// A Tree is one placement with its clusters, and each with its objects.
type Tree struct {
	APIVersion string `json:"apiVersion"`
	// Placement is crp/NAME or rp/NAMESPACE/NAME, Origin where it stands; empty if it is
	// gone from the repository.
	Placement string        `json:"placement"`
	Origin    string        `json:"origin"`
	Clusters  []TreeCluster `json:"clusters"`
}

// A TreeCluster is what a placement has on one cluster.
type TreeCluster struct {
	Cluster string `json:"cluster"`
	// Commit brought what it shall hold there.
	Commit string `json:"commit,omitempty"`
	// Objects are what it was told to hold, in the order in which they are
	// applied; none if nobody can tell.
	Objects []TreeObject `json:"objects"`
}

// A TreeObject is one object on one cluster.
type TreeObject struct {
	api.ResourceIdentifier
	State TreeState `json:"state"`
	// Message is why it is not available.
	Message string `json:"message,omitempty"`
}

// A TreeState is how an object is.
type TreeState string

// The states of an object.
const (
	ObjectAvailable TreeState = "available"
	// ObjectProgressing: it is on its way to being available.
	ObjectProgressing TreeState = "progressing"
	// ObjectFailed: it is refused, or will not become available by itself.
	ObjectFailed TreeState = "failed"
	// ObjectPending: nobody has heard of it yet.
	ObjectPending TreeState = "pending"
	// ObjectYielded: another placement has it there.
	ObjectYielded TreeState = "yielded"
)

// Tree returns what a placement, named crp/NAME or rp/NAMESPACE/NAME, has where:
// on all its clusters, or, if cluster is not empty, on that one. The error is an
// *UnknownError if there is no such thing. A placement that is gone from the repository
// has a tree until it is removed from all clusters.
func (r *Report) Tree(name, cluster string) (*Tree, error) {
	i := slices.IndexFunc(r.told, func(t *told) bool { return t.detail.Placement == name })
	if i < 0 {
		_, err := r.asked(name)
		return nil, err
	}
	p := r.told[i].of
	t := &Tree{APIVersion: TreeVersion, Placement: name, Origin: r.told[i].detail.Origin, Clusters: []TreeCluster{}}
	var names []string
	for _, c := range p.Clusters {
		names = append(names, c.Binding.Cluster)
		if cluster == "" || cluster == c.Binding.Cluster {
			t.Clusters = append(t.Clusters, branch(c))
		}
	}
	if cluster != "" && len(t.Clusters) == 0 {
		return nil, &UnknownError{What: "cluster", Name: cluster, Exist: names}
	}
	return t, nil
}

// branch is what the placement has on one cluster.
func branch(c *plan.OnCluster) TreeCluster {
	out := TreeCluster{Cluster: c.Binding.Cluster, Commit: c.Binding.Assigned.Commit, Objects: []TreeObject{}}
	content := assigned(c)
	if content == nil {
		return out
	}
	seen := c.Seen()
	states := map[api.ID]*ledger.ObjectState{}
	if seen != nil {
		for i := range seen.Exceptions {
			states[seen.Exceptions[i].ID] = &seen.Exceptions[i]
		}
	}
	for _, m := range content.Manifests {
		out.Objects = append(out.Objects, leaf(c, m, seen, states[m.ID]))
	}
	for _, refused := range content.Refused {
		out.Objects = append(out.Objects, TreeObject{refused.Identifier(), ObjectFailed, refused.Message})
	}
	return out
}

// assigned is what the cluster has been told to hold; nil if that is nothing, or
// if nobody can tell.
func assigned(c *plan.OnCluster) *work.Rendered {
	before := c.HeldContent()
	switch {
	case c.Binding.Removing || !c.Binding.Released():
		return nil
	case c.UpToDate() && c.Err == nil && c.Content.Hash != "":
		return &c.Content
	case before != nil && before.Hash == c.Binding.Assigned.Hash:
		return before
	}
	return nil
}

// leaf is one object. What a member does not speak of, once it has tried all, is
// available.
func leaf(c *plan.OnCluster, m *work.Manifest, seen *ledger.WorkSeen, s *ledger.ObjectState) TreeObject {
	out := TreeObject{ResourceIdentifier: m.Identifier(), State: ObjectAvailable}
	i := slices.IndexFunc(c.Yielded, func(y plan.Yielded) bool { return y.ID == m.ID })
	switch {
	case i >= 0:
		out.State, out.Message = ObjectYielded, "the placement "+c.Yielded[i].To.String()+" has it on this cluster"
	case s != nil && !s.Applied.OK:
		out.State, out.Message = ObjectProgressing, s.Applied.Message
		if s.HasFailed() || c.TimedOut {
			out.State = ObjectFailed
		}
	case s != nil && !s.Available.OK:
		out.State, out.Message = ObjectProgressing, s.Available.Message
		if s.HasFailed() || c.TimedOut {
			out.State, out.Message = ObjectFailed, cmp.Or(s.Failure, s.Available.Message)
		}
	case seen == nil || !seen.Done:
		out.State = ObjectPending
	}
	return out
}
