package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A planDeletion is an object that a cluster would delete.
type planDeletion struct {
	Cluster string `json:"cluster"`
	planObject
	// Held is why it would not be deleted until a commit allows it; empty if it would.
	Held string `json:"held,omitempty"`
}

func (o planObject) id() api.ID {
	return api.ID{Group: o.Group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
}

// compared returns the plan and its differences from the earlier one, if there is one.
func (o *outlook) compared(brake member.Brake) (planDocument, planChanges) {
	d := o.describe()
	changes := compare(o.before, d)
	if !changes.compared {
		return d, changes
	}
	d.Deletions = []planDeletion{}
	for i := range changes.clusters {
		if c := &changes.clusters[i]; !c.gone { // a cluster that leaves the fleet keeps its objects
			c.deleted = o.deletions(c, brake)
			d.Deletions = append(d.Deletions, c.deleted...)
		}
	}
	return d, changes
}

// deletions lists the objects that a cluster would delete, in the order of c.lost, and
// why the daemon would hold them, if it would. Objects of others are not known here.
func (o *outlook) deletions(c *clusterChange, brake member.Brake) []planDeletion {
	out := make([]planDeletion, 0, len(c.lost))
	going := map[string][]api.ID{} // objects whose deletion deletes others, by placement
	for _, lost := range c.lost {
		out = append(out, planDeletion{Cluster: c.cluster, planObject: lost})
		if id := lost.id(); work.Contains(id.GroupKind()) {
			going[lost.Placement] = append(going[lost.Placement], id)
		}
	}
	var counted []*planDeletion
	for i := range out {
		w := o.losing(out[i].Placement, c.cluster)
		if out[i].Held = w.Held(out[i].id(), going[out[i].Placement]); out[i].Held == "" && !w.AllowDelete {
			counted = append(counted, &out[i])
		}
	}
	at := slices.IndexFunc(o.before.Clusters, func(b planCluster) bool { return b.Name == c.cluster })
	if at < 0 {
		return out
	}
	why := brake.TooMuch(len(counted), len(o.before.Clusters[at].Objects))
	for _, d := range counted {
		d.Held = why
	}
	return out
}

// losing returns the work of a placement on a cluster where it loses objects. What a
// renamed placement loses goes under its earlier key.
func (o *outlook) losing(name, cluster string) work.Work {
	key, err := api.ParsePlacement(name)
	for _, r := range o.renames {
		if w := o.work(r.From, cluster); r.To == key && w != nil {
			return *w
		}
	}
	w := work.Work{Placement: key, Remove: true, AllowDelete: err == nil && plan.Allows(o.snapshot.Commit.Message, key)}
	at := slices.IndexFunc(o.plan.Placements, func(p *plan.Placement) bool { return p.Key == key })
	if at < 0 {
		return w
	}
	p := o.plan.Placements[at]
	if c := p.On(cluster); c == nil || c.Binding.Unscheduled || c.Binding.Removing {
		if !w.AllowDelete {
			w.Holds = p.RemovalHolds(cluster)
		}
		return w
	}
	if planned := o.work(key, cluster); planned != nil {
		return *planned
	}
	return w
}

// work returns what a cluster shall hold for a placement; nil if nothing is planned.
func (o *outlook) work(key api.PlacementKey, cluster string) *work.Work {
	works := o.plan.Works[cluster]
	i := slices.IndexFunc(works, func(w work.Work) bool { return w.Placement == key })
	if i < 0 {
		return nil
	}
	return &works[i]
}

// refusal says why the daemon would refuse the commit because no placement or no
// cluster of the earlier plan is left; empty if it would not.
func (o *outlook) refusal() string {
	if o.before == nil {
		return ""
	}
	l := ledger.New()
	for _, p := range o.before.Placements {
		l.Note(api.PlacementKey{Namespace: p.Namespace, Name: p.Name}, ledger.Placement{})
	}
	for _, c := range o.before.Clusters {
		l.Fold(ledger.ClusterSeen{Cluster: c.Name, Healthy: true})
	}
	return plan.Empties(o.snapshot, l)
}

// deletionsText counts deletions, and says how those that would be held are allowed.
func deletionsText(all []planDeletion) string {
	clusters, placements := map[string]bool{}, []string{}
	held := 0
	for _, d := range all {
		clusters[d.Cluster] = true
		if d.Held == "" {
			continue
		}
		held++
		if !slices.Contains(placements, d.Placement) {
			placements = append(placements, d.Placement)
		}
	}
	text := fmt.Sprintf("%s on %s would be deleted", number(len(all), "object"), number(len(clusters), "cluster"))
	if held == 0 {
		return text + "; none of that would be held."
	}
	slices.Sort(placements)
	return fmt.Sprintf("%s; %d would be held until the message of a commit has the trailer\n  %s",
		text, held, status.AllowTrailer(strings.Join(placements, ", ")))
}

// heldFindings returns a warning for each placement and reason for which deletions
// would be held.
func (o *outlook) heldFindings(all []planDeletion) []finding {
	type reason struct{ placement, why string }
	by := map[reason][]planDeletion{}
	var reasons []reason
	for _, d := range all {
		if d.Held == "" {
			continue
		}
		r := reason{d.Placement, d.Held}
		if by[r] == nil {
			reasons = append(reasons, r)
		}
		by[r] = append(by[r], d)
	}
	var out []finding
	for _, r := range reasons {
		var clusters []string
		for _, d := range by[r] {
			if !slices.Contains(clusters, d.Cluster) {
				clusters = append(clusters, d.Cluster)
			}
		}
		p := hub.Problem{Severity: hub.Warning, Message: fmt.Sprintf(
			"%s: deleting %s on %s would be held, such as %s: %s; %s",
			r.placement, number(len(by[r]), "object"), fewOf(clusters), by[r][0].id(), r.why, status.HeldAdvice(r.placement))}
		for _, spec := range o.snapshot.Placements {
			if spec.Key.String() == r.placement {
				p.Origin = spec.Origin
			}
		}
		out = append(out, finding{p, heldDeletions})
	}
	return out
}

// unclearFindings returns a warning for each new placement of which it is not certain
// whether it is another one renamed.
func (o *outlook) unclearFindings() []finding {
	var out []finding
	for _, p := range o.plan.Placements {
		if p.Spec != nil && p.Unclear != "" {
			out = append(out, finding{hub.Problem{Origin: p.Spec.Origin, Severity: hub.Warning, Message: p.Unclear}, ambiguousRename})
		}
	}
	return out
}

// examineDeletions finds which deletions of a commit would be held and which renames are
// ambiguous, and says which placements it renames and how much it deletes.
func (in outlookInput) examineDeletions(s *hub.Snapshot, brake member.Brake) (found []finding, text string, err error) {
	o, err := in.about(s)
	if err != nil {
		return nil, "", err
	}
	if why := o.refusal(); why != "" {
		return []finding{{hub.Problem{Severity: hub.Error, Message: why}, invalid}}, "", nil
	}
	d, _ := o.compared(brake)
	for _, r := range o.renames {
		text += renameText(r.From.String(), r.To.String()) + "\n"
	}
	if len(d.Deletions) > 0 {
		text += deletionsText(d.Deletions) + "\n"
	}
	return append(o.unclearFindings(), o.heldFindings(d.Deletions)...), text, nil
}
