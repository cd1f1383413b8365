package reconciler

import (
	"slices"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// gateQuestions are the gates of all runs that have to be asked now.
func gateQuestions(l *ledger.Ledger, p *plan.Plan) (out []placement.GateQuestion) {
	for _, pl := range p.Placements {
		record := l.Placement(pl.Key)
		if record == nil || record.Deleted {
			continue
		}
		for i := range record.Runs {
			out = append(out, record.Runs[i].Questions(pl.Key)...)
		}
	}
	return out
}

// foldGateAnswers records answers to gates in the runs that have asked for them, and reports whether anything has changed. What was
// asked about another content, or about clusters that have changed since, is dropped.
func foldGateAnswers(l *ledger.Ledger, answers []placement.GateAnswer) (news bool) {
	for _, a := range answers {
		record := l.Placement(a.Placement)
		if record == nil || record.Deleted {
			continue
		}
		i := slices.IndexFunc(record.Runs, func(r placement.Run) bool { return r.Name == a.Run && r.Content.Hash == a.Content })
		if i < 0 {
			continue
		}
		run := record.Runs[i].Clone()
		if !run.RecordAnswer(a.Placement, a) {
			continue
		}
		next := *record
		next.Runs = slices.Clone(record.Runs)
		next.Runs[i] = run
		l.SetPlacement(a.Placement, next)
		news = true
	}
	return news
}
