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
	"github.com/gitfleet/gitfleet/reconciler/occurrence"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// dispatch starts and stops agents, and sends them their works if the works have changed. Before the first works are
// sent, everything in the ledger is saved: if that fails, dispatch ends and returns false. If it takes several saves, the works, or
// those of clusters whose entries wait for a later save, are sent then.
func (a *agents) dispatch(ctx context.Context, p *plan.Plan, inForce *hub.Snapshot, l *ledger.Ledger, s *saver) (saved bool) {
	declared := map[string]*hub.Cluster{}
	for _, c := range p.Members {
		declared[c.Name] = c
	}
	for name, m := range a.members {
		c := declared[name]
		_, removed := a.removedSince[name] // and declared again, before anything was released: a new agent reports what is there
		if c == nil && !slices.Contains(p.Left, name) || c != nil && (credentials(c) != m.credentials || m.left != nil || removed) {
			a.stop(name, m)
		}
	}
	for _, name := range p.Left {
		if !a.mayBeRenamed(name, inForce, l, a.cfg.Now()) {
			a.offboard(ctx, name, l)
		}
	}
	maps.DeleteFunc(a.removedSince, func(name string, _ time.Time) bool { return !slices.Contains(p.Left, name) })
	a.unsent = nil
	for _, c := range p.Members {
		m := a.members[c.Name]
		if m == nil {
			m = a.start(ctx, c, ledger.RecordOf(l, c.Name))
		}
		if p.Works == nil {
			continue // nothing was planned yet
		}
		m.setMembership(l.Membership(c.Name))
		if decisions := a.driftDecisions[c.Name]; !maps.Equal(m.driftDecisions, decisions) {
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
		if l.UnsavedBesides() && a.unsent == nil && !s.save(l) {
			return false
		}
		if l.UnsavedBesides() || l.Waits(c.Name) {
			a.unsent = p
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

func sameWorks(a, b []*work.Work) bool {
	return ledger.Identical(a, b) || slices.EqualFunc(a, b, (*work.Work).Equal)
}

// offboardTimeout is how long releasing the objects of a cluster that leaves the fleet may take.
const offboardTimeout = 15 * time.Minute

// offboard releases the objects of a cluster that leaves the fleet; they stay on the cluster without an owner. It gives
// up on a cluster that does not answer after offboardTimeout.
func (a *agents) offboard(ctx context.Context, name string, l *ledger.Ledger) {
	m := a.members[name]
	if m == nil {
		m = a.start(ctx, &hub.Cluster{MemberCluster: &api.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}}, ledger.RecordOf(l, name))
	}
	m.setMembership(l.Membership(name))
	if m.left == nil {
		m.left, m.deadline = m.member.Leave(), a.cfg.Now().Add(offboardTimeout)
		a.running.Go(func() {
			select {
			case <-m.left:
				a.wake()
			case <-m.done:
			}
		})
		a.cfg.Log.Info("cluster is leaving the fleet; its workloads stay", "cluster", name)
	}
	unanswered := ""
	select {
	case <-m.left:
	default:
		if a.cfg.Now().Before(m.deadline) {
			return
		}
		unanswered = "it did not answer, so that labels, annotations and inventories of gitfleet stay there"
	}
	a.stop(name, m)
	l.ForgetCluster(name)
	publish(a.cfg, occurrence.Occurrence{Entry: history.Entry{Kind: history.Member, Event: history.Left, Cluster: name, Message: unanswered}})
}
