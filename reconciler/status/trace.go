package status

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// TraceVersion is the schema of a trace in JSON. Fields of this version are never removed; new
// ones may be added.
const TraceVersion = "gitfleet.dev/trace/v1"

// A Trace says where an object on a cluster comes from, and why it is there.
type Trace struct {
	APIVersion string `json:"apiVersion"`
	api.ResourceIdentifier
	Cluster         string    `json:"cluster"`
	Origin          string    `json:"origin"`                    // file:line in the repository
	Kustomization   string    `json:"kustomization,omitempty"`   // the file it was built from; empty for a plain manifest
	Placement       string    `json:"placement"`                 // what placed it on the cluster
	PlacementOrigin string    `json:"placementOrigin,omitempty"` // the placement's position in the repository
	Why             string    `json:"why,omitempty"`             // why the placement is on the cluster
	Revision        string    `json:"revision"`                  // the commit of the assigned content
	Assigned        time.Time `json:"assigned,omitzero"`
	Waits           string    `json:"held,omitempty"`       // why Revision is not the newest
	Overrides       []string  `json:"overrides,omitempty"`  // those that select the object for this cluster
	Overridden      bool      `json:"overridden,omitempty"` // they changed it
	State           string    `json:"state"`
	Suspended       string    `json:"suspended,omitempty"`
	Drift           *Drift    `json:"drift,omitempty"`
	// Commit is the commit that last changed the object on the cluster; nil if it could not be
	// found, for the reason in Unknown.
	Commit  *TracedCommit `json:"commit,omitempty"`
	Unknown string        `json:"unknown,omitempty"`
}

// A TracedCommit is the metadata of a commit.
type TracedCommit struct {
	Hash    string    `json:"hash"`
	Author  string    `json:"author,omitempty"`
	Signer  string    `json:"signer,omitempty"` // verified; empty if signatures are not asked for
	Time    time.Time `json:"time,omitzero"`
	Subject string    `json:"subject,omitempty"`
}

// Trace returns the origin of an object on a cluster, without the commit that last changed it,
// which only the cluster knows. The kind may be any of its names. Without a namespace it is the object of that name in any namespace,
// unless one has none, and without a cluster that on the only one that has such an object. The error is an *UnknownError if the object
// does not exist, and an *AmbiguousError if several objects or clusters are meant.
func (r *Report) Trace(wanted api.ObjectName, cluster string) (*Trace, *api.Object, error) {
	var members []*hub.Cluster
	if r.plan != nil {
		members = r.plan.Members
	}
	if cluster == "" {
		var on []string
		for _, c := range members {
			if len(r.named(wanted, c.Name)) > 0 {
				on = append(on, c.Name)
			}
		}
		if len(on) > 1 {
			return nil, nil, &AmbiguousError{Name: wanted.String(), Clusters: on}
		}
		if len(on) == 0 {
			return nil, nil, &UnknownError{What: "object", Name: wanted.String(), Exist: r.similar(wanted, members)}
		}
		cluster = on[0]
	}
	at := slices.IndexFunc(members, func(c *hub.Cluster) bool { return c.Name == cluster })
	if at < 0 {
		return nil, nil, unknown("cluster", cluster, members, func(c *hub.Cluster) string { return c.Name })
	}
	found := r.named(wanted, cluster)
	if len(found) > 1 {
		return nil, nil, &AmbiguousError{Name: wanted.String(), Objects: slices.SortedFunc(maps.Keys(found), api.ID.Compare)}
	}
	for _, only := range found {
		return r.trace(only.by, only.as, cluster), only.as.Object, nil
	}
	return nil, nil, &UnknownError{What: "object on cluster " + cluster + ",", Name: wanted.String(), Exist: r.similar(wanted, members[at:at+1])}
}

// A placedObject is an object of a cluster, with what places it there.
type placedObject struct {
	by *work.Work
	as *work.Manifest
}

// named returns the objects on a cluster that a name may mean: without a namespace those in any, if there is none without.
func (r *Report) named(wanted api.ObjectName, cluster string) map[api.ID]placedObject {
	exact, within := map[api.ID]placedObject{}, map[api.ID]placedObject{}
	for _, w := range r.plan.Works[cluster] {
		for _, m := range w.Manifests {
			if wanted.Means(m.ID) {
				exact[m.ID] = placedObject{w, m}
			} else if wanted.Namespace == "" && (api.ObjectName{Kind: wanted.Kind, Namespace: m.ID.Namespace, Name: wanted.Name}).Means(m.ID) {
				within[m.ID] = placedObject{w, m}
			}
		}
	}
	if len(exact) == 0 {
		return within
	}
	return exact
}

