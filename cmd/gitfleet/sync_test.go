package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/reports"
)

// sync sends a request to the daemon and waits until the commit is applied. The exit code says
// whether it is.
func TestSyncWaits(t *testing.T) {
	tests := map[string]struct {
		answer  server.ActionResult
		reports func(*reports.Fleet) []*status.Report
		want    string
	}{
		"applied in the end": {server.ActionResult{Message: "4 clusters compare their objects with Git now", Commit: reports.SecondCommit},
			func(s *reports.Fleet) []*status.Report {
				s.Turn(time.Second)
				first := s.Report
				s.SaysAll()
				return []*status.Report{first, s.Report}
			}, "the repository is at b2b2b2b2; 4 clusters compare their objects with Git now\ncommit b2b2b2b2 is applied and available\n"},
		"suspended": {server.ActionResult{Message: "done", Commit: reports.SecondCommit},
			func(s *reports.Fleet) []*status.Report {
				s.In.Ledger.Suspend(ledger.Suspension{Subject: ledger.Subject{Cluster: "ams"}, By: "alice", Reason: "INC-1"})
				s.SaysAll()
				return []*status.Report{s.Report}
			}, "the repository is at b2b2b2b2; done\ncrp/web on ams: suspended by alice: INC-1\nexit code 1\n"},
		"deletions held": {server.ActionResult{Message: "done", Commit: reports.SecondCommit},
			func(s *reports.Fleet) []*status.Report {
				s.SaysAll()
				s.Says("ber", "web", reports.BlockedDeletion("old", "too much"))
				s.Turn(time.Second)
				return []*status.Report{s.Report}
			}, "the repository is at b2b2b2b2; done\ncrp/web on ber: 1 deletion is blocked: ConfigMap/web/old: too much; if that is a mistake, correct the placement or put back what was removed; otherwise add the trailer \"Gitfleet-Allow-Delete: crp/web\" to the message of a commit\nexit code 1\n"},
		"unreadable": {server.ActionResult{PollError: "connection refused"}, func(*reports.Fleet) []*status.Report { return nil },
			"! gitfleet: the repository cannot be read: connection refused\nexit code 2\n"},
		"too late": {server.ActionResult{Message: "done", Commit: reports.SecondCommit},
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
			daemon.MountAction("sync", func(context.Context, string, []byte) (any, error) {
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

// A report from before the commit, as another replica may have it, is not taken for the result, although everything in it is
// available. Its commit may have the same time.
func TestSyncWaitsForItsCommit(t *testing.T) {
	for name, test := range map[string]struct {
		descends bool
		err      error
		want     string
	}{
		"an ancestor":            {true, nil, "commit b2b2b2b2 is not in force yet: a1a1a1a1 is\nnot available after 1ms\n"},
		"a replica that lags":    {false, fmt.Errorf("there is no such commit: %w", server.ErrUnknownCommit), "commit b2b2b2b2 is not in force yet: a1a1a1a1 is\nnot available after 1ms\n"},
		"of a rewritten history": {false, nil, "commit a1a1a1a1 is applied and available\n"},
	} {
		t.Run(name, func(t *testing.T) {
			daemon := server.New(nil)
			daemon.Publish(reports.Settled(t).Report)
			daemon.MountAction("sync", func(context.Context, string, []byte) (any, error) {
				return server.ActionResult{Message: "done", Commit: reports.SecondCommit}, nil
			})
			daemon.MountContains(func(_ context.Context, head, commit string) (bool, error) {
				if head != reports.SecondCommit || commit != reports.FirstCommit {
					t.Errorf("asked whether %s contains %s", head, commit)
				}
				return test.descends, test.err
			})
			srv := httptest.NewServer(daemon.Handler())
			t.Cleanup(srv.Close)
			var out bytes.Buffer
			transcribe(&out, "sync", "crp/web", "--wait", "--timeout", "1ms", "--server", srv.URL)
			if got := out.String(); !strings.Contains(got, test.want) {
				t.Errorf("it prints\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// sync prints a line for each change of the progress, and ends when everything is available.
func TestSyncShowsProgress(t *testing.T) {
	s := reports.Revised(t)
	daemon := server.New(nil)
	daemon.MountAction("sync", func(context.Context, string, []byte) (any, error) {
		return server.ActionResult{Message: "done", Commit: reports.SecondCommit}, nil
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
	daemon.Publish(s.Report) // a report without a change
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
