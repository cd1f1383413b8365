package plan

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
)

// Some deletions follow from a mistake far more often than from a wish. They are
// held, whatever their number, until a commit's trailer allows them. All of that
// is derived from the commit in force, and nothing is remembered: a restart or a
// lost commit releases nothing.

var (
	namespaceKind  = api.GroupKind{Kind: "Namespace"}
	definitionKind = api.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	claimKind      = api.GroupKind{Kind: "PersistentVolumeClaim"}
)

// guarded are the kinds whose deletion takes more along than the object itself.
var guarded = []work.Hold{
	{Kind: namespaceKind, Why: "deleting a Namespace deletes everything in it"},
	{Kind: definitionKind, Why: "deleting a CustomResourceDefinition deletes all objects of its kind"},
	{Kind: claimKind, Why: "deleting a PersistentVolumeClaim can delete its data"},
}

// wrapping are the kinds that may deliver objects of any other kind.
var wrapping = []api.GroupKind{
	{Group: api.PlacementGroup, Kind: "ClusterResourceEnvelope"},
	{Group: api.PlacementGroup, Kind: "ResourceEnvelope"},
	{Kind: "ConfigMap"},
}

// nowhere holds the objects of a placement on a cluster that it leaves while it is on
// no other cluster.
var nowhere = []work.Hold{{Why: "the placement has no cluster left"}}

// RemovalHolds returns the holds on the objects of the placement on a cluster that it
// leaves; nil if the placement was deleted, or is on another cluster and names no cluster
// that does not exist. A cluster that has left the fleet is not held by its own name.
func (p *Placement) RemovalHolds(cluster string) []work.Hold {
	switch {
	case p.Spec == nil:
		return nil
	case !p.placed():
		return nowhere
	case !p.registered(cluster):
		return nil
	}
	if policy := p.Spec.Spec.Policy; policy != nil {
		for _, name := range policy.ClusterNames {
			if !p.registered(name) {
				return []work.Hold{{Why: fmt.Sprintf("spec.policy.clusterNames names %q, and there is no such MemberCluster", name)}}
			}
		}
	}
	return nil
}

// registered reports whether a cluster is a member of the fleet. It is true of all clusters
// if the placement was not scheduled.
func (p *Placement) registered(cluster string) bool {
	return p.Request == nil || slices.ContainsFunc(p.Request.Clusters, func(c placement.Cluster) bool { return c.Name == cluster })
}

// deletionHolds are those of a placement, made when they are first needed: where its
// content is, where none of it is left, and where it has a new name.
type deletionHolds struct {
	content, emptied, renamed []work.Hold
}

// holdsFor returns what keeps the deletions of a cluster's work from being carried out.
func (t *thinker) holdsFor(p *Placement, cluster string, w *work.Work) []work.Hold {
	h := &t.now.holds
	switch {
	case w.AllowDelete || w.Keep:
		return nil
	case p.Spec == nil && p.Record.Into != (api.PlacementKey{}):
		if h.renamed == nil {
			h.renamed = t.renameHolds()
		}
		return h.renamed
	case p.Spec == nil:
		return nil
	case w.Remove:
		return p.RemovalHolds(cluster)
	case len(w.Manifests) == 0:
		if h.emptied == nil {
			h.emptied = []work.Hold{{Why: emptied(p)}}
		}
		return h.emptied
	}
	if h.content == nil {
		h.content = slices.Concat(unmatched(p, t.now.now), guarded)
	}
	return h.content
}

// renameHolds returns the holds on the objects that a renamed placement still holds under
// its earlier name. What goes is what its new name does not select, and is held as it
// would be under the new name.
func (t *thinker) renameHolds() []work.Hold {
	successor := t.now.successor
	if successor == nil || successor.p.Spec == nil {
		return guarded
	}
	p := successor.p
	if p.Request != nil && !p.placed() {
		return nowhere
	}
	return slices.Concat(unmatched(p, successor.now), guarded)
}

// placed reports whether the placement has a cluster on which it stays.
func (p *Placement) placed() bool {
	return slices.ContainsFunc(p.Clusters, func(c *OnCluster) bool { return !c.Binding.Unscheduled && !c.Binding.Removing })
}

// emptied says why nothing is left of a placement's content.
func emptied(p *Placement) string {
	if len(p.Selection.Unmatched) == 0 {
		return "nothing is left of the placement's content"
	}
	i := p.Selection.Unmatched[0]
	return "the placement selects nothing: " + selectorText(p, i) + " matches nothing"
}

// unmatched holds what selectors may have selected that match nothing any more.
// Nobody remembers what that was: it is told by the kind, and whatever is in a
// namespace that is still selected was selected with that.
func unmatched(p *Placement, now *prepared) []work.Hold {
	var out []work.Hold
	for _, i := range p.Selection.Unmatched {
		term := p.Spec.Spec.ResourceSelectors[i]
		kind := api.GroupKind{Group: term.Group, Kind: term.Kind}
		h := work.Hold{Kind: kind, Why: selectorText(p, i) + " matches nothing, and may have selected it before"}
		switch {
		case kind == namespaceKind && term.SelectionScope != api.NamespaceOnly:
			h.Kind, h.Except = api.GroupKind{}, now.namespaces()
		case slices.Contains(wrapping, kind):
			h.Kind = api.GroupKind{}
		}
		out = append(out, h)
	}
	return out
}

// namespaces returns the names of the Namespaces in the content, sorted.
func (p *prepared) namespaces() []string {
	var names []string
	for _, m := range p.renderer.Manifests() {
		if m.ID.GroupKind() == namespaceKind {
			names = append(names, m.ID.Name)
		}
	}
	slices.Sort(names)
	return names
}

// selectorText names a selector by its place and by what it asks for.
func selectorText(p *Placement, i int) string {
	term := p.Spec.Spec.ResourceSelectors[i]
	what := term.Kind
	switch {
	case term.Name != "":
		what += fmt.Sprintf(" %q", term.Name)
	case term.LabelSelector != nil:
		what += " with " + metav1.FormatLabelSelector(term.LabelSelector)
	}
	return fmt.Sprintf("spec.resourceSelectors[%d] (%s)", i, what)
}

// permit notes that the commit in force allows what the placement deletes. That
// is so for as long as the placement keeps this content, whatever commits follow:
// clusters get it one after the other.
func (t *thinker) permit(p *Placement) {
	before := p.Record.AllowedContent
	switch {
	case t.now.allowed:
		p.Record.AllowedContent = t.now.now.recipeOf()
	case before != "" && before != t.now.now.recipeOf():
		p.Record.AllowedContent = ""
	}
	p.Noted = p.Noted || p.Record.AllowedContent != before
}

// permitted reports whether a commit allows what a cluster deletes on its way to
// the newest content.
func (t *thinker) permitted(p *Placement, latest bool) bool {
	return t.now.allowed || latest && p.Record.AllowedContent != ""
}
