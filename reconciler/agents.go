package reconciler

import (
	"context"
	"sync"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
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
	running *sync.WaitGroup
	// observe receives the observations of agents, and wake requests a turn. Neither blocks.
	observe func(protocol.Observation)
	wake    func()
	members map[string]*runningMember
	// driftDecisions are the newest decisions about held drift, by cluster.
	driftDecisions map[string]protocol.DriftDecisions
	// unsent is the last plan, while some of its works wait until they are saved; nil otherwise.
	unsent *plan.Plan
	// removedSince is when the removal of a member was first seen by this process, until it has left.
	removedSince map[string]time.Time
	// ending has a channel for each cluster that is closed when its last agent, which was stopped, has ended.
	ending map[string]<-chan struct{}
}

func newAgents(cfg *Config, running *sync.WaitGroup, observe func(protocol.Observation), wake func()) agents {
	return agents{
		cfg: cfg, running: running, observe: observe, wake: wake,
		members: map[string]*runningMember{}, removedSince: map[string]time.Time{}, ending: map[string]<-chan struct{}{},
	}
}

// start starts the agent of a cluster, with what is recorded of it.
func (a *agents) start(ctx context.Context, c *hub.Cluster, record protocol.MemberRecord) *runningMember {
	ctx, cancel := context.WithCancel(ctx)
	report := func(o protocol.Observation) {
		if ctx.Err() == nil {
			a.observe(o)
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

// isLeaving reports whether the release of what is on a cluster has begun.
func (a *agents) isLeaving(cluster string) bool {
	m := a.members[cluster]
	return m != nil && m.left != nil
}

// setMembership passes a membership to the member if it has changed.
func (m *runningMember) setMembership(now protocol.Membership) {
	if !m.membership.Equal(now) {
		m.membership = now
		m.member.SetMembership(now)
	}
}

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
