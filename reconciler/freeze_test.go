package reconciler

import (
	"testing"

	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

func TestFreezesAreOfAPlacementOrOfTheFleet(t *testing.T) {
	c := newOrdered(t)
	for _, step := range []struct {
		name  string
		do    func(*orderRun, Order) (string, error)
		order Order
		want  string
	}{
		{"nothing is frozen", (*orderRun).unfreeze, Order{}, "error: the fleet is not frozen, and nothing else is either"},
		{"no reason", (*orderRun).freeze, Order{}, "error: --reason is required"},
		{"a placement", (*orderRun).freeze, Order{Subject: "crp/web", Reason: "INC-1", By: "ada"}, "crp/web is frozen by ada: INC-1; repairs, rollbacks and removals go on"},
		{"the fleet", (*orderRun).freeze, Order{Reason: "holidays", By: "ada"}, "the fleet is frozen by ada: holidays; repairs, rollbacks and removals go on"},
		{"an unknown placement", (*orderRun).freeze, Order{Subject: "crp/shop", Reason: "INC-1"}, "error: there is no placement crp/shop; there are crp/web"},
		{"a cluster", (*orderRun).freeze, Order{Subject: "cluster/east", Reason: "INC-1"}, "error: cluster/east cannot be frozen: name crp/NAME or rp/NAMESPACE/NAME, or nothing for the whole fleet"},
		{"on a cluster", (*orderRun).freeze, Order{Subject: "crp/web", Cluster: "east", Reason: "INC-1"}, "error: a freeze is about a placement or the whole fleet: it goes without --cluster and --namespace"},
		{"it is no suspension", (*orderRun).resume, Order{Subject: "crp/web"}, "error: crp/web is not suspended, and nothing else is either"},
		{"another placement is not frozen", (*orderRun).unfreeze, Order{Subject: "crp/shop"}, "error: crp/shop is not frozen; frozen are: the fleet, crp/web"},
		{"the fleet again", (*orderRun).unfreeze, Order{}, "the fleet is not frozen any more; it was frozen by ada: holidays"},
		{"the placement again", (*orderRun).unfreeze, Order{Subject: "crp/web"}, "crp/web is not frozen any more; it was frozen by ada: INC-1"},
	} {
		if got := ordered(step.do(c.orders(), step.order)); got != step.want {
			t.Errorf("%s:\ngot  %s\nwant %s", step.name, got, step.want)
		}
	}
	if left := c.ledger.Suspensions(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestAFreezeSurvivesARestart(t *testing.T) {
	c := newOrdered(t)
	if _, err := c.orders().freeze(Order{Subject: "crp/web", Reason: "INC-1", By: "ada", Overrun: true}); err != nil {
		t.Fatal(err)
	}
	store := ledger.Memory()
	if err := store.Save(c.ledger); err != nil {
		t.Fatal(err)
	}
	loaded, err := store.Load()
	if err != nil {
		t.Fatal(err)
	}
	want := c.ledger.Suspensions()
	if got := loaded.Suspensions(); len(got) != 1 || got[0] != want[0] || !got[0].Overrun || got[0].Effect != ledger.Freezes {
		t.Errorf("loaded %v, want %v", got, want)
	}
}
