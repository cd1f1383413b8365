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
)

// saysAll has all members say that all is well, as often as it takes.
func (s *stage) saysAll() {
	for range 6 {
		s.turn(10 * time.Second)
		for _, c := range s.in.Head.Clusters {
			for _, placement := range []string{"web", "tools", "spare"} {
				s.says(c.Name, placement)
			}
		}
	}
	s.turn(time.Second)
}

// twoInForce is a fleet that has just got its second commit.
func twoInForce(t *testing.T) *stage {
	s := settledFleet(t)
	s.seen("ams", "ber", "chi", "dal")
	s.commit(secondCommit, "Grace Hopper", "Say two", replaceValue(fleetText, "2"))
	return s
}

// A commit is done when every cluster has it; it is stuck when what is missing
// does not come by itself, and then the reason is told.
func TestProgress(t *testing.T) {
	tests := map[string]struct {
		happens     func(*stage)
		placement   string
		done, stuck bool
		line        string
	}{
		"under way":        {func(s *stage) { s.turn(time.Second) }, "crp/web", false, false, "crp/web on "},
		"done":             {func(s *stage) { s.saysAll() }, "crp/web", true, false, "commit b2b2b2b2 is applied and available"},
		"of no concern":    {func(s *stage) { s.turn(time.Second); s.turn(time.Second) }, "crp/tools", true, false, "commit b2b2b2b2 is applied and available"},
		"cannot be chosen": {func(s *stage) { s.saysAll() }, "", false, true, "crp/spare: could not find all clusters"},
		"suspended": {func(s *stage) {
			s.in.Ledger.Suspend(ledger.Suspension{Subject: ledger.Subject{Cluster: "ams"}, By: "alice", Reason: "INC-1"})
			s.saysAll()
		}, "crp/web", false, true, "crp/web on ams: suspended by alice: INC-1"},
		"stopped": {func(s *stage) {
			s.turn(time.Second)
			for range 3 {
				for _, c := range []string{"ams", "ber", "chi", "dal"} {
					s.says(c, "web", hasFailed("one", "no such image"))
				}
				s.turn(time.Second)
			}
		}, "crp/web", false, true, "crp/web on ams failed: ConfigMap/web/one: no such image\ncrp/web on ber waits: waits for cluster ams"},
		"slow": {func(s *stage) {
			s.turn(time.Second)
			for range 3 {
				s.says("ams", "web", doesNotWork("one", "0 of 2 replicas available"))
				s.turn(15 * time.Second)
			}
		}, "crp/web", false, false, "crp/web on ams is progressing: ConfigMap/web/one: 0 of 2 replicas available\ncrp/web on ber waits: maxUnavailable 1"},
		"slow everywhere": {func(s *stage) {
			s.saysAll()
			s.says("dal", "web", doesNotWork("one", "0 of 2 replicas available"))
			s.turn(time.Second)
		}, "crp/web", false, false, "crp/web on dal is progressing"},
		"failed on the last": {func(s *stage) {
			s.saysAll()
			s.says("dal", "web", hasFailed("one", "no such image"))
			s.turn(time.Second)
		}, "crp/web", false, true, "crp/web on dal failed: ConfigMap/web/one: no such image"},
		"permissions missing": {func(s *stage) {
			s.turn(time.Second)
			for range 3 {
				s.in.Ledger.Fold(ledger.ClusterSeen{Cluster: "ams", At: s.now, Healthy: true, Forbidden: []string{"create, patch deployments.apps", "list secrets"}})
				for _, c := range []string{"ams", "ber", "chi", "dal"} {
					s.says(c, "web", cannotApply("one", "configmaps is forbidden"))
				}
				s.turn(time.Second)
			}
		}, "crp/web", false, true, "\nams: permissions are missing: create, patch deployments.apps; list secrets: grant them"},
		"cannot be used": {func(s *stage) {
			s.in.Ledger.Fold(ledger.ClusterSeen{Cluster: "dal", At: s.now, Forbidden: []string{"list configmaps"}})
			s.saysAll()
		}, "crp/web", false, true, "crp/web on dal waits: permissions are missing: list configmaps"},
		"removed where permissions are missing": {func(s *stage) {
			s.saysAll()
			s.commit(secondCommit, "Grace Hopper", "Stop the web", strings.ReplaceAll(fleetText, "place web", "# place web"))
			s.in.Ledger.Fold(ledger.ClusterSeen{Cluster: "dal", At: s.now, Forbidden: []string{"delete configmaps"}})
			s.turn(time.Second)
			for _, c := range []string{"ams", "ber", "chi"} {
				s.says(c, "web", isRemoved)
			}
			s.turn(time.Second)
		}, "crp/web", false, true, "crp/web is being removed from dal\ndal: permissions are missing: delete configmaps: grant them"},
		"held back": {func(s *stage) {
			s.saysAll()
			s.says("ber", "web", holdsBack("old", "too much"))
			s.turn(time.Second)
		}, "crp/web", false, true, `crp/web on ber: 1 deletion is held: ConfigMap/web/old: too much; if that is a mistake, correct the placement or put back what was removed; otherwise add the trailer "Gitfleet-Allow-Delete: crp/web"`},
		"deletion refused": {func(s *stage) {
			s.saysAll()
			s.says("ber", "web", cannotDelete("old", "admission webhook denied the request"))
			s.turn(time.Second)
		}, "crp/web", false, true, "crp/web on ber: cannot delete ConfigMap/web/old: admission webhook denied the request"},
		"deleted and not gone": {func(s *stage) {
			s.saysAll()
			s.says("ber", "web", lingers("old", "example.com/backup"))
			s.turn(time.Second)
		}, "crp/web", false, false, "crp/web on ber waits for what was deleted to be gone: ConfigMap/web/old (finalizers: example.com/backup)"},
		"left to another": {func(s *stage) {
			s.commit(secondCommit, "Grace Hopper", "Place it again", replaceValue(fleetText, "2")+"place zeal of web\n")
			s.saysAll()
			for _, c := range []string{"ams", "ber", "chi", "dal"} {
				s.says(c, "zeal")
			}
			s.turn(time.Second)
		}, "crp/zeal", false, true, "crp/zeal on ams failed: ConfigMap/docks/one: the placement crp/web (placement-web.yaml:1) selects it as well"},
		"refused": {func(s *stage) {
			s.turn(time.Second)
			s.report.Source.Newest.Hash, s.report.Source.LoadError = badCommit, "no such path"
		}, "", false, true, "commit c3c3c3c3 is refused; b2b2b2b2 stays in force"},
		"not read yet": {func(s *stage) {
			s.turn(time.Second)
			s.report.Source.InForce.Hash, s.report.Source.Newest.Hash, s.report.Source.Git.Head = firstCommit, firstCommit, secondCommit
		}, "", false, false, "commit b2b2b2b2 is being read"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := twoInForce(t)
			test.happens(s)
			p := progressOf(s.report, test.placement, secondCommit)
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
		reports func(*stage) []*status.Report
		want    string
	}{
		"applied in the end": {server.ActionResult{Said: "4 clusters compare their objects with Git now", Commit: secondCommit},
			func(s *stage) []*status.Report {
				s.turn(time.Second)
				first := s.report
				s.saysAll()
				return []*status.Report{first, s.report}
			}, "the repository is at b2b2b2b2; 4 clusters compare their objects with Git now\ncommit b2b2b2b2 is applied and available\n"},
		"suspended": {server.ActionResult{Said: "done", Commit: secondCommit},
			func(s *stage) []*status.Report {
				s.in.Ledger.Suspend(ledger.Suspension{Subject: ledger.Subject{Cluster: "ams"}, By: "alice", Reason: "INC-1"})
				s.saysAll()
				return []*status.Report{s.report}
			}, "the repository is at b2b2b2b2; done\ncrp/web on ams: suspended by alice: INC-1\nexit code 1\n"},
		"deletions held": {server.ActionResult{Said: "done", Commit: secondCommit},
			func(s *stage) []*status.Report {
				s.saysAll()
				s.says("ber", "web", holdsBack("old", "too much"))
				s.turn(time.Second)
				return []*status.Report{s.report}
			}, "the repository is at b2b2b2b2; done\ncrp/web on ber: 1 deletion is held: ConfigMap/web/old: too much; if that is a mistake, correct the placement or put back what was removed; otherwise add the trailer \"Gitfleet-Allow-Delete: crp/web\" to the message of a commit\nexit code 1\n"},
		"unreadable": {server.ActionResult{Trouble: "connection refused"}, func(*stage) []*status.Report { return nil },
			"! gitfleet: the repository cannot be read: connection refused\nexit code 2\n"},
		"too late": {server.ActionResult{Said: "done", Commit: secondCommit},
			func(s *stage) []*status.Report {
				s.turn(time.Second)
				s.turn(time.Second)
				return []*status.Report{s.report}
			}, "not available after 1ms\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := twoInForce(t)
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
	s := twoInForce(t)
	daemon := server.New(nil)
	daemon.Act("sync", func(context.Context, string, []byte) (any, error) {
		return server.ActionResult{Said: "done", Commit: secondCommit}, nil
	})
	srv := httptest.NewServer(daemon.Handler())
	t.Cleanup(srv.Close)
	s.turn(time.Second)
	s.says("ams", "web", doesNotWork("one", "0 of 2 replicas available"))
	s.turn(time.Second)
	daemon.Publish(s.report)
	r := start(t, "sync", "crp/web", "--wait", "--server", srv.URL)
	r.out.until(t, "crp/web: 0/4 of its clusters available; progressing: ams: ConfigMap/web/one: 0 of 2 replicas available\n", 1)
	s.turn(10 * time.Second)
	daemon.Publish(s.report) // which changes nothing
	s.says("ams", "web", doesNotWork("one", "1 of 2 replicas available"))
	s.turn(time.Second)
	daemon.Publish(s.report)
	r.out.until(t, "ConfigMap/web/one: 1 of 2 replicas available\n", 1)
	s.saysAll()
	daemon.Publish(s.report)
	if err := <-r.done; err != nil {
		t.Errorf("ended with %v", err)
	}
	text := r.out.text.String()
	if !strings.HasSuffix(text, "\ncommit b2b2b2b2 is applied and available\n") || strings.Count(text, "0 of 2 replicas") != 1 {
		t.Errorf("it prints\n%s", text)
	}
}
