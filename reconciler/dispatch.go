package reconciler

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/faults"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// A runningMember is the agent of one cluster and what was last sent to it.
type runningMember struct {
	member Member
	cancel context.CancelFunc
	done   chan struct{}
	// credentials identifies the connection: if it differs, a new connection is needed.
	credentials string
	// works are the last argument of Set, or equal ones. sent says that Set was called.
	works []*work.Work
	sent  bool
	// withheld are the newest works that were not sent, because they were not saved; replaced are the placements of works that they
	// had other content for, since the last Set.
	withheld []*work.Work
	replaced map[api.PlacementKey]bool
	// membership is the last argument of SetMembership.
	membership protocol.Membership
	// driftDecisions are the last argument of SetDriftDecisions.
	driftDecisions protocol.DriftDecisions
	// left is set once the cluster has left the fleet, and closed when it is offboarded. After deadline it is no longer
	// waited for.
	left     <-chan struct{}
	deadline time.Time
}

// agents are the agents of the member clusters.
type agents struct {
	cfg     *Config
	inbox   *inbox
	running *sync.WaitGroup
	members map[string]*runningMember
	// removedSince is when the removal of a member was first seen by this process, until it has left.
	removedSince map[string]time.Time
	// ending has a channel for each cluster that is closed when its last agent, which was stopped, has ended.
	ending map[string]<-chan struct{}
}

// start starts the agent of a cluster, with what is recorded of it.
func (a *agents) start(ctx context.Context, c *hub.Cluster, record protocol.MemberRecord) *runningMember {
	ctx, cancel := context.WithCancel(ctx)
	report := func(o protocol.Observation) {
		if ctx.Err() == nil {
			a.inbox.observe(o)
		}
	}
	m := &runningMember{member: a.cfg.Member(c, report), cancel: cancel, done: make(chan struct{}), credentials: credentials(c)}
	m.member.SetRecord(record)
	before := a.ending[c.Name]
	delete(a.ending, c.Name)
	a.members[c.Name] = m
	a.running.Go(func() {
		defer close(m.done)
		if before != nil {
			<-before
		}
		m.member.Run(ctx)
	})
	return m
}

// stop stops an agent without waiting for it. The next agent of the same cluster waits until it has ended.
func (a *agents) stop(name string, m *runningMember) {
	m.cancel()
	delete(a.members, name)
	a.ending[name] = m.done
}

func credentials(c *hub.Cluster) string { return c.Annotations[api.ContextAnnotation] }

// offboardTimeout is how long releasing the objects of a cluster that leaves the fleet may take.
const offboardTimeout = 15 * time.Minute

// withhold records that the works of a plan are not sent, because they are not saved.
func (a *agents) withhold(p *plan.Plan) {
	for name, m := range a.members {
		if p.Works != nil {
			m.withhold(p.Works[name])
		}
	}
}

func (m *runningMember) withhold(works []*work.Work) {
	if !m.sent || ledger.Identical(works, m.withheld) {
		return
	}
	m.withheld = works
	for _, sent := range m.works {
		if now := work.Find(works, sent.Placement); now == nil || !now.Equal(sent) {
			if m.replaced == nil {
				m.replaced = map[api.PlacementKey]bool{}
			}
			m.replaced[sent.Placement] = true
		}
	}
}

// release ends the withholding of works. If content that was sent before was replaced by withheld content and is wanted again, the member
// checks and reports everything: the ledger has forgotten how far that content had come, and Set alone makes the member report only
// what is not as it was last sent.
func (m *runningMember) release(before []*work.Work) {
	for p := range m.replaced {
		if sent, now := work.Find(before, p), work.Find(m.works, p); sent != nil && now != nil && now.Equal(sent) {
			m.member.Check()
			break
		}
	}
	m.withheld, m.replaced = nil, nil
}

func sameWorks(a, b []*work.Work) bool {
	return ledger.Identical(a, b) || slices.EqualFunc(a, b, (*work.Work).Equal)
}

