package operate

import (
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/overview"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/reports"
)

// No empty set counts as success: sync --wait, wait and status decide alike about placements that are nowhere, or not
// everywhere, and about those that want nothing.
func TestEmptySets(t *testing.T) {
	const three = "clusters east/region=eu west/region=us north/region=us\nnamespace web\n"
	for name, test := range map[string]struct {
		manifests string
		seen      string // the members that have answered, and have what they were assigned
		happens   func(*reports.Fleet)
		want      outcome
		attention bool
		line      string // of sync --wait
	}{
		"everywhere":           {three + "place web of web\n", "east west north", nil, met, false, "commit a1a1a1a1 is applied and available"},
		"no member connected":  {three + "place web of web\n", "", nil, pending, true, "crp/web is not on east, north, west: cluster is not connected to the fleet: it has not answered yet"},
		"one of three":         {three + "place web of web\n", "east west", nil, pending, true, "crp/web is not on north: cluster is not connected"},
		"no members at all":    {"namespace web\nplace web of web\n", "", nil, impossible, true, "crp/web: the commit has no MemberCluster"},
		"no placements":        {three, "east west north", nil, met, false, "commit a1a1a1a1 is in force, and has no placements: there is nothing to apply"},
		"selects no cluster":   {three + "place web of web near mars\n", "east west north", nil, met, false, "commit a1a1a1a1 is in force, and there is nothing to apply\ncrp/web selects no cluster"},
		"one selects none":     {three + "place web of web near mars\nplace all of web on east\n", "east west north", nil, met, false, "commit a1a1a1a1 is applied and available\ncrp/web selects no cluster"},
		"selects no object":    {three + "place web of webb\n", "east west north", nil, met, false, "crp/web selects no object, so that nothing of it is on its 3 clusters"},
		"too few":              {three + "place web of web pick 5\n", "east west north", nil, impossible, true, "crp/web: could not find all clusters needed"},
		"too few, not all yet": {three + "place web of web pick 3\n", "east west", nil, pending, true, "crp/web: could not find all clusters needed"},
		"named, not connected": {three + "place web of web on east,west\n", "east", nil, pending, true, "crp/web is not on west: "},
		"held by another fleet": {three + "place web of web\n", "", func(s *reports.Fleet) {
			s.In.Ledger.SetFleet(protocol.Fleet{Name: "fleet", ID: "5f0c2a9e"})
			for _, c := range []string{"east", "west", "north"} {
				s.In.Ledger.Fold(protocol.ClusterSeen{Cluster: c, At: s.Now, Healthy: true, UID: c, Owners: []protocol.Owner{{ID: "0e1d2c3b", Source: "https://git.example.com/other"}}})
			}
			s.Turn(time.Second)
		}, impossible, true, "crp/web is not on east: another fleet named"},
		"gone for weeks": {three + "place web of web\n", "east west north", func(s *reports.Fleet) {
			s.Down("west", "connection refused")
			s.Turn(20 * 24 * time.Hour)
		}, pending, true, "crp/web on west: it was available, and the cluster cannot be asked now\nwest: connection refused"},
		"all gone": {three + "place web of web\n", "east west north", func(s *reports.Fleet) {
			for _, c := range []string{"east", "west", "north"} {
				s.Down(c, "connection refused")
			}
			s.Turn(time.Second)
		}, pending, true, "crp/web on east: it was available, and the cluster cannot be asked now"},
		"suspended, and has it": {three + "place web of web\n", "east west north", func(s *reports.Fleet) {
			s.In.Ledger.Suspend(ledger.Suspension{Subject: ledger.Subject{Cluster: "east"}, By: "alice", Reason: "INC-1"})
			s.Turn(time.Second)
		}, met, false, "commit a1a1a1a1 is applied and available"},
		"everything removed": {three + "place web of web\n", "east west north", func(s *reports.Fleet) {
			s.Commit(reports.FirstCommit, "Grace Hopper", "Remove all", three)
			s.Turn(time.Second)
		}, pending, false, "crp/web is being removed from east"},
		"everything removed, and gone": {three + "place web of web\n", "east west north", func(s *reports.Fleet) {
			s.Commit(reports.FirstCommit, "Grace Hopper", "Remove all", three)
			s.Turn(time.Second)
			for _, c := range []string{"east", "west", "north"} {
				s.Says(c, "web", reports.Removed)
			}
			s.Turn(time.Second)
			s.Turn(time.Second)
		}, met, false, "has no placements: there is nothing to apply"},
	} {
		t.Run(name, func(t *testing.T) {
			s := reports.New(t)
			members := strings.Fields(test.seen)
			s.Seen(members...)
			s.Commit(reports.FirstCommit, "Ada Lovelace", "Bring the web", test.manifests)
			for range 5 {
				s.Turn(10 * time.Second)
				for _, c := range members {
					for _, placement := range []string{"web", "all"} {
						s.Says(c, placement)
					}
				}
			}
			if s.Turn(time.Second); test.happens != nil {
				test.happens(s)
			}
			v, lines, _ := progressOf(s.Report, nil, reports.FirstCommit)
			if text := strings.Join(lines, "\n"); v != test.want || !strings.Contains(text, test.line) {
				t.Errorf("sync --wait: %d, want %d:\n%s", v, test.want, text)
			}
			w := &condition{state: "available"}
			if v, message := w.evaluate(&waitReport{Report: s.Report, inForce: true, newest: true}); v != test.want || message == "" {
				t.Errorf("wait: %d, want %d: %s", v, test.want, message)
			}
			if got := overview.New(s.Report).NeedsAttention(); got != test.attention && test.seen != "" {
				t.Errorf("status needs attention: %t", got)
			}
		})
	}
}
