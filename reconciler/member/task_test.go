package member

import (
	"context"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// An object needs a task only if something has to be done about it, as far as the inventory and
// the watch show.
func TestWhichObjectsNeedATask(t *testing.T) {
	applied := inventory.Item{Version: "v1", Kind: "ConfigMap", Namespace: "web", Name: "one", Hash: "h", Managed: "m"}
	announced, older := applied, applied
	announced.Hash, older.Hash = "", "old"
	ours := observed.Object{Fleet: "prod", Managed: "m"}
	edited, unlabelled, terminating, owned := ours, ours, ours, ours
	edited.Managed, unlabelled.Fleet, terminating.Terminating, owned.Others = "other", "", true, 1
	tests := map[string]struct {
		work  work.Work
		item  *inventory.Item  // nil if the inventory does not list it
		live  *observed.Object // nil if the watch does not report it
		fails *trouble
		need  bool
		drift bool
	}{
		"new":                               {need: true},
		"announced and not applied":         {item: &announced, need: true},
		"as it was applied":                 {item: &applied, live: &ours},
		"new content":                       {item: &older, live: &ours, need: true},
		"edited":                            {item: &applied, live: &edited, need: true, drift: true},
		"without its label":                 {item: &applied, live: &unlabelled, need: true, drift: true},
		"deleted":                           {item: &applied, need: true, drift: true},
		"fields of others":                  {item: &applied, live: &owned},
		"terminating":                       {item: &applied, live: &terminating},
		"terminating and not applied":       {item: &announced, live: &terminating},
		"failed, and the retry is due":      {item: &applied, live: &ours, fails: &trouble{hash: "h"}, need: true},
		"failed, and the retry is not due":  {item: &applied, live: &edited, fails: &trouble{hash: "h", next: time.Now().Add(time.Hour)}},
		"failed with other content":         {item: &older, live: &ours, fails: &trouble{hash: "old", next: time.Now().Add(time.Hour)}, need: true},
		"suspended and as it was applied":   {work: work.Work{Suspended: "by hand"}, item: &applied, live: &ours},
		"suspended and edited":              {work: work.Work{Suspended: "by hand"}, item: &applied, live: &edited, need: true},
		"suspended and new":                 {work: work.Work{Suspended: "by hand"}, need: true},
		"only reported":                     {work: work.Work{Strategy: api.ApplyStrategy{Type: api.ReportDiff}}, live: &ours, need: true},
		"edited, and drift is left":         {work: work.Work{Drift: "report"}, item: &applied, live: &edited, need: true, drift: true},
		"compared in full and not verified": {work: work.Work{Strategy: api.ApplyStrategy{ComparisonOption: api.FullComparison, WhenToApply: api.ApplyIfNotDrifted}}, item: &applied, live: &ours, need: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := sessionAt(t, apiserver.NewConfigMaps())
			m := oneManifest()
			m.Hash = "h"
			test.work.Placement, test.work.Manifests = web, []*work.Manifest{m}
			s.want([]work.Work{test.work})
			watchConfigMaps(t, s)
			if test.item != nil {
				s.inventory(web).Items.Put(*test.item)
			}
			if test.live != nil {
				s.live.Put(m.ID, test.live)
			}
			if test.fails != nil {
				s.trouble[m.ID] = test.fails
			}
			got, need := s.applier.task(m.ID, wanted{web, m})
			if need != test.need || need && got.drift != test.drift {
				t.Errorf("needs a task: %t (drift: %t), want %t (%t)", need, got.drift, test.need, test.drift)
			}
		})
	}
}

// watchConfigMaps makes a session watch ConfigMaps until the test ends.
func watchConfigMaps(t *testing.T, s *session) {
	t.Helper()
	gvk := inventory.ConfigMaps.GroupVersion().WithKind("ConfigMap")
	s.kinds.Add(gvk, inventory.ConfigMaps)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(s.watch.Wait)
	t.Cleanup(cancel)
	if err := s.observer.prepareKinds(ctx, map[api.ID]bool{oneManifest().ID: true}); err != nil || !s.watch.Of(gvk).Complete() {
		t.Fatalf("ConfigMaps are not watched: %v", err)
	}
}

// Drift is held if its mode says so, until a user decides to restore the object.
func TestWhichDriftIsHeld(t *testing.T) {
	edited := &observed.Object{Fleet: "prod"}
	tests := map[string]struct {
		work    work.Work
		live    *observed.Object // nil if the object was deleted
		putBack bool
		want    bool
	}{
		"reverted":                    {work.Work{}, edited, false, false},
		"proposed":                    {work.Work{Drift: "propose"}, edited, false, true},
		"reported":                    {work.Work{Drift: "report"}, edited, false, true},
		"a deletion, proposed":        {work.Work{Drift: "propose"}, nil, false, true},
		"a deletion, reported":        {work.Work{Drift: "report"}, nil, false, false},
		"a lost label":                {work.Work{Drift: "propose"}, &observed.Object{}, false, false},
		"to be put back":              {work.Work{Drift: "propose"}, edited, true, false},
		"not restored in any case":    {work.Work{Drift: "propose", Strategy: api.ApplyStrategy{WhenToApply: api.ApplyIfNotDrifted}}, edited, false, false},
		"compared in full afterwards": {work.Work{Drift: "propose", Strategy: api.ApplyStrategy{ComparisonOption: api.FullComparison}}, edited, false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, m := sessionAt(t, apiserver.NewConfigMaps()), oneManifest()
			test.work.Placement, test.work.Manifests = web, []*work.Manifest{m}
			s.want([]work.Work{test.work})
			if test.putBack {
				s.drifts.memory.Put(web, ledger.Drift{ID: m.ID, State: api.DriftHeld})
				s.drifts.decisions = ledger.DriftDecisions{{Placement: web, ID: m.ID}: {PutBack: true, Fingerprint: ledger.Fingerprint(nil, "")}}
			}
			if got := s.drifts.holds(task{wanted: wanted{web, m}}, test.live); got != test.want {
				t.Errorf("held: %t, want %t", got, test.want)
			}
		})
	}
}
