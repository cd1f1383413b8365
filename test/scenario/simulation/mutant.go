package simulation

import (
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A Mutant stands between gitfleet and the simulation, and makes a mistake that gitfleet must
// never make. The zero value makes none.
type Mutant struct {
	// Loads changes the loaded ledger, Saves the decisions that are saved, Tells the works that
	// members are sent, Hears the works as members apply them, and Publishes the published
	// report.
	Loads     func(*ledger.Ledger)
	Saves     func(head *desired, l *ledger.Ledger)
	Tells     func([]work.Work) []work.Work
	Hears     func([]work.Work) []work.Work
	Publishes func(*status.Report)
	// Updates makes an update of the Secrets of replicas.
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

func (m Mutant) tells(works []work.Work) []work.Work {
	if m.Tells == nil {
		return works
	}
	return m.Tells(slices.Clone(works))
}

func (m Mutant) hears(works []work.Work) []work.Work {
	if m.Hears == nil {
		return works
	}
	return m.Hears(slices.Clone(works))
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

func indented(text string) string {
	return "\t" + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n\t") + "\n"
}
