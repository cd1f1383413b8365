package main

import (
	"bytes"
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/reports"
)

// A commit is done when every cluster has it; it is stuck when what is missing
// does not come by itself, and then the reason is told.
func TestProgress(t *testing.T) {
	tests := map[string]struct {
		happens     func(*reports.Fleet)
		placement   string
		done, stuck bool
		line        string
	}{
		"under way":        {func(s *reports.Fleet) { s.Turn(time.Second) }, "crp/web", false, false, "crp/web on "},
		"done":             {func(s *reports.Fleet) { s.SaysAll() }, "crp/web", true, false, "commit b2b2b2b2 is applied and available"},
		"of no concern":    {func(s *reports.Fleet) { s.Turn(time.Second); s.Turn(time.Second) }, "crp/tools", true, false, "commit b2b2b2b2 is applied and available"},
		"cannot be chosen": {func(s *reports.Fleet) { s.SaysAll() }, "", false, true, "crp/spare: could not find all clusters"},
		"suspended": {func(s *reports.Fleet) {
			s.In.Ledger.Suspend(ledger.Suspension{Subject: ledger.Subject{Cluster: "ams"}, By: "alice", Reason: "INC-1"})
			s.SaysAll()
		}, "crp/web", false, true, "crp/web on ams: suspended by alice: INC-1"},
		"stopped": {func(s *reports.Fleet) {
			s.Turn(time.Second)
			for range 3 {
				for _, c := range []string{"ams", "ber", "chi", "dal"} {
					s.Says(c, "web", reports.Failed("one", "no such image"))
				}
				s.Turn(time.Second)
			}
		}, "crp/web", false, true, "crp/web on ams failed: ConfigMap/web/one: no such image\ncrp/web on ber waits: waits for cluster ams"},
		"slow": {func(s *reports.Fleet) {
			s.Turn(time.Second)
			for range 3 {
				s.Says("ams", "web", reports.NotAvailable("one", "0 of 2 replicas available"))
				s.Turn(15 * time.Second)
			}
		}, "crp/web", false, false, "crp/web on ams is progressing: ConfigMap/web/one: 0 of 2 replicas available\ncrp/web on ber waits: maxUnavailable 1"},
		"slow everywhere": {func(s *reports.Fleet) {
			s.SaysAll()
			s.Says("dal", "web", reports.NotAvailable("one", "0 of 2 replicas available"))
			s.Turn(time.Second)
		}, "crp/web", false, false, "crp/web on dal is progressing"},
		"failed on the last": {func(s *reports.Fleet) {
			s.SaysAll()
			s.Says("dal", "web", reports.Failed("one", "no such image"))
			s.Turn(time.Second)
		}, "crp/web", false, true, "crp/web on dal failed: ConfigMap/web/one: no such image"},
		"permissions missing": {func(s *reports.Fleet) {
			s.Turn(time.Second)
			for range 3 {
				s.In.Ledger.Fold(ledger.ClusterSeen{Cluster: "ams", At: s.Now, Healthy: true, Forbidden: []string{"create, patch deployments.apps", "list secrets"}})
				for _, c := range []string{"ams", "ber", "chi", "dal"} {
					s.Says(c, "web", reports.NotApplied("one", "configmaps is forbidden"))
				}
				s.Turn(time.Second)
			}
		}, "crp/web", false, true, "\nams: permissions are missing: create, patch deployments.apps; list secrets: grant them"},
		"cannot be used": {func(s *reports.Fleet) {
			s.In.Ledger.Fold(ledger.ClusterSeen{Cluster: "dal", At: s.Now, Forbidden: []string{"list configmaps"}})
			s.SaysAll()
		}, "crp/web", false, true, "crp/web on dal waits: permissions are missing: list configmaps"},
		"removed where permissions are missing": {func(s *reports.Fleet) {
			s.SaysAll()
			s.Commit(reports.SecondCommit, "Grace Hopper", "Stop the web", strings.ReplaceAll(reports.Manifests, "place web", "# place web"))
			s.In.Ledger.Fold(ledger.ClusterSeen{Cluster: "dal", At: s.Now, Forbidden: []string{"delete configmaps"}})
			s.Turn(time.Second)
			for _, c := range []string{"ams", "ber", "chi"} {
				s.Says(c, "web", reports.Removed)
			}
			s.Turn(time.Second)
		}, "crp/web", false, true, "crp/web is being removed from dal\ndal: permissions are missing: delete configmaps: grant them"},
		"held back": {func(s *reports.Fleet) {
			s.SaysAll()
			s.Says("ber", "web", reports.Held("old", "too much"))
			s.Turn(time.Second)
		}, "crp/web", false, true, `crp/web on ber: 1 deletion is held: ConfigMap/web/old: too much; if that is a mistake, correct the placement or put back what was removed; otherwise add the trailer "Gitfleet-Allow-Delete: crp/web"`},
		"deletion refused": {func(s *reports.Fleet) {
			s.SaysAll()
			s.Says("ber", "web", reports.NotDeleted("old", "admission webhook denied the request"))
			s.Turn(time.Second)
		}, "crp/web", false, true, "crp/web on ber: cannot delete ConfigMap/web/old: admission webhook denied the request"},
		"deleted and not gone": {func(s *reports.Fleet) {
			s.SaysAll()
			s.Says("ber", "web", reports.Lingering("old", "example.com/backup"))
			s.Turn(time.Second)
		}, "crp/web", false, false, "crp/web on ber waits for what was deleted to be gone: ConfigMap/web/old (finalizers: example.com/backup)"},
		"left to another": {func(s *reports.Fleet) {
			s.Commit(reports.SecondCommit, "Grace Hopper", "Place it again", reports.WithValue(reports.Manifests, "2")+"place zeal of web\n")
			s.SaysAll()
			for _, c := range []string{"ams", "ber", "chi", "dal"} {
				s.Says(c, "zeal")
			}
			s.Turn(time.Second)
		}, "crp/zeal", false, true, "crp/zeal on ams failed: ConfigMap/docks/one: the placement crp/web (placement-web.yaml:1) selects it as well"},
		"refused": {func(s *reports.Fleet) {
			s.Turn(time.Second)
			s.Report.Source.Newest.Hash, s.Report.Source.LoadError = reports.BadCommit, "no such path"
		}, "", false, true, "commit c3c3c3c3 is refused; b2b2b2b2 stays in force"},
		"not read yet": {func(s *reports.Fleet) {
			s.Turn(time.Second)
			s.Report.Source.InForce.Hash, s.Report.Source.Newest.Hash, s.Report.Source.Git.Head = reports.FirstCommit, reports.FirstCommit, reports.SecondCommit
		}, "", false, false, "commit b2b2b2b2 is being read"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := reports.Revised(t)
			test.happens(s)
			p := progressOf(s.Report, test.placement, reports.SecondCommit)
			if p.done != test.done || p.stuck != test.stuck || !strings.Contains(strings.Join(p.lines, "\n"), test.line) {
				t.Errorf("done %t, stuck %t:\n%s", p.done, p.stuck, strings.Join(p.lines, "\n"))
			}
		})
	}
}

