package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// stagedKinds are the kinds of steps in fleets with staged update runs.
var stagedKinds = []kind{
	{26, (*world).commit}, {1, (*world).brokenCommit}, {3, (*world).revert}, {12, (*world).wait}, {3, (*world).waitLong},
	{5, (*world).outage}, {6, (*world).endOutages}, {3, (*world).failWrites}, {4, (*world).endFaults}, {2, (*world).hang},
	{7, (*world).kill}, {3, (*world).restart}, {1, (*world).loseState}, {1, (*world).fillDisk}, {1, (*world).loseCommit},
	{2, (*world).pace}, {2, (*world).suspend}, {2, (*world).resume}, {4, (*world).loseAvailability},
	{16, (*world).approveStage}, {3, (*world).rejectStage}, {3, (*world).returnToFailed}, {4, (*world).freeze}, {4, (*world).unfreeze},
	{5, (*world).evict}, {2, (*world).cordon}, {2, (*world).uncordon},
}

// NewStagedScenario returns the scenario of a seed in a fleet with staged update runs. It has nothing in common with the one that
// NewScenario returns.
func NewStagedScenario(seed uint64) Scenario {
	r := rand.New(rand.NewPCG(seed, 5))
	sc := Scenario{Seed: seed, Steps: make([]Step, 6+r.IntN(20)), Staged: true, Gates: seed%gatesShare == 2, Replicas: seed%replicaShare == 3}
	total := 0
	for _, k := range stagedKinds {
		total += k.weight
	}
	for i := range sc.Steps {
		n := r.IntN(total)
		sc.Steps[i] = Step{slices.IndexFunc(stagedKinds, func(k kind) bool { n -= k.weight; return n < 0 }), r.Uint64()}
	}
	return sc
}

// kinds are the kinds of steps of the scenario, and edits the changes of its commits.
func (w *world) kinds() []kind {
	if w.staged {
		return stagedKinds
	}
	return kinds
}

func (w *world) edits() []edit {
	if w.staged {
		return stagedEdits
	}
	return edits
}

// asking returns the placements with a run of which a stage waits for an approval, in order.
func (w *world) asking() (out []api.PlacementKey) {
	for _, name := range keys(ownNamespaces) {
		key := api.PlacementKey{Name: name}
		if r := currentRun(w.saved.runs[key]); r != nil {
			if s, _ := r.AwaitedApproval(); s != nil {
				out = append(out, key)
			}
		}
	}
	return out
}

// decideStage approves or rejects the stage of a placement that waits for that.
func (w *world) decideStage(key api.PlacementKey, reject bool) {
	r := currentRun(w.saved.runs[key])
	if r == nil {
		return
	}
	s, before := r.AwaitedApproval()
	if s == nil {
		return
	}
	o := reconciler.Order{Subject: key.String(), Run: r.Name, Stage: s.Name, Before: before, After: !before, Reject: reject, Reason: "INC-5"}
	what := "approve stage " + s.Name + " of"
	if reject {
		what = "reject stage " + s.Name + " of"
	} else if w.daemon != nil && !w.daemon.dead {
		add(w.saved.stagedRuns.approved, runKey{key, r.Name}, api.ApprovalName(r.Name, s.Name, before))
	}
	w.request(what, (*reconciler.Reconciler).Approve, o, func(string) {})
}

func (w *world) approveStage(r *rand.Rand) {
	w.runEvent(func() {
		if all := w.asking(); len(all) > 0 {
			w.decideStage(pick(r, all), false)
		}
	})
}

func (w *world) rejectStage(r *rand.Rand) {
	w.runEvent(func() {
		if all := w.asking(); len(all) > 0 {
			w.decideStage(pick(r, all), true)
		}
	})
}

// returnToFailed lets content run again that was rolled back, or whose run was rejected.
func (w *world) returnToFailed(r *rand.Rand) {
	w.runEvent(func() {
		var failed []api.PlacementKey
		for _, name := range keys(ownNamespaces) {
			key := api.PlacementKey{Name: name}
			if slices.ContainsFunc(w.saved.runs[key], func(r placement.Run) bool { return r.Rejected != nil || r.RolledBack != "" || hasFailedGate(&r) }) {
				failed = append(failed, key)
			}
		}
		if len(failed) == 0 {
			return
		}
		key := pick(r, failed)
		if w.daemon != nil && !w.daemon.dead {
			delete(w.saved.stagedRuns.rolledBack, key)
			w.saved.stagedRuns.askedAgain[key] = append(slices.Clip(w.saved.stagedRuns.askedAgain[key]), time.Now())
		}
		w.request("let failed content run again of", (*reconciler.Reconciler).Resume, reconciler.Order{Subject: key.String(), FailedContent: true, Reason: "INC-6"}, func(string) {})
	})
}

// hasFailedGate reports whether a gate of a run has failed.
func hasFailedGate(r *placement.Run) bool {
	return slices.ContainsFunc(r.Stages, func(s placement.RunStage) bool { return slices.ContainsFunc(s.Gates, placement.RunGate.HasFailed) })
}

// anyPlacement returns the subject of a placement, or nothing, which stands for the fleet.
func anyPlacement(r *rand.Rand) string {
	if name := pick(r, []string{"", "p", "p", "q", "r"}); name != "" {
		return "crp/" + name
	}
	return ""
}

func (w *world) freeze(r *rand.Rand) {
	w.runEvent(func() {
		o := reconciler.Order{Subject: anyPlacement(r), Overrun: r.IntN(3) == 0, Reason: "INC-3"}
		o.For = metav1.Duration{Duration: pick(r, []time.Duration{0, 30 * time.Second, 3 * time.Minute})}
		w.request("freeze", (*reconciler.Reconciler).Freeze, o, func(string) {})
	})
}

