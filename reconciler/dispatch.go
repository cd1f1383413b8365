package reconciler

import (
	"context"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/faults"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// A running is the agent of one cluster and what it was last told.
type running struct {
	member Member
	cancel context.CancelFunc
	done   chan struct{}
	// credentials tell two declarations apart that need different connections.
	credentials string
	// works are those that Set was last called with, or equal ones; ever says that it
	// was called.
	works []work.Work
	ever  bool
	// fleet and adopted are what SetFleet was last called with.
	fleet   ledger.Fleet
	adopted []ledger.Adoption
	// resolutions are what Resolve was last called with.
	resolutions ledger.Resolutions
	// left is not nil once the cluster has left the fleet, and closed when all is
	// given up there; deadline is when that is not waited for any longer.
	left     <-chan struct{}
	deadline time.Time
}

// parting is how long a cluster that leaves the fleet may take to give up what
// it holds.
const parting = 15 * time.Minute

// dispatch starts and stops agents, and tells those something whose work
// changed.
func (r *Reconciler) dispatch(ctx context.Context, p *plan.Plan) {
	declared := map[string]*hub.Cluster{}
	for _, c := range p.Members {
		declared[c.Name] = c
	}
	for name, m := range r.members {
		c := declared[name]
		if c == nil && !slices.Contains(p.Left, name) || c != nil && (credentials(c) != m.credentials || m.left != nil) {
			r.stop(name, m)
		}
	}
	for _, name := range p.Left {
		r.part(ctx, name)
	}
	news := false
	for _, c := range p.Members {
		m := r.members[c.Name]
		if m == nil {
			m = r.start(ctx, c)
		}
		if p.Works == nil {
			continue // nothing is decided yet
		}
		m.setFleet(r.ledger.Fleet(), r.ledger.Adopted(c.Name))
		m.resolve(r.resolutions[c.Name])
		works := p.Works[c.Name]
		if m.ever && same(works, m.works) {
			continue
		}
		unchanged := m.ever && slices.EqualFunc(works, m.works, func(a, b work.Work) bool { return a.Equal(&b) })
		m.works = works
		if unchanged {
			continue
		}
		m.ever, news = true, true
		m.member.Set(works)
		faults.At("told")
	}
	if news {
		r.cfg.Told()
	}
}

// setFleet passes the fleet and its adoptions to the member if they have changed.
func (m *running) setFleet(f ledger.Fleet, adopted []ledger.Adoption) {
	if m.fleet != f || !slices.Equal(m.adopted, adopted) {
		m.fleet, m.adopted = f, adopted
		m.member.SetFleet(f, adopted)
	}
}

// resolve passes what is decided about held drifts to the member if that has changed.
func (m *running) resolve(all ledger.Resolutions) {
	if r, ok := m.member.(Resolver); ok && !maps.Equal(m.resolutions, all) {
		m.resolutions = all
		r.Resolve(all)
	}
}

// tells reports whether dispatch has anything to do: then all that the plan
// comes from is to be saved before.
func (r *Reconciler) tells(p *plan.Plan) bool {
	if len(p.Left) > 0 || len(p.Members) != len(r.members) {
		return true
	}
	return slices.ContainsFunc(p.Members, func(c *hub.Cluster) bool {
		m := r.members[c.Name]
		return m == nil || m.left != nil || credentials(c) != m.credentials || !m.ever || !same(p.Works[c.Name], m.works)
	})
}

// same reports whether two lists are one. A plan has the list of the one before
// for each cluster to which nothing is new.
func same[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// stop ends an agent, and does not wait for it: whoever comes next to the same
// cluster does.
func (r *Reconciler) stop(name string, m *running) {
	m.cancel()
	delete(r.members, name)
	r.ending[name] = m.done
}

// part lets a cluster leave the fleet: workloads stay, ownership is released.
// One that does not answer is given up in the end.
func (r *Reconciler) part(ctx context.Context, name string) {
	m := r.members[name]
	if m == nil {
		m = r.start(ctx, &hub.Cluster{MemberCluster: &api.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}})
	}
	m.setFleet(r.ledger.Fleet(), r.ledger.Adopted(name))
	if m.left == nil {
		m.left, m.deadline = m.member.Leave(), r.cfg.Now().Add(parting)
		r.spawn(func() {
			select {
			case <-m.left:
				r.events.nudge()
			case <-m.done:
			}
		})
		r.cfg.Log.Info("cluster leaves the fleet; what it holds stays there", "cluster", name)
	}
	select {
	case <-m.left:
	default:
		if r.cfg.Now().Before(m.deadline) {
			return
		}
		r.cfg.Log.Warn("cluster has left the fleet without giving up what it holds: it did not answer", "cluster", name)
	}
	r.stop(name, m)
	r.ledger.ForgetCluster(name)
	r.cfg.Record(history.Entry{Kind: history.Member, Event: history.Left, Cluster: name})
}

func (r *Reconciler) start(ctx context.Context, c *hub.Cluster) *running {
	ctx, cancel := context.WithCancel(ctx)
	report := func(o ledger.Observation) {
		if ctx.Err() == nil {
			r.events.observe(o)
		}
	}
	m := &running{
		member: r.cfg.Member(c, report), cancel: cancel,
		done: make(chan struct{}), credentials: credentials(c),
	}
	if m, ok := m.member.(Rememberer); ok {
		m.Recall(r.ledger.Drifts(c.Name))
	}
	before := r.ending[c.Name]
	delete(r.ending, c.Name)
	r.members[c.Name] = m
	r.spawn(func() {
		defer close(m.done)
		if before != nil {
			<-before
		}
		if err := m.member.Run(ctx); err != nil {
			r.ended(c.Name, err)
		}
	})
	return m
}

func (r *Reconciler) ended(cluster string, err error) {
	r.cfg.Log.Error("agent ended", "cluster", cluster, "err", err)
}

func credentials(c *hub.Cluster) string { return c.Annotations[api.ContextAnnotation] }