// Sync asks the daemon, follows it until the commit is applied, and its exit
// code says whether it is.
func TestSyncWaits(t *testing.T) {
	tests := map[string]struct {
		answer  server.ActionResult
		reports func(*reports.Fleet) []*status.Report
		want    string
	}{
		"applied in the end": {server.ActionResult{Said: "4 clusters compare their objects with Git now", Commit: reports.SecondCommit},
			func(s *reports.Fleet) []*status.Report {
				s.Turn(time.Second)
				first := s.Report
				s.SaysAll()
				return []*status.Report{first, s.Report}
			}, "the repository is at b2b2b2b2; 4 clusters compare their objects with Git now\ncommit b2b2b2b2 is applied and available\n"},
		"suspended": {server.ActionResult{Said: "done", Commit: reports.SecondCommit},
			func(s *reports.Fleet) []*status.Report {
				s.In.Ledger.Suspend(ledger.Suspension{Subject: ledger.Subject{Cluster: "ams"}, By: "alice", Reason: "INC-1"})
				s.SaysAll()
				return []*status.Report{s.Report}
			}, "the repository is at b2b2b2b2; done\ncrp/web on ams: suspended by alice: INC-1\nexit code 1\n"},
		"deletions held": {server.ActionResult{Said: "done", Commit: reports.SecondCommit},
			func(s *reports.Fleet) []*status.Report {
				s.SaysAll()
				s.Says("ber", "web", reports.Held("old", "too much"))
				s.Turn(time.Second)
				return []*status.Report{s.Report}
			}, "the repository is at b2b2b2b2; done\ncrp/web on ber: 1 deletion is held: ConfigMap/web/old: too much; if that is a mistake, correct the placement or put back what was removed; otherwise add the trailer \"Gitfleet-Allow-Delete: crp/web\" to the message of a commit\nexit code 1\n"},
		"unreadable": {server.ActionResult{Trouble: "connection refused"}, func(*reports.Fleet) []*status.Report { return nil },
			"! gitfleet: the repository cannot be read: connection refused\nexit code 2\n"},
		"too late": {server.ActionResult{Said: "done", Commit: reports.SecondCommit},
			func(s *reports.Fleet) []*status.Report {
				s.Turn(time.Second)
				s.Turn(time.Second)
				return []*status.Report{s.Report}
			}, "not available after 1ms\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := reports.Revised(t)
			daemon := server.New(nil)
			reports := test.reports(s)
			daemon.Act("sync", func(context.Context, string, []byte) (any, error) {
				for _, r := range reports {
					daemon.Publish(r)
				}
				return test.answer, nil
			})
			srv := httptest.NewServer(daemon.Handler())
			t.Cleanup(srv.Close)
			args := []string{"sync", "crp/web", "--wait", "--server", srv.URL}
			if name == "too late" {
				args = append(args, "--timeout", "1ms")
			}
			var out bytes.Buffer
			transcribe(&out, args...)
			if got := out.String(); got != test.want && !(name == "too late" && strings.Contains(got, test.want) && strings.HasSuffix(got, "exit code 1\n")) {
				t.Errorf("it prints\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// Sync waits through progress, with a line for each change, and ends when all is
// available.
func TestSyncShowsProgress(t *testing.T) {
	s := reports.Revised(t)
	daemon := server.New(nil)
	daemon.Act("sync", func(context.Context, string, []byte) (any, error) {
		return server.ActionResult{Said: "done", Commit: reports.SecondCommit}, nil
	})
	srv := httptest.NewServer(daemon.Handler())
	t.Cleanup(srv.Close)
	s.Turn(time.Second)
	s.Says("ams", "web", reports.NotAvailable("one", "0 of 2 replicas available"))
	s.Turn(time.Second)
	daemon.Publish(s.Report)
	r := start(t, "sync", "crp/web", "--wait", "--server", srv.URL)
	r.out.until(t, "crp/web: 0/4 of its clusters available; progressing: ams: ConfigMap/web/one: 0 of 2 replicas available\n", 1)
	s.Turn(10 * time.Second)
	daemon.Publish(s.Report) // which changes nothing
	s.Says("ams", "web", reports.NotAvailable("one", "1 of 2 replicas available"))
	s.Turn(time.Second)
	daemon.Publish(s.Report)
	r.out.until(t, "ConfigMap/web/one: 1 of 2 replicas available\n", 1)
	s.SaysAll()
	daemon.Publish(s.Report)
	if err := <-r.done; err != nil {
		t.Errorf("ended with %v", err)
	}
	text := r.out.text.String()
	if !strings.HasSuffix(text, "\ncommit b2b2b2b2 is applied and available\n") || strings.Count(text, "0 of 2 replicas") != 1 {
		t.Errorf("it prints\n%s", text)
	}
}
