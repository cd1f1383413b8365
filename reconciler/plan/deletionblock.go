package plan

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
)

// Some deletions are usually mistakes. They are blocked, whatever their number, until a trailer in a commit message
// allows them. Blocks are derived from the commit in force and not stored, so that neither a restart nor a lost commit
// lifts one.

var (
	namespaceKind  = api.GroupKind{Kind: "Namespace"}
	definitionKind = api.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	claimKind      = api.GroupKind{Kind: "PersistentVolumeClaim"}
)

// guardedKinds are the kinds whose deletion deletes more than the object itself.
var guardedKinds = []work.DeletionBlock{
	{Kind: namespaceKind, Why: "deleting a Namespace deletes everything in it"},
	{Kind: definitionKind, Why: "deleting a CustomResourceDefinition deletes all objects of its kind"},
	{Kind: claimKind, Why: "deleting a PersistentVolumeClaim can delete its data"},
}

// envelopeKinds are the kinds that can deliver objects of any other kind.
var envelopeKinds = []api.GroupKind{
	{Group: api.PlacementGroup, Kind: "ClusterResourceEnvelope"},
	{Group: api.PlacementGroup, Kind: "ResourceEnvelope"},
	{Group: api.OverlayGroup, Kind: "ClusterOverlay"},
	{Group: api.OverlayGroup, Kind: "Overlay"},
	{Group: api.OverlayGroup, Kind: "ClusterHelmChart"},
	{Group: api.OverlayGroup, Kind: "HelmChart"},
	{Kind: "ConfigMap"},
}

// noClusterLeft blocks the deletions on a cluster that a placement leaves without being on any other.
var noClusterLeft = []work.DeletionBlock{{Why: "the placement has no cluster left"}}

// RemovalBlocks returns the blocks for the objects of the placement on a cluster that it leaves; nil if the placement was
// deleted, or if it is on another cluster and its policy names no cluster that does not exist. On a cluster
// that has left the fleet nothing is blocked because of its own name.
func (p *Placement) RemovalBlocks(cluster string) []work.DeletionBlock {
	switch {
	case p.Spec == nil:
		return nil
	case !p.hasCluster():
		return noClusterLeft
	case !p.registered(cluster):
		return nil
	}
	if policy := p.Spec.Spec.Policy; policy != nil {
		for _, name := range policy.ClusterNames {
			if !p.registered(name) {
				return []work.DeletionBlock{{Why: fmt.Sprintf("spec.policy.clusterNames names %q, and there is no such MemberCluster", name)}}
			}
		}
	}
	return nil
}

// otherNameBlocks blocks the deletions on a cluster that a placement leaves while another member is the same
// cluster: the placement may be meant to stay there under that name, under which nothing is written.
func otherNameBlocks(p *Placement, cluster string, sameAs func(cluster string) string) []work.DeletionBlock {
	if p.Request == nil || !p.registered(cluster) {
		return nil
	}
	for _, c := range p.Request.Clusters {
		if sameAs(c.Name) == cluster {
			return []work.DeletionBlock{{Why: fmt.Sprintf("%s is the same cluster as %s; remove one of the two MemberClusters from the repository, or correct the kubeconfig", c.Name, cluster)}}
		}
	}
	return nil
}

// unidentifiedBlocks blocks the deletions on a cluster that a placement leaves while its policy names a member of which it is not
// known yet which cluster it is: it may be the same one.
func unidentifiedBlocks(p *Placement, identified func(cluster string) bool) []work.DeletionBlock {
	if p.Spec.Spec.Policy == nil {
		return nil
	}
	for _, name := range p.Spec.Spec.Policy.ClusterNames {
		if p.registered(name) && !identified(name) {
			return []work.DeletionBlock{{Why: fmt.Sprintf("spec.policy.clusterNames names %q, which has not answered yet and may be the same cluster", name)}}
		}
	}
	return nil
}

// identified reports whether a member has ever answered, so that it is known which cluster it is.
func (pl *planner) identified(cluster string) bool {
	c := pl.Ledger.Cluster(cluster)
	return c != nil && !c.Joined.IsZero()
}

// deletionBlocksFor returns the deletions by a work that need a commit which allows them.
func (pl *placementPlanner) deletionBlocksFor(p *Placement, cluster string, w *work.Work) []work.DeletionBlock {
	switch {
	case w.AllowDelete || w.Keep:
		return nil
	case p.Spec == nil && p.Record.Into != (api.PlacementKey{}):
		return pl.renameBlocks()
	case p.Spec == nil:
		return nil
	case w.Remove:
		return slices.Concat(p.RemovalBlocks(cluster), otherNameBlocks(p, cluster, pl.planner.Ledger.SameAs), unidentifiedBlocks(p, pl.planner.identified))
	case len(w.Manifests) == 0:
		return []work.DeletionBlock{{Why: emptiedReason(p)}}
	}
	blocks := contentBlocks(p, pl.current.prepared)
	if unreadable := append(documentBlocks(pl.planner.InForce), unreadableBlocks(w.Manifests)...); len(unreadable) > 0 {
		return append(unreadable, blocks...)
	}
	return blocks // shared by all clusters, in most placements
}

