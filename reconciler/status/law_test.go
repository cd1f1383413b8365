package status_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/world"
)

// For any commits and reports of members, everything that is not healthy has a reason and a
// time, everything that waits says for what, and an empty Memo gives the same report.
func TestEveryReportIsConsistent(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newScene(t)
		s.conditions = rapid.SampledFrom([]status.Conditions{status.CurrentConditions, status.DocumentedConditions}).Draw(rt, "conditions")
		s.commit("v0", world.Files(t, hubOf(rt)))
		for turn := range rapid.IntRange(2, 12).Draw(rt, "turns") {
			s.now = s.now.Add(time.Duration(rapid.IntRange(1, 200).Draw(rt, "seconds")) * time.Second)
			switch rapid.IntRange(0, 9).Draw(rt, "what") {
			case 0:
				s.commit(fmt.Sprintf("v%d", turn+1), world.Files(t, hubOf(rt)))
			case 1:
				s.restart()
			}
			for _, cluster := range lawClusters {
				s.happens(rt, cluster)
			}
			s.turn()
			if t.Failed() {
				rt.FailNow()
			}
		}
	})
}

var lawClusters = []string{"a", "b", "c", "d"}

// hubOf draws a hub with some clusters, two namespaces and a few placements that select the
// same objects.
func hubOf(rt *rapid.T) string {
	var b strings.Builder
	b.WriteString("clusters " + rapid.SampledFrom([]string{"a/region=eu b c/region=eu d", "a/region=eu! b c d", "a b", "c/region=eu d"}).Draw(rt, "clusters") + "\n")
	b.WriteString("namespace web\nnamespace docs\n")
	for _, line := range []string{"widget web/one", "envelope web/box holds docs/wrapped"} {
		if rapid.Bool().Draw(rt, line) {
			b.WriteString(line + "\n")
		}
	}
	for _, name := range []string{"web/one", "web/two", "docs/one"} {
		if rapid.Bool().Draw(rt, name) {
			fmt.Fprintf(&b, "configmap %s %d\n", name, rapid.IntRange(0, 2).Draw(rt, "value"))
		}
	}
	if strings.Contains(b.String(), "web/one") && rapid.Bool().Draw(rt, "override") {
		b.WriteString("override web/one to \"${MEMBER-CLUSTER-LABEL-KEY-zone}\" on eu\n")
	}
	for _, name := range []string{"web", "docs", "both"} {
		if name == "web" || rapid.Bool().Draw(rt, "placement") {
			of := map[string]string{"both": " of web,docs"}[name]
			how := rapid.SampledFrom([]string{
				"", "pick 2", "pick 9", "on a,ghost", "unavailable 1 surge 0", "unavailable 0 surge 1", "report", "broken", "near eu",
				"unavailable 1 goes-on", "period 90 unavailable 1", "external", "shown",
			}).Draw(rt, "how")
			if name == "both" && how == "shown" {
				how = "" // the policy would name two namespaces
			}
			fmt.Fprintf(&b, "place %s%s %s\n", name, of, how)
		}
	}
	return b.String()
}

// happens draws a change of a cluster's state.
func (s *scene) happens(rt *rapid.T, cluster string) {
	switch rapid.IntRange(0, 5).Draw(rt, cluster) {
	case 0:
		s.in.Ledger.Fold(protocol.ClusterSeen{Cluster: cluster, At: s.now, Error: "no route to host"})
	case 1, 2:
		s.in.Ledger.Fold(protocol.ClusterSeen{Cluster: cluster, At: s.now, Healthy: true, Namespaces: []string{"default"}, Properties: map[string]string{"kubernetes-fleet.io/node-count": "1"}})
	default:
		if s.last == nil {
			return
		}
		for _, w := range s.last.Works[cluster] {
			s.in.Ledger.Fold(saidBy(rt, s.now, cluster, w))
		}
	}
}

// saidBy draws a member's report about its work.
func saidBy(rt *rapid.T, now time.Time, cluster string, w *work.Work) protocol.WorkSeen {
	o := protocol.WorkSeen{Cluster: cluster, Placement: w.Placement, At: now, WorkState: protocol.WorkState{Revision: w.Revision, Total: len(w.Manifests), Done: true}}
	if w.Remove {
		o.Removed = rapid.Bool().Draw(rt, "removed")
		return o
	}
	o.Done = rapid.IntRange(0, 3).Draw(rt, "done") > 0
	var in protocol.Incidents
	if rapid.IntRange(0, 5).Draw(rt, "blocked") == 0 {
		in.BlockedDeletions = []protocol.BlockedDeletion{{ID: api.ID{Kind: "Namespace", Name: "old"}, Why: "a namespace is never deleted unasked"}}
	}
	o.Untrackable = rapid.IntRange(0, 1).Draw(rt, "untrackable")
	for _, m := range w.Manifests {
		e := protocol.ObjectState{ID: m.ID, Version: "v1", Envelope: m.Envelope, Generation: 1}
		details := []api.Difference{{PatchDetail: api.PatchDetail{Path: "/data/value", ValueInHub: "x", ValueInMember: "y"}}}
		d := protocol.Drift{ID: m.ID, Version: "v1", Envelope: m.Envelope, Count: 1, FirstSeen: now, LastSeen: now, Paths: details}
		if d.State = rapid.SampledFrom([]api.DriftState{"", "", "", api.DriftRepaired, api.DriftContested, api.DriftEnded, api.DriftIgnored}).Draw(rt, "drift"); d.State != "" {
			in.Drifts = append(in.Drifts, d)
		}
		switch rapid.IntRange(0, 8).Draw(rt, "object") {
		case 0:
			e.Applied = protocol.Verdict{Reason: api.ManifestApplyFailed, Cause: "no"}
		case 1:
			e.Applied, e.Available = protocol.Verdict{OK: true}, protocol.Verdict{Reason: api.ManifestNotAvailableYet}
		case 2:
			e.Applied, e.Available = protocol.Verdict{OK: true}, protocol.Verdict{OK: true}
			e.Diffs, e.Drift, e.FirstSeen, e.LastSeen = details, true, now, now
		case 3:
			e.Applied = protocol.Verdict{Reason: api.FailedToTakeOver, Cause: "it differs"}
			e.Diffs, e.FirstSeen, e.LastSeen = details, now, now
		default:
			continue
		}
		o.Exceptions = append(o.Exceptions, e)
	}
	o.Incidents = in.OrNil()
	return o
}