// similar returns the objects on some clusters that have the wanted name or kind, sorted.
func (r *Report) similar(wanted api.ObjectName, members []*hub.Cluster) (names []string) {
	found := map[api.ID]bool{}
	for _, c := range members {
		for _, w := range r.plan.Works[c.Name] {
			for _, m := range w.Manifests {
				if m.ID.Name == wanted.Name || api.KindCalled(m.ID.GroupKind(), wanted.Kind) {
					found[m.ID] = true
				}
			}
		}
	}
	for id := range found {
		names = append(names, id.String())
	}
	slices.Sort(names)
	return names
}

// An AmbiguousError says that several objects have the requested name, or that several clusters have such an object.
type AmbiguousError struct {
	Name     string
	Objects  []api.ID // sorted
	Clusters []string // sorted
}

func (e *AmbiguousError) Error() string {
	if len(e.Clusters) > 0 {
		return fmt.Sprintf("%s is on the clusters %s; name one with --cluster", e.Name, firstOf(e.Clusters))
	}
	var namespaces, objects []string
	for _, id := range e.Objects {
		namespaces, objects = append(namespaces, id.Namespace), append(objects, id.ExactName().String())
	}
	slices.Sort(namespaces)
	if namespaces = slices.Compact(namespaces); len(namespaces) > 1 {
		return fmt.Sprintf("%s is in the namespaces %s; name one with -n", e.Name, strings.Join(namespaces, ", "))
	}
	return fmt.Sprintf("%s may be %s: write one of these", e.Name, strings.Join(objects, " or "))
}

func (r *Report) trace(w *work.Work, m *work.Manifest, cluster string) *Trace {
	t := &Trace{
		APIVersion: TraceVersion, ResourceIdentifier: m.Identifier(), Cluster: cluster,
		Origin: m.Origin.String(), Kustomization: m.Origin.Kustomization,
		Placement: w.Placement.String(), Revision: w.Revision.Commit, Suspended: w.SuspendedReason(m.ID), State: "not known yet",
	}
	for i := range r.Drifts {
		d := &r.Drifts[i]
		if d.Cluster == cluster && d.Placement == t.Placement && d.ID() == m.ID && matters(d, t.Drift) {
			t.Drift = d
		}
	}
	p := r.plan.Placement(w.Placement)
	if p == nil {
		return t
	}
	if p.Spec != nil {
		t.PlacementOrigin = p.Spec.Origin.String()
	}
	if c := p.On(cluster); c != nil {
		t.Why, t.Waits, t.Assigned = reasonOf(p, c), c.Waits, c.Binding.AssignedAt
		t.State = stateOf(c.LastKnown(), m.ID)
		if c.UpToDate() {
			t.Overrides, t.Overridden = r.overrides(p, c, m)
		}
	}
	return t
}

// matters reports whether a drift of an object says more about it than another one, which may be nil: an
// object may have additions beside a change.
func matters(d, other *Drift) bool {
	return other == nil || d.Differs() && !other.Differs() || d.Differs() == other.Differs() && other.Addition
}

// reasonOf is why the placement is on the cluster.
func reasonOf(p *plan.Placement, c *plan.OnCluster) string {
	for _, d := range p.Schedule.Decisions {
		if d.Cluster == c.Binding.Cluster && d.Selected {
			return d.Reason
		}
	}
	return c.Binding.Reason
}

// stateOf describes the state of an object.
func stateOf(seen *protocol.WorkState, id api.ID) string {
	if seen == nil {
		return "the cluster has not reported this revision yet"
	}
	for i := range seen.Exceptions {
		switch o := &seen.Exceptions[i]; {
		case o.ID != id:
		case !o.Applied.OK && o.Pending:
			return "not applied yet: " + o.Applied.Message()
		case !o.Applied.OK:
			return "not applied: " + o.Applied.Message()
		case o.HasFailed():
			return "applied, and failed: " + o.Failure
		case !o.Available.OK:
			return "applied, not available yet: " + o.Available.Message()
		default:
			return "applied and available; it differs from Git"
		}
	}
	if !seen.Done {
		return "being applied"
	}
	return "applied and available"
}

