package operate

import (
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/reports"
)

// The wait for a commit is met when every cluster has it. It is impossible when something that is
// missing will not come by itself, and the reason is printed.
func TestProgress(t *testing.T) {
	tests := map[string]struct {
		happens   func(*reports.Fleet)
		placement string
		want      outcome
		line      string
	}{
		"under way": {func(s *reports.Fleet) { s.Turn(time.Second) }, "crp/web", pending, "crp/web on "},
		"done":      {func(s *reports.Fleet) { s.SaysAll() }, "crp/web", met, "commit b2b2b2b2 is applied and available"},
		"with what differs": {func(s *reports.Fleet) {
			s.SaysAll()
			s.Says("ams", "web", reports.Contested("one", "kubectl"))
			s.Turn(time.Second)
		}, "crp/web", met, "commit b2b2b2b2 is applied and available; 1 object differs from Git, see gitfleet drift list"},
		"of no concern":    {func(s *reports.Fleet) { s.Turn(time.Second); s.Turn(time.Second) }, "crp/tools", met, "commit b2b2b2b2 is applied and available"},
		"cannot be chosen": {func(s *reports.Fleet) { s.SaysAll() }, "", impossible, "crp/spare: could not find all clusters"},
		"suspended": {func(s *reports.Fleet) {
			s.In.Ledger.Suspend(ledger.Suspension{Subject: ledger.Subject{Cluster: "ams"}, By: "alice", Reason: "INC-1"})
			s.SaysAll()
		}, "crp/web", impossible, "crp/web on ams: suspended by alice: INC-1"},
		"stopped": {func(s *reports.Fleet) {
			s.Turn(time.Second)
			for range 3 {
				for _, c := range []string{"ams", "ber", "chi", "dal"} {
					s.Says(c, "web", reports.Failed("one", "no such image"))
				}
				s.Turn(time.Second)
			}
		}, "crp/web", impossible, "crp/web on ams failed: ConfigMap/web/one: no such image\ncrp/web on ber: waits for cluster ams"},
		"slow": {func(s *reports.Fleet) {
			s.Turn(time.Second)
			for range 3 {
				s.Says("ams", "web", reports.NotAvailable("one", "0 of 2 replicas available"))
				s.Turn(15 * time.Second)
			}
		}, "crp/web", pending, "crp/web on ams is progressing: ConfigMap/web/one: 0 of 2 replicas available\ncrp/web on ber: maxUnavailable 1"},
		"slow everywhere": {func(s *reports.Fleet) {
			s.SaysAll()
			s.Says("dal", "web", reports.NotAvailable("one", "0 of 2 replicas available"))
			s.Turn(time.Second)
		}, "crp/web", pending, "crp/web on dal is progressing"},
		"failed on the last": {func(s *reports.Fleet) {
			s.SaysAll()
			s.Says("dal", "web", reports.Failed("one", "no such image"))
			s.Turn(time.Second)
		}, "crp/web", impossible, "crp/web on dal failed: ConfigMap/web/one: no such image"},
		"permissions missing": {func(s *reports.Fleet) {
			s.Turn(time.Second)
			for range 3 {
				s.In.Ledger.Fold(protocol.ClusterSeen{Cluster: "ams", At: s.Now, Healthy: true, Forbidden: []string{"create, patch deployments.apps", "list secrets"}})
				for _, c := range []string{"ams", "ber", "chi", "dal"} {
					s.Says(c, "web", reports.NotApplied("one", "configmaps is forbidden"))
				}
				s.Turn(time.Second)
			}
		}, "crp/web", impossible, "\nams: permissions are missing: create, patch deployments.apps; list secrets: grant them"},
		"cannot be used": {func(s *reports.Fleet) {
			s.In.Ledger.Fold(protocol.ClusterSeen{Cluster: "dal", At: s.Now, Forbidden: []string{"list configmaps"}})
			s.SaysAll()
		}, "crp/web", impossible, "crp/web on dal: permissions are missing: list configmaps"},
		"removed where permissions are missing": {func(s *reports.Fleet) {
			s.SaysAll()
			s.Commit(reports.SecondCommit, "Grace Hopper", "Stop the web", strings.ReplaceAll(reports.Manifests, "place web", "# place web"))
			s.In.Ledger.Fold(protocol.ClusterSeen{Cluster: "dal", At: s.Now, Forbidden: []string{"delete configmaps"}})
			s.Turn(time.Second)
			for _, c := range []string{"ams", "ber", "chi"} {
				s.Says(c, "web", reports.Removed)
			}
			s.Turn(time.Second)
		}, "crp/web", impossible, "crp/web is being removed from dal\ndal: permissions are missing: delete configmaps: grant them"},
		"held back": {func(s *reports.Fleet) {
			s.SaysAll()
			s.Says("ber", "web", reports.BlockedDeletion("old", "too much"))
			s.Turn(time.Second)
		}, "crp/web", impossible, `crp/web on ber: 1 deletion is blocked: ConfigMap/web/old: too much; if that is a mistake, correct the placement or put back what was removed; otherwise add the trailer "Gitfleet-Allow-Delete: crp/web"`},
		"deletion refused": {func(s *reports.Fleet) {
			s.SaysAll()
			s.Says("ber", "web", reports.NotDeleted("old", "admission webhook denied the request"))
			s.Turn(time.Second)
		}, "crp/web", impossible, "crp/web on ber: cannot delete ConfigMap/web/old: admission webhook denied the request"},
		"deleted and not gone": {func(s *reports.Fleet) {
			s.SaysAll()
			s.Says("ber", "web", reports.Lingering("old", "example.com/backup"))
			s.Turn(time.Second)
		}, "crp/web", pending, "crp/web on ber waits for what was deleted to be gone: ConfigMap/web/old (finalizers: example.com/backup)"},
		"left to another": {func(s *reports.Fleet) {
			s.Commit(reports.SecondCommit, "Grace Hopper", "Place it again", reports.WithValue(reports.Manifests, "2")+"place zeal of web\n")
			s.SaysAll()
			for _, c := range []string{"ams", "ber", "chi", "dal"} {
				s.Says(c, "zeal")
			}
			s.Turn(time.Second)
		}, "crp/zeal", impossible, "crp/zeal on ams failed: ConfigMap/docks/one: the placement crp/web (placement-web.yaml:1) selects it as well"},
		"refused": {func(s *reports.Fleet) {
			s.Turn(time.Second)
			s.Report.Source.Newest.Hash, s.Report.Source.LoadError = reports.BadCommit, "no such path"
		}, "", impossible, "commit c3c3c3c3 is refused; b2b2b2b2 stays in force"},
		"waits for what is fetched": {func(s *reports.Fleet) {
			s.Turn(time.Second)
			s.Report.Source.Newest.Hash, s.Report.Source.Fetches = reports.BadCommit, []string{"oci://registry.example.com/web:^1"}
		}, "", pending, "commit c3c3c3c3 waits until its remote bases and charts are fetched: oci://registry.example.com/web:^1; b2b2b2b2 stays in force"},
		"fetches for the commit in force": {func(s *reports.Fleet) {
			s.SaysAll()
			s.Report.Source.Fetches = []string{"oci://registry.example.com/web:^1"}
		}, "crp/web", met, "commit b2b2b2b2 is applied and available"},
		"not read yet": {func(s *reports.Fleet) {
			s.Turn(time.Second)
			s.Report.Source.InForce.Hash, s.Report.Source.Newest.Hash, s.Report.Source.Git.Head = reports.FirstCommit, reports.FirstCommit, reports.SecondCommit
		}, "", pending, "commit b2b2b2b2 is being read"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := reports.Revised(t)
			test.happens(s)
			v, lines, _ := progressOf(s.Report, strings.Fields(test.placement), reports.SecondCommit)
			if v != test.want || !strings.Contains(strings.Join(lines, "\n"), test.line) {
				t.Errorf("%d:\n%s", v, strings.Join(lines, "\n"))
			}
		})
	}
}
