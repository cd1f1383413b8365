package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/lookup"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// An inspection is the state of one member as it was read.
type inspection struct {
	name    string
	preview *member.Preview // nil if it does not answer
	seen    protocol.ClusterSeen
	err     error
}

// maxInspections is the maximum number of members that are inspected in parallel.
const maxInspections = 16

// compare inspects the members, computes the plan that the daemon would compute from their
// state, and compares both.
func (d *diffCommand) compare(ctx context.Context, cfg settings.Config, s *hub.Snapshot, daemon daemonState) (*diffDocument, error) {
	credentials, err := cfg.Members.Credentials()
	if err != nil {
		return nil, err
	}
	encoder := apply.NewEncoder(cfg.FleetName, cfg.Source.URL)
	inspections := make([]*inspection, len(s.Clusters))
	parallel(len(inspections), func(i int) {
		c := s.Clusters[i]
		inspections[i] = inspect(ctx, cfg.MemberConfig(c.Name, c.Annotations[api.ContextAnnotation], credentials, encoder))
	})
	defer func() {
		for _, l := range inspections {
			if l.preview != nil {
				l.preview.Close()
			}
		}
	}()
	fleet := protocol.Fleet{Name: cfg.FleetName, ID: daemon.fleet.ID, Source: cfg.Source.Identity()}
	if fleet.ID == "" && cfg.Source.URL == "" {
		fleet = protocol.Fleet{} // the fleet of the cluster cannot be told from another one of the same name
	}
	p := finalPlan(s, inspections, fleet)
	if err := d.find(p); err != nil {
		return nil, err
	}
	doc := d.document(s, p)
	if daemon.unknown != "" {
		doc.Notes = append(doc.Notes, "whether anything is suspended is not known: "+daemon.unknown)
	}
	found := make([]diffCluster, len(inspections))
	parallel(len(inspections), func(i int) { found[i] = d.changes(ctx, inspections[i], p, daemon) })
	for i, c := range found {
		if d.cluster == "" || d.cluster == inspections[i].name {
			doc.Clusters = append(doc.Clusters, c)
		}
	}
	if !doc.differs() && !doc.incomplete() && !d.placed(p) {
		return nil, fmt.Errorf("no placement delivers %s, and no member has it from one", d.object)
	}
	return doc, nil
}

// placed reports whether the requested object is delivered to a cluster; true if no object was
// requested.
func (d *diffCommand) placed(p *plan.Plan) bool {
	if d.object == (api.ObjectName{}) {
		return true
	}
	for _, works := range p.Works {
		for _, w := range works {
			if slices.ContainsFunc(w.Manifests, func(m *work.Manifest) bool { return d.object.Means(m.ID) }) {
				return true
			}
		}
	}
	return false
}

// parallel calls do with each number below n, several at a time.
func parallel(n int, do func(int)) {
	var group errgroup.Group
	group.SetLimit(maxInspections)
	for i := range n {
		group.Go(func() error { do(i); return nil })
	}
	group.Wait() // nothing returns an error
}

func inspect(ctx context.Context, cfg member.Config) *inspection {
	l := &inspection{name: cfg.Name}
	if l.preview, l.seen, l.err = member.Peek(ctx, cfg); l.err != nil {
		l.seen = protocol.ClusterSeen{Cluster: cfg.Name, At: time.Now(), Error: l.err.Error()}
	}
	return l
}

// finalPlan returns the daemon's plan once every rollout is finished. The state of the members
// serves as its ledger, as after the loss of a ledger.
func finalPlan(s *hub.Snapshot, looks []*inspection, fleet protocol.Fleet) *plan.Plan {
	now := time.Now()
	in := plan.Input{InForce: withoutRollouts(s), Ledger: ledger.New(), Now: now, Memo: plan.NewMemo(), Lost: map[string]error{}}
	in.Ledger.SetFleet(fleet)
	for _, l := range looks {
		in.Ledger.Fold(l.seen)
	}
	in.Ledger.ResolveID(uuid.NewString())
	for _, l := range looks {
		if why := in.Ledger.Refusal(l.name); why != "" && l.err == nil {
			l.err = errors.New(why)
			continue
		}
		for _, h := range l.seen.Inventories {
			in.Ledger.Fold(protocol.WorkSeen{Cluster: l.name, Placement: h.Placement, At: now, WorkState: protocol.WorkState{Revision: h.Revision, Done: true}})
			if h.Revision.Commit != s.Commit.Hash {
				in.Lost[h.Revision.Commit] = errNotRead
			}
		}
	}
	return plan.Resolve(in)
}