func (w *world) unfreeze(r *rand.Rand) {
	w.runEvent(func() {
		if all := w.suspended(ledger.Freezes); len(all) > 0 {
			w.endFreeze(pick(r, all))
		}
	})
}

func (w *world) endFreeze(s ledger.Subject) {
	o := reconciler.Order{}
	if s.Placement.Name != "" {
		o.Subject = s.Placement.String()
	}
	w.request("unfreeze", (*reconciler.Reconciler).Unfreeze, o, func(string) {})
}

// suspended returns the subjects that are frozen or cordoned, in order.
func (w *world) suspended(effect ledger.Effect) (out []ledger.Subject) {
	for _, s := range w.saved.suspensions {
		if s.Effect == effect {
			out = append(out, s.Subject)
		}
	}
	slices.SortFunc(out, ledger.Subject.Compare)
	return out
}

func (w *world) evict(r *rand.Rand) {
	for range 1 + r.IntN(2) {
		w.runEvent(func() {
			d := w.newestValid()
			o := reconciler.Order{Subject: "crp/" + pick(r, keys(d.placements)), Cluster: pick(r, keys(d.clusters)), Name: fmt.Sprintf("ordered-%d", r.Uint32()), Reason: "INC-4"}
			w.request("evict", (*reconciler.Reconciler).Evict, o, func(string) {})
		})
	}
}

// cordon drains a cluster.
func (w *world) cordon(r *rand.Rand) {
	d := w.newestValid()
	name := pick(r, keys(d.clusters))
	w.runEvent(func() {
		w.request("cordon", (*reconciler.Reconciler).Cordon, reconciler.Order{Subject: "cluster/" + name, Reason: "INC-2"}, func(string) {})
	})
	for _, p := range keys(d.placements) {
		w.runEvent(func() {
			o := reconciler.Order{Subject: "crp/" + p, Cluster: name, Name: fmt.Sprintf("drain-%d", r.Uint32()), Reason: "INC-2"}
			w.request("evict", (*reconciler.Reconciler).Evict, o, func(string) {})
		})
	}
}

func (w *world) uncordon(r *rand.Rand) {
	w.runEvent(func() {
		if all := w.suspended(ledger.Cordons); len(all) > 0 {
			w.endCordon(pick(r, all))
		}
	})
}

func (w *world) endCordon(s ledger.Subject) {
	w.request("uncordon", (*reconciler.Reconciler).Uncordon, reconciler.Order{Subject: "cluster/" + s.Cluster}, func(string) {})
}

// longestFinish is how long it may take until all runs are finished, and approvalInterval how often stages are approved meanwhile.
const (
	longestFinish    = 30 * time.Minute
	approvalInterval = 15 * time.Second
)

// endHolds ends freezes and cordons.
func (w *world) endHolds() {
	for _, s := range w.suspended(ledger.Freezes) {
		w.runEvent(func() { w.endFreeze(s) })
	}
	for _, s := range w.suspended(ledger.Cordons) {
		w.runEvent(func() { w.endCordon(s) })
	}
}

// finishRuns ends freezes and cordons, and approves all stages, until everything is as the commit says. It returns what is not.
func (w *world) finishRuns() (why string) {
	w.endHolds()
	for range longestFinish / approvalInterval {
		var fine bool
		if why, fine = w.settledAfter(approvalInterval); !fine || why == "" {
			return ""
		}
		for _, key := range w.asking() {
			w.runEvent(func() { w.decideStage(key, false) })
		}
	}
	return why
}

// frozenShare is how many scenarios there are for each one in which a frozen fleet is looked at.
const frozenShare = 4

// checkFrozen freezes the fleet, has objects disappear and a placement deleted, and checks that both are dealt with all the same.
func (w *world) checkFrozen() {
	w.runEvent(w.endAllFaults)
	if w.daemon == nil {
		w.wake()
	}
	w.endSuspensions()
	w.runEvent(func() {
		w.request("freeze", (*reconciler.Reconciler).Freeze, reconciler.Order{Reason: "holidays"}, func(string) {})
	})
	w.advance(time.Minute)
	if !slices.Contains(w.suspended(ledger.Freezes), ledger.Subject{Effect: ledger.Freezes}) || w.losses > 0 {
		return
	}
	w.runEvent(func() {
		d := w.newestValid().clone()
		for _, space := range ownNamespaces {
			if d.configMaps[space] != nil {
				d.configMaps[space]["one"] = "good-frozen"
			}
		}
		delete(d.placements, "r")
		w.push("new content for a frozen fleet, and placement r goes", d)
		for _, name := range keys(w.hosts) {
			w.logf("cluster %s loses its objects", name)
			w.set(w.hosts[name], func() { clear(w.hosts[name].objects) })
		}
	})
	w.advance(5 * time.Minute)
	if w.fine() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.checkRepaired()
	}
}

// checkRepaired checks that clusters have what they are assigned, and that a deleted placement is gone.
func (w *world) checkRepaired() {
	if n := len(w.saved.entries[api.PlacementKey{Name: "r"}]); n > 0 {
		w.violate(invariantOnlyContent, "crp/r was deleted, and is on %d clusters", n)
	}
	for key, page := range w.saved.entries {
		for name := range page {
			at := bindingKey{key, name}
			if !w.saved.keeps(at) || w.daemon.agent(name) == nil {
				continue
			}
			for id, value := range w.content(w.saved.revision(at), at) {
				if kindOf(value) != refused && w.hosts[name].objects[id] == nil {
					w.violate(invariantOnlyContent, "%s of %s has lost %s, which is not repaired", name, key, title(id))
				}
			}
		}
	}
}