// dispatch starts and stops agents, and sends them their works if the works have changed. Before the first works are
// sent, everything in the ledger is saved: if that fails, dispatch ends and returns false. If it takes several saves, the works, or
// those of clusters whose entries wait for a later save, are sent then.
func (r *Reconciler) dispatch(ctx context.Context, p *plan.Plan) (saved bool) {
	declared := map[string]*hub.Cluster{}
	for _, c := range p.Members {
		declared[c.Name] = c
	}
	for name, m := range r.agents.members {
		c := declared[name]
		_, removed := r.agents.removedSince[name] // and declared again, before anything was released: a new agent reports what is there
		if c == nil && !slices.Contains(p.Left, name) || c != nil && (credentials(c) != m.credentials || m.left != nil || removed) {
			r.agents.stop(name, m)
		}
	}
	for _, name := range p.Left {
		if !r.agents.mayBeRenamed(name, r.inForce, r.ledger, r.cfg.Now()) {
			r.offboard(ctx, name)
		}
	}
	maps.DeleteFunc(r.agents.removedSince, func(name string, _ time.Time) bool { return !slices.Contains(p.Left, name) })
	r.unsent = nil
	for _, c := range p.Members {
		m := r.agents.members[c.Name]
		if m == nil {
			m = r.agents.start(ctx, c, ledger.RecordOf(r.ledger, c.Name))
		}
		if p.Works == nil {
			continue // nothing was planned yet
		}
		m.setMembership(r.ledger.Membership(c.Name))
		if decisions := r.driftDecisions[c.Name]; !maps.Equal(m.driftDecisions, decisions) {
			m.driftDecisions = decisions
			m.member.SetDriftDecisions(decisions)
		}
		works := p.Works[c.Name]
		if m.sent && sameWorks(works, m.works) {
			m.works = works // equal manifests of another commit may be elsewhere in memory
			m.release(works)
			continue
		}
		// The observations that led to these works are saved too, so that the first plan after a crash does not take
		// the works back. Of very many, a turn saves a part.
		if r.ledger.UnsavedBesides() && r.unsent == nil && !r.save() {
			return false
		}
		if r.ledger.UnsavedBesides() || r.ledger.Waits(c.Name) {
			r.unsent = p
			m.withhold(works)
			continue
		}
		before := m.works
		m.works, m.sent = works, true
		m.member.Set(works)
		m.release(before)
		faults.At("works sent")
	}
	return true
}

// setMembership passes a membership to the member if it has changed.
func (m *runningMember) setMembership(now protocol.Membership) {
	if !m.membership.Equal(now) {
		m.membership = now
		m.member.SetMembership(now)
	}
}

// offboard releases the objects of a cluster that leaves the fleet; they stay on the cluster without an owner. It gives
// up on a cluster that does not answer after offboardTimeout.
func (r *Reconciler) offboard(ctx context.Context, name string) {
	m := r.agents.members[name]
	if m == nil {
		m = r.agents.start(ctx, &hub.Cluster{MemberCluster: &api.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}}, ledger.RecordOf(r.ledger, name))
	}
	m.setMembership(r.ledger.Membership(name))
	if m.left == nil {
		m.left, m.deadline = m.member.Leave(), r.cfg.Now().Add(offboardTimeout)
		r.running.Go(func() {
			select {
			case <-m.left:
				r.inbox.trigger()
			case <-m.done:
			}
		})
		r.cfg.Log.Info("cluster is leaving the fleet; its workloads stay", "cluster", name)
	}
	unanswered := ""
	select {
	case <-m.left:
	default:
		if r.cfg.Now().Before(m.deadline) {
			return
		}
		unanswered = "it did not answer, so that labels, annotations and inventories of gitfleet stay there"
	}
	r.agents.stop(name, m)
	r.ledger.ForgetCluster(name)
	publish(r.cfg, occurrence{Entry: history.Entry{Kind: history.Member, Event: history.Left, Cluster: name, Message: unanswered}})
}