// overrides returns the overrides of the cluster that select an object, and whether they
// changed it.
func (r *Report) overrides(p *plan.Placement, c *plan.OnCluster, m *work.Manifest) (names []string, changed bool) {
	is := func(group, kind, name string) bool {
		return m.ID.Group == group && m.ID.Kind == kind && m.ID.Name == name
	}
	for _, o := range r.InForce.ClusterOverrides {
		within := func(s api.ResourceSelectorTerm) bool {
			return is(s.Group, s.Kind, s.Name) || s.Group == "" && s.Kind == "Namespace" && s.Name != "" && s.Name == m.ID.Namespace
		}
		if slices.Contains(c.Content.ClusterOverrides, o.Name) && slices.ContainsFunc(o.Spec.ClusterResourceSelectors, within) {
			names = append(names, "ClusterResourceOverride "+o.Name+" ("+o.Origin.String()+")")
		}
	}
	for _, o := range r.InForce.Overrides {
		selects := func(s api.ResourceSelector) bool { return is(s.Group, s.Kind, s.Name) }
		if o.Namespace == m.ID.Namespace && slices.Contains(c.Content.Overrides, api.NamespacedName{Namespace: o.Namespace, Name: o.Name}) && slices.ContainsFunc(o.Spec.ResourceSelectors, selects) {
			names = append(names, "ResourceOverride "+o.Namespace+"/"+o.Name+" ("+o.Origin.String()+")")
		}
	}
	for _, o := range p.Selection.Objects {
		if o.ID == m.ID {
			return names, o.Hash != m.Hash
		}
	}
	return names, false
}

// TraceDrift returns the origin of the object of a drift, and the object as Git wants it there; nil if the object is no
// longer placed there, or if the content assigned to the cluster is not known yet.
func (r *Report) TraceDrift(d *Drift) (*Trace, *work.Manifest) {
	if r.plan == nil {
		return nil, nil
	}
	id := d.ID()
	for _, w := range r.plan.Works[d.Cluster] {
		if w.Placement.String() != d.Placement {
			continue
		}
		for _, m := range w.Manifests {
			if m.ID == id {
				t := r.trace(w, m, d.Cluster)
				t.Drift = d
				return t, m
			}
		}
	}
	return nil, nil
}

// A Holder is a cluster on which an object is placed, with the placement.
type Holder struct {
	Cluster   string
	Placement api.PlacementKey
}

// HoldersOf returns the clusters that get an object from the commit in force, by cluster and
// placement, whether or not the rollout has reached them. unknown are clusters of the same
// placements whose content cannot be rendered.
func (r *Report) HoldersOf(id api.ID) (holders []Holder, unknown []string) {
	if r.plan == nil {
		return nil, nil
	}
	is := func(m *work.Manifest) bool { return m.ID == id }
	for p := range r.plan.Placements.Values() {
		before, failed := len(holders), []string(nil)
		for _, c := range p.Clusters {
			switch {
			case !scheduled(c) || c.Leaves(id):
			case c.Err != nil || c.Content.Hash == "":
				failed = append(failed, c.Binding.Cluster)
			case slices.ContainsFunc(c.Content.Manifests, is):
				holders = append(holders, Holder{c.Binding.Cluster, p.Key})
			}
		}
		if len(holders) > before {
			unknown = append(unknown, failed...)
		}
	}
	slices.SortFunc(holders, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Placement.String(), b.Placement.String()))
	})
	return holders, unknown
}

// PlacedDigest identifies what HoldersOf returns for all objects.
func (r *Report) PlacedDigest() string {
	if r.plan == nil {
		return ""
	}
	h := sha256.New()
	for p := range r.plan.Placements.Values() {
		fmt.Fprintln(h, p.Key)
		for _, c := range p.Clusters {
			if scheduled(c) {
				fmt.Fprintln(h, c.Binding.Cluster, c.Content.Hash, c.Err != nil, len(c.Unusual().Yielded))
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// scheduled reports whether a placement stays on a cluster.
func scheduled(c *plan.OnCluster) bool { return !c.Binding.Removing && !c.Binding.Unscheduled }
