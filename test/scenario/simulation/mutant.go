package simulation

import (
	"strings"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A Mutant changes values between gitfleet and the simulation, as a mistake of gitfleet would.
// The zero value changes nothing.
type Mutant struct {
	// Loads changes the loaded ledger, Saves the decisions that are saved, Sends the works that
	// members are sent, Applies the works as members apply them, and Publishes the published
	// report.
	Loads     func(*ledger.Ledger)
	Saves     func(head *desired, l *ledger.Ledger)
	Sends     func([]*work.Work) []*work.Work
	Applies   func([]*work.Work) []*work.Work
	Publishes func(*status.Report)
	// Joins changes the membership that a member is sent.
	Joins func(*protocol.Membership)
	// Notices changes what a member reports of its cluster.
	Notices func(*protocol.ClusterSeen)
	// Removes changes what has to go from an object with an apply. DeletesAtOnce says that no deletion waits for another one.
	Removes       func(diff.Removal) diff.Removal
	DeletesAtOnce bool
	// Answers changes an answer to a gate, of those that are asked.
	Answers func(placement.GateAnswer, map[placement.GateRound]*question) placement.GateAnswer
	// Updates replaces an update of the Secrets of replicas.
	Updates func(s *secrets, name string, value []byte, version string) (string, error)
}

func (m Mutant) loads(l *ledger.Ledger) {
	if m.Loads != nil && l != nil {
		m.Loads(l)
	}
}

func (m Mutant) saves(head *commit, l *ledger.Ledger) {
	if m.Saves != nil && head != nil {
		m.Saves(head.desired, l)
	}
}

func (m Mutant) sends(works []*work.Work) []*work.Work {
	if m.Sends == nil {
		return works
	}
	return m.Sends(copies(works))
}

// copies returns copies of works, which a plan shares between clusters.
func copies(works []*work.Work) []*work.Work {
	out := make([]*work.Work, 0, len(works))
	for _, w := range works {
		one := *w
		out = append(out, &one)
	}
	return out
}

func (m Mutant) applies(works []*work.Work) []*work.Work {
	if m.Applies == nil {
		return works
	}
	return m.Applies(copies(works))
}

func (m Mutant) joins(to *protocol.Membership) {
	if m.Joins != nil {
		m.Joins(to)
	}
}

func (m Mutant) notices(o *protocol.ClusterSeen) {
	if m.Notices != nil {
		m.Notices(o)
	}
}

func (m Mutant) answers(a placement.GateAnswer, asked map[placement.GateRound]*question) placement.GateAnswer {
	if m.Answers != nil {
		return m.Answers(a, asked)
	}
	return a
}

func (m Mutant) updates(s *secrets, name string, value []byte, version string) (string, error) {
	if m.Updates != nil {
		return m.Updates(s, name, value, version)
	}
	return s.Update(name, value, version)
}

func (m Mutant) publishes(r *status.Report) {
	if m.Publishes != nil {
		m.Publishes(r)
	}
}

func indent(text string) string {
	return "\t" + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n\t") + "\n"
}
