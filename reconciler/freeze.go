package reconciler

import (
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

func (r *orderRun) freeze(o Order) (string, error) {
	subject, err := r.frozenSubject(o)
	if err != nil {
		return "", err
	}
	if subject.Placement != (api.PlacementKey{}) {
		if _, err := r.subjectOf(o); err != nil { // it has to exist
			return "", err
		}
	}
	answer, err := r.recordSuspension(subject, o, history.Frozen)
	if err != nil {
		return "", err
	}
	return answer + "; repairs, rollbacks and removals go on", nil
}

// unfreeze ends a freeze; the placement may no longer exist.
func (r *orderRun) unfreeze(o Order) (string, error) {
	subject, err := r.frozenSubject(o)
	if err != nil {
		return "", err
	}
	return r.endSuspension(subject, o, history.Unfrozen, "not frozen any more")
}

// frozenSubject returns the subject of a freeze: a placement, or the fleet if none is named.
func (r *orderRun) frozenSubject(o Order) (ledger.Subject, error) {
	if o.Cluster != "" || o.Namespace != "" {
		return ledger.Subject{}, refuse("a freeze is about a placement or the whole fleet: it goes without --cluster and --namespace")
	}
	if o.Subject == "" {
		return ledger.Subject{Effect: ledger.Freezes}, nil
	}
	key, err := api.ParsePlacement(o.Subject)
	if err != nil {
		return ledger.Subject{}, refuse("%s cannot be frozen: name crp/NAME or rp/NAMESPACE/NAME, or nothing for the whole fleet", o.Subject)
	}
	return ledger.Subject{Placement: key, Effect: ledger.Freezes}, nil
}