// successorMayDelete reports whether deletions are allowed under the new key of a renamed placement, on a cluster that
// is assigned the newest content. Objects that the cluster still holds under the earlier key are deleted on the way to
// that content.
func (pl *placementPlanner) successorMayDelete(cluster string) bool {
	if pl.current.successor == nil {
		return false
	}
	c := pl.current.successor.placement.On(cluster)
	return c != nil && !c.Binding.Removing && c.UpToDate() && c.DeleteAllowed
}

// successorInGit returns the result for the new key of a renamed placement; nil if the placement was not renamed, or if
// the new key is not in Git any more.
func (pl *placementPlanner) successorInGit() *result {
	if s := pl.current.successor; s != nil && s.placement.Spec != nil {
		return s
	}
	return nil
}

// renameBlocks returns the blocks for the objects that a renamed placement still has under its earlier key. The objects
// that would be deleted are those that the new key does not select, and the blocks are those of the new key.
func (pl *placementPlanner) renameBlocks() []work.DeletionBlock {
	successor := pl.successorInGit()
	if successor == nil {
		return guardedKinds
	}
	p := successor.placement
	if p.Request != nil && !p.hasCluster() {
		return noClusterLeft
	}
	blocks := contentBlocks(p, successor.prepared)
	if r := successor.prepared.renderer; r != nil {
		blocks = append(unreadableBlocks(r.Manifests()), blocks...)
	}
	return append(documentBlocks(pl.planner.InForce), blocks...)
}

// documentBlocks blocks all deletions of what a placement no longer selects while the commit has documents of which nothing says which
// objects they have.
func documentBlocks(s *hub.Snapshot) []work.DeletionBlock {
	if s == nil || len(s.Unreadable) == 0 {
		return nil
	}
	return []work.DeletionBlock{{Why: fmt.Sprintf("%s is encrypted as a whole and cannot be decrypted, and may have this object", s.Unreadable[0])}}
}

// unreadableBlocks returns a block for each kind of which an object cannot be decrypted. Its encrypted file may have
// renamed the object, and the old name must not be deleted before the new one is known.
func unreadableBlocks(manifests []*work.Manifest) []work.DeletionBlock {
	var out []work.DeletionBlock
	for _, m := range manifests {
		kind := m.ID.GroupKind()
		if m.Encrypted == nil || slices.ContainsFunc(out, func(b work.DeletionBlock) bool { return b.Kind == kind }) {
			continue
		}
		out = append(out, work.DeletionBlock{Kind: kind, Why: fmt.Sprintf("%s cannot be decrypted, and may be this object under another name", m.ID)})
	}
	return out
}

// emptiedReason says why the content of a placement has become empty.
func emptiedReason(p *Placement) string {
	if len(p.Selection.Unmatched) == 0 {
		return "nothing is left of the placement's content"
	}
	i := p.Selection.Unmatched[0]
	return "the placement selects nothing: " + selectorText(p, i) + " matches nothing"
}

// contentBlocks blocks deletions of guarded kinds, and of objects that a selector which matches nothing may have selected
// before. Earlier selections are not recorded, so objects are recognized by their kind; objects in a namespace that is
// still selected were selected with it.
func contentBlocks(p *Placement, now *prepared) []work.DeletionBlock {
	if len(p.Selection.Unmatched) == 0 {
		return guardedKinds
	}
	var out []work.DeletionBlock
	for _, i := range p.Selection.Unmatched {
		term := p.Spec.Spec.ResourceSelectors[i]
		kind := api.GroupKind{Group: term.Group, Kind: term.Kind}
		b := work.DeletionBlock{Kind: kind, Why: selectorText(p, i) + " matches nothing, and may have selected it before"}
		switch {
		case kind == namespaceKind && term.SelectionScope != api.NamespaceOnly:
			b.Kind, b.Except = api.GroupKind{}, now.namespaces()
		case slices.Contains(envelopeKinds, kind):
			b.Kind = api.GroupKind{}
		}
		out = append(out, b)
	}
	return append(out, guardedKinds...)
}

// namespaces lists the names of the namespaces in the content, sorted.
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

// selectorText returns a selector's field path and what it selects.
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

// updateAllowedContent records that the commit in force allows deletions of the placement. They stay allowed while the
// content of the placement is the same, whatever commits follow, because clusters get that content one after the other.
func (pl *placementPlanner) updateAllowedContent(p *Placement) {
	switch allowed := p.Record.AllowedContent; {
	case pl.current.deleteAllowed:
		p.Record.AllowedContent = pl.current.prepared.fingerprintOf()
	case allowed != "" && allowed != pl.current.prepared.fingerprintOf():
		p.Record.AllowedContent = ""
	}
}

// mayDelete reports whether a commit allows the deletions on the way to the newest content.
func (pl *placementPlanner) mayDelete(p *Placement, latest bool) bool {
	return pl.current.deleteAllowed || latest && p.Record.AllowedContent != ""
}
