package main

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/golden"
	"github.com/gitfleet/gitfleet/test/reports"
)

// The output of status. It must change only on purpose.
func TestStatus(t *testing.T) {
	fleets := map[string]*status.Report{
		"settled": reports.Settled(t).Report, "troubled": reports.Troubled(t).Report,
		"empty": {At: reports.Noon}, "starting": {At: reports.Noon, Source: status.Source{Git: status.Git{URL: "https://git.example.com/fleet", Ref: "refs/heads/main"}}},
	}
	book := golden.Open(t, "testdata/status.txt")
	for name, report := range fleets {
		_, address := listening(t, report)
		for suffix, args := range map[string][]string{"": nil, "-json": {"-o", "json"}} {
			if name == "starting" && suffix != "" {
				continue // its document is that of an empty fleet with the source
			}
			t.Run(name+suffix, func(t *testing.T) {
				var got bytes.Buffer
				transcribe(&got, append([]string{"status", "--server", address}, args...)...)
				book.Compare(t, name+suffix, got.String())
				for line := range strings.Lines(got.String()) {
					if suffix == "" && output.Width(line)-1 > 80 {
						t.Errorf("%d columns: %s", output.Width(line)-1, line)
					}
				}
			})
		}
	}
}

// Without a terminal, --watch prints the present state and then each change. That time passes
// is not a change.
func TestStatusWatchTellsChanges(t *testing.T) {
	s := reports.Settled(t)
	daemon, address := listening(t, s.Report)
	out := &pages{news: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	root := newRoot()
	root.SetArgs([]string{"status", "--watch", "--server", address})
	root.SetOut(out)
	go func() { done <- root.ExecuteContext(ctx) }()
	out.until(t, "PLACEMENT", 1)
	for range 3 {
		s.Turn(time.Minute)
		daemon.Publish(s.Report)
	}
	s.Down("chi", "gone for good")
	s.Turn(time.Minute)
	daemon.Publish(s.Report)
	out.until(t, "gone for good", 1)
	cancel()
	if err := <-done; err != nil {
		t.Errorf("ended with %v", err)
	}
	if n := strings.Count(out.text.String(), "PLACEMENT"); n != 2 {
		t.Errorf("printed %d times:\n%s", n, &out.text)
	}
}

// If only a user can repair a member, the exit code of status is 1. A member that does not
// answer may recover, and is only listed.
func TestStatusOfMembersThatCannotBeUsed(t *testing.T) {
	denied := []string{"list, watch configmaps", "create, delete, patch deployments.apps in namespace web"}
	tests := map[string]struct {
		happens   func(*reports.Fleet)
		attention bool
		says      string
		words     map[string]string // words of placements
	}{
		"unreachable": {func(s *reports.Fleet) { s.Down("dal", "connection refused") }, true,
			"dal unreachable for 0s: connection refused", map[string]string{"crp/web": "unreachable"}},
		"forbidden": {func(s *reports.Fleet) {
			s.In.Ledger.Fold(protocol.ClusterSeen{Cluster: "dal", At: s.Now, Forbidden: denied})
		}, true, "dal forbidden for 0s: permissions are missing: list, watch configmaps; create, delete, patch deployments.apps in namespace web: grant them to the user whose credentials gitfleet uses there",
			map[string]string{"crp/web": "forbidden"}},
		"forbidden in part": {func(s *reports.Fleet) {
			s.In.Ledger.Fold(protocol.ClusterSeen{Cluster: "dal", At: s.Now, Healthy: true, Forbidden: denied[1:]})
		}, true, "dal forbidden for 0s: permissions are missing: create, delete, patch deployments.apps in namespace web: grant",
			map[string]string{"crp/web": "available"}},
		"held by another fleet": {func(s *reports.Fleet) {
			s.In.Ledger.SetFleet(protocol.Fleet{Name: "prod", ID: "11111111-ours"})
			s.In.Ledger.Fold(protocol.ClusterSeen{Cluster: "dal", At: s.Now, Healthy: true, Owners: []protocol.Owner{{ID: "5f0c2a9e-theirs", Source: "https://git.example.com/other"}}})
		}, true, "dal not ready for 120m: another fleet named", nil},
		"all is well": {func(s *reports.Fleet) {
			s.Commit(reports.SecondCommit, "Grace Hopper", "Ask for fewer", reports.WithValue(strings.ReplaceAll(reports.Manifests, "pick 3", "pick 2"), "1"))
		}, false, "4 of 4 ready", map[string]string{"crp/web": "available"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := reports.Settled(t)
			test.happens(s)
			s.Turn(0)
			_, address := listening(t, s.Report)
			var out bytes.Buffer
			transcribe(&out, "status", "--server", address)
			if said := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(said, test.says) {
				t.Errorf("it does not say %q:\n%s", test.says, &out)
			}
			for name, word := range test.words {
				if !regexp.MustCompile(`(?m)^` + name + ` .*\] .* ` + word + `$`).MatchString(out.String()) {
					t.Errorf("%s is not %s:\n%s", name, word, &out)
				}
			}
			if exits := strings.Contains(out.String(), "exit code 1"); exits != test.attention {
				t.Errorf("status exits with 1: %t\n%s", exits, &out)
			}
			transcribe(&out, "describe", "mc", "dal", "--server", address)
			for line := range strings.Lines(out.String()) {
				if output.Width(line)-1 > 80 {
					t.Errorf("%d columns: %s", output.Width(line)-1, line)
				}
			}
		})
	}
}

// A placement that was removed from the repository is described with its own policy, and listed
// as deleted, until all of its objects are gone.
func TestADeletedPlacementIsDescribed(t *testing.T) {
	s := reports.Settled(t)
	s.Commit(reports.SecondCommit, "Grace Hopper", "Remove the tools", strings.Replace(reports.WithValue(reports.Manifests, "1"), "place tools of tools pick 2 near eu\n", "", 1))
	s.Turn(10 * time.Second)
	s.Turn(3 * time.Minute)
	_, address := listening(t, s.Report)
	for args, want := range map[string]string{
		"describe crp/tools": "ago; what it placed is being cleaned up",
		"describe tools":     "PickN 2",
		"get crp":            "tools 1 False 1 - -",
		"get crp tools":      "tools 1 False 1 - -",
	} {
		var out bytes.Buffer
		transcribe(&out, append(strings.Fields(args), "--server", address)...)
		if said := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(said, want) {
			t.Errorf("%s does not say %q:\n%s", args, want, &out)
		}
		for line := range strings.Lines(out.String()) {
			if output.Width(line)-1 > 80 {
				t.Errorf("%s: %d columns: %s", args, output.Width(line)-1, line)
			}
		}
	}
}

func TestStatusRefusesWrongArguments(t *testing.T) {
	for _, args := range [][]string{{"status", "crp"}, {"status", "-o", "xml"}} {
		var out, errOut bytes.Buffer
		if code := run(args, &out, &errOut); code != exit.Failed || errOut.Len() == 0 {
			t.Errorf("%v: exit code %d: %s", args, code, &errOut)
		}
	}
}
