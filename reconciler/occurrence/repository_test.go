package occurrence

import (
	"testing"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// A commit comes into force once and is refused once for each reason, also if it is loaded again after a restart. A poll is an occurrence
// if the repository cannot be read any more, or for another reason, or can be read again, or if its newest commit is not accepted.
func TestChangesOfTheRepository(t *testing.T) {
	refused := func(commit, why string) ledger.Repository {
		return ledger.Repository{InForce: "c1", Refused: commit, Why: why}
	}
	unreadable := func(why string) ledger.Repository {
		return ledger.Repository{InForce: "c1", Unreadable: why}
	}
	notAccepted := func(why string) ledger.Repository {
		return ledger.Repository{InForce: "c1"}.Polled(why, true)
	}
	for name, test := range map[string]struct {
		was, is ledger.Repository
		want    string
	}{
		"the first commit":          {ledger.Repository{}, ledger.Repository{InForce: "c1"}, "inForce"},
		"a new commit":              {ledger.Repository{InForce: "c1"}, ledger.Repository{InForce: "c2"}, "inForce"},
		"one after a refused one":   {refused("c2", "not YAML"), ledger.Repository{InForce: "c3"}, "inForce"},
		"loaded again":              {ledger.Repository{InForce: "c1"}, ledger.Repository{InForce: "c1"}, ""},
		"the first one is refused":  {ledger.Repository{}, ledger.Repository{Refused: "c2", Why: "not YAML"}, "refused: not YAML"},
		"a commit is refused":       {ledger.Repository{InForce: "c1"}, refused("c2", "not YAML"), "refused: not YAML, c1 stays"},
		"it is refused again":       {refused("c2", "not YAML"), refused("c2", "not YAML"), ""},
		"for another reason":        {refused("c2", "not YAML"), refused("c2", "too large"), "refused: too large, c1 stays"},
		"another one is refused":    {refused("c2", "not YAML"), refused("c3", "not YAML"), "refused: not YAML, c1 stays"},
		"the one before is back":    {refused("c2", "not YAML"), ledger.Repository{InForce: "c1"}, ""},
		"a poll fails":              {ledger.Repository{InForce: "c1"}, unreadable("timeout"), "unreadable: timeout"},
		"it fails again":            {unreadable("timeout"), unreadable("timeout"), ""},
		"it fails differently":      {unreadable("timeout"), unreadable("denied"), "unreadable: denied"},
		"a poll succeeds again":     {unreadable("timeout"), ledger.Repository{InForce: "c1"}, "readable"},
		"a poll succeeds as before": {ledger.Repository{InForce: "c1"}, ledger.Repository{InForce: "c1"}, ""},
		"the first is not accepted": {ledger.Repository{}, ledger.Repository{}.Polled("not signed", true), "not accepted: not signed"},
		"one is not accepted":       {ledger.Repository{InForce: "c1"}, notAccepted("not signed"), "not accepted: not signed, c1 stays"},
		"it is still not accepted":  {notAccepted("not signed"), notAccepted("not signed"), ""},
		"not accepted differently":  {notAccepted("not signed"), notAccepted("unknown key"), "not accepted: unknown key, c1 stays"},
		"one is accepted again":     {notAccepted("not signed"), notAccepted("not signed").Polled("", false), ""},
		"it cannot be read now":     {notAccepted("not signed"), notAccepted("not signed").Polled("timeout", false), "unreadable: timeout"},
		"not accepted as before":    {notAccepted("not signed").Polled("timeout", false), notAccepted("not signed"), "readable"},
		"read, but not accepted":    {unreadable("timeout"), unreadable("timeout").Polled("not signed", true), "readable, not accepted: not signed, c1 stays"},
	} {
		got := ""
		for _, o := range append(OfPolls(test.was, test.is), OfCommit(hub.Commit{Hash: "c9"}, test.was, test.is)) {
			if got != "" && o.NotAccepted != "" {
				got += ", "
			}
			switch {
			case o.Unreadable != "":
				got += "unreadable: " + o.Unreadable
			case o.Readable:
				got += "readable"
			case o.NotAccepted != "":
				got += "not accepted: " + o.NotAccepted
			}
			if got += string(o.Event); o.Event != "" && o.Commit != "c9" {
				t.Errorf("%s: it is about the commit %q", name, o.Commit)
			}
			if o.Message != "" {
				got += ": " + o.Message
			}
			if o.StaysInForce != "" {
				got += ", " + o.StaysInForce + " stays"
			}
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