var errNotRead = errors.New("only one commit is read here")

// withoutRollouts returns a snapshot in which every rolling update takes one step. With
// External nothing is updated.
func withoutRollouts(s *hub.Snapshot) *hub.Snapshot {
	out, all := *s, intstr.FromString("100%")
	out.Placements = slices.Clone(s.Placements)
	for i, p := range out.Placements {
		one := *p
		if one.Spec.Strategy.Type != api.External {
			one.Spec.Strategy.RollingUpdate = &api.RollingUpdateConfig{MaxUnavailable: &all, MaxSurge: &all}
		}
		out.Placements[i] = &one
	}
	return &out
}

// find resolves the requested placement, in Git or on a cluster, or the requested object.
func (d *diffCommand) find(p *plan.Plan) (err error) {
	if d.wanted == "" {
		return nil
	}
	kind, _, slash := strings.Cut(d.wanted, "/")
	if _, isPlacement := api.NamesPlacements(kind); slash && !isPlacement {
		d.object, err = api.ParseObject(d.wanted, d.namespace)
		return err
	}
	var names []string
	for pl := range p.Placements.Values() {
		names = append(names, pl.Key.String())
	}
	name, err := lookup.Placement(d.wanted, names)
	if err == nil {
		d.placement, err = api.ParsePlacement(name)
	}
	return err
}

// wants reports whether an object of a placement is to be compared.
func (d *diffCommand) wants(placement api.PlacementKey, id api.ID) bool {
	return (d.placement == api.PlacementKey{} || d.placement == placement) && (d.object == api.ObjectName{} || d.object.Means(id))
}

// changes compares what one member should have with what it has.
func (d *diffCommand) changes(ctx context.Context, l *inspection, p *plan.Plan, daemon daemonState) diffCluster {
	c := diffCluster{Name: l.name, Changes: []diffChange{}}
	if d.cluster != "" && d.cluster != l.name {
		return c
	}
	if l.err != nil {
		c.Error = l.err.Error()
		return c
	}
	compare := l.preview.Changes
	if d.serverSide {
		compare = l.preview.ServerChanges
	}
	found, err := compare(ctx, p.Works[l.name])
	if err != nil {
		c.Error = err.Error()
		return c
	}
	for _, x := range found {
		if d.wants(x.Placement, x.ID) {
			change := changeOf(x)
			change.suspend(daemon.suspensionOf(change.Placement, x.ID, l.name))
			c.Changes = append(c.Changes, change)
		}
	}
	return c
}

func changeOf(x member.Change) diffChange {
	c := diffChange{
		Effect: string(x.Effect), Group: x.ID.Group, Kind: x.ID.Kind, Namespace: x.ID.Namespace, Name: x.ID.Name,
		Placement: x.Placement.String(), TakesOver: x.TakesOver, Message: strings.TrimSpace(x.Message), Fields: x.Diffs,
	}
	if x.Manifest != nil {
		c.Origin = x.Manifest.Origin.String()
		if x.Effect == member.Adds {
			c.Object = diff.Redact(x.Manifest.Object.Content).Object
		}
	}
	return c
}

// document begins the output with the placements and clusters for which nothing can be decided.
func (d *diffCommand) document(s *hub.Snapshot, p *plan.Plan) *diffDocument {
	doc := &diffDocument{APIVersion: diffVersion, Commit: s.Commit.Hash, Notes: []string{}, Problems: []string{}, Clusters: []diffCluster{}}
	for pl := range p.Placements.Values() {
		if d.placement != (api.PlacementKey{}) && d.placement != pl.Key {
			continue
		}
		if pl.InternalError != "" {
			doc.Problems = append(doc.Problems, pl.Key.String()+": "+pl.InternalError)
		}
		if pl.Spec != nil {
			for _, f := range forecast.Faults(s, pl) {
				doc.Problems = append(doc.Problems, pl.Key.String()+": "+f.Error())
			}
		}
		for _, c := range pl.Clusters {
			if c.Waits != "" && cmp.Or(d.cluster, c.Binding.Cluster) == c.Binding.Cluster {
				doc.Problems = append(doc.Problems, pl.Key.String()+" on "+c.Binding.Cluster+": "+c.Waits)
			}
		}
	}
	return doc
}
