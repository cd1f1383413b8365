package plan

import (
	"slices"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// answerGates gives all questions of a placement's runs the same answer, as the loop does.
func (s *scene) answerGates(key api.PlacementKey, v placement.GateVerdict, text string) {
	next := *s.in.Ledger.Placement(key)
	next.Runs = slices.Clone(next.Runs)
	for i := range next.Runs {
		next.Runs[i] = next.Runs[i].Clone()
		for _, q := range next.Runs[i].Questions(key) {
			next.Runs[i].RecordAnswer(key, placement.GateAnswer{GateRound: q.GateRound, Verdict: v, Text: text, At: s.in.Now})
		}
	}
	s.in.Ledger.SetPlacement(key, next)
}
