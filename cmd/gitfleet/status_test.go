package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/golden"
)

// What status prints is what its readers see: it changes on purpose only.
func TestStatus(t *testing.T) {
	fleets := map[string]*status.Report{
		"settled": settledFleet(t).report, "troubled": troubledFleet(t).report,
		"empty": {At: noon}, "starting": {At: noon, Source: status.Source{Git: status.Git{URL: "https://git.example.com/fleet", Ref: "refs/heads/main"}}},
	}
	for name, report := range fleets {
		_, address := listening(t, report)
		for suffix, args := range map[string][]string{"": nil, "-all": {"--all"}, "-json": {"-o", "json"}} {
			t.Run(name+suffix, func(t *testing.T) {
				var got bytes.Buffer
				transcribe(&got, append([]string{"status", "--server", address}, args...)...)
				golden.File(t, "testdata/status/"+name+suffix+".txt", got.String())
				for line := range strings.Lines(got.String()) {
					if suffix == "" && output.Width(line)-1 > 80 {
						t.Errorf("%d columns: %s", output.Width(line)-1, line)
					}
				}
			})
		}
	}
}

// However many placements and clusters there are, the first page shows those
// with trouble, and fits.
func TestStatusOfALargeFleet(t *testing.T) {
	r := &status.Report{At: noon}
	for i := range 300 {
		d := &status.Detail{Placement: "crp/" + strings.Repeat("long-", i%9) + string(rune('a'+i%26))}
		for j := range 250 {
			d.Clusters = append(d.Clusters, status.ClusterDetail{Cluster: "c", Available: i%7 > 0 || j > 3, Applied: true, Commit: firstCommit})
		}
		r.Details = append(r.Details, d)
	}
	r.Clusters = append(r.Clusters, cluster("c", true))
	lines := newOverview(r).text(output.Page{Width: 80}, noon, false)
	if len(lines) > 40 {
		t.Errorf("%d lines", len(lines))
	}
	troubled := 0
	for _, line := range lines {
		if output.Width(line) > 80 {
			t.Errorf("%d columns: %s", output.Width(line), line)
		}
		if strings.HasSuffix(line, "  progressing") {
			troubled++
		}
	}
	if troubled != fewPlacements {
		t.Errorf("%d placements with trouble are shown:\n%s", troubled, strings.Join(lines, "\n"))
	}
}

// A bar is full when there is nothing left to do, and has a mark for whatever is
// there.
func TestBar(t *testing.T) {
	for name, test := range map[string]struct {
		counts  map[state]int
		missing int
		want    string
	}{
		"nothing":       {nil, 0, "[          ]"},
		"none found":    {nil, 3, "[          ]"},
		"one":           {map[state]int{available: 1}, 0, "[##########]"},
		"few":           {map[state]int{available: 3, waiting: 2}, 0, "[######....]"},
		"one missing":   {map[state]int{available: 2}, 1, "[#######   ]"},
		"a few missing": {map[state]int{available: 999}, 1, "[######### ]"},
		"exactly":       {map[state]int{available: 8, failed: 2}, 0, "[########!!]"},
		"many":          {map[state]int{available: 500, rolling: 500}, 0, "[#####>>>>>]"},
		"one of all":    {map[state]int{available: 999, failed: 1}, 0, "[#########!]"},
		"every state": {map[state]int{available: 1000, progressing: 1, rolling: 1, waiting: 1, failed: 1, unreachable: 1, removing: 1}, 0,
			"[####=>.!?-]"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := bar(output.Page{}, test.counts, test.missing, 10); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// Colours do not move anything.
func TestColoursAreOnlyColours(t *testing.T) {
	o := newOverview(troubledFleet(t).report)
	plain := o.text(output.Page{Width: 80}, o.At, true)
	painted := strings.Join(o.text(output.Page{Width: 80, Color: true}, o.At, true), "\n")
	if !strings.Contains(painted, "\033[31m") {
		t.Error("nothing is red")
	}
	for _, s := range []output.Style{output.Bold, output.Dim, output.Red, output.Green, output.Yellow, output.Cyan} {
		painted = strings.ReplaceAll(painted, "\033["+string(s)+"m", "")
	}
	if painted = strings.ReplaceAll(painted, "\033[0m", ""); painted != strings.Join(plain, "\n") {
		t.Errorf("without colours it is\n%s", painted)
	}
}

// Where there is no terminal, a watcher prints what is there and then each
// change; the mere passing of time is none.
func TestStatusWatchTellsChanges(t *testing.T) {
	s := settledFleet(t)
	daemon, address := listening(t, s.report)
	out := &pages{news: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	root := newRoot()
	root.SetArgs([]string{"status", "--watch", "--server", address})
	root.SetOut(out)
	go func() { done <- root.ExecuteContext(ctx) }()
	out.until(t, "PLACEMENT", 1)
	for range 3 {
		s.turn(time.Minute)
		daemon.Publish(s.report)
	}
	s.down("chi", "gone for good")
	s.turn(time.Minute)
	daemon.Publish(s.report)
	out.until(t, "gone for good", 1)
	cancel()
	if err := <-done; err != nil {
		t.Errorf("ended with %v", err)
	}
	if n := strings.Count(out.text.String(), "PLACEMENT"); n != 2 {
		t.Errorf("printed %d times:\n%s", n, &out.text)
	}
}

// A screen is replaced line by line, and never scrolls.
func TestAScreenfulFits(t *testing.T) {
	lines := []string{"one", "two", "three", "four"}
	for name, test := range map[string]struct {
		p    output.Page
		want string
	}{
		"room enough": {output.Page{Width: 20, Height: 9}, "\033[Hone\033[K\r\ntwo\033[K\r\nthree\033[K\r\nfour\033[K\r\n\033[J"},
		"too low":     {output.Page{Width: 20, Height: 4}, "\033[Hone\033[K\r\ntwo\033[K\r\n… 2 more lines; make the window higher\033[K\r\n\033[J"},
		"hardly any":  {output.Page{Width: 20, Height: 1}, "\033[H… 5 more lines; make the window higher\033[K\r\n\033[J"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := output.Screenful(test.p, lines, nil); got != test.want {
				t.Errorf("got %q\nwant %q", got, test.want)
			}
		})
	}
	if lines[2] != "three" {
		t.Error("it changes what it was given")
	}
}

// A member that only a person can repair makes status exit with 1; one that does not
// answer may recover, and is only listed.
func TestStatusOfMembersThatCannotBeUsed(t *testing.T) {
	denied := []string{"list, watch configmaps", "create, delete, patch deployments.apps in namespace web"}
	tests := map[string]struct {
		happens   func(*stage)
		attention bool
		says      string
		words     map[string]string // of placements
	}{
		"unreachable": {func(s *stage) { s.down("dal", "connection refused") }, false,
			"dal unreachable for 0s: connection refused", map[string]string{"crp/web": "unreachable"}},
		"forbidden": {func(s *stage) {
			s.in.Ledger.Fold(ledger.ClusterSeen{Cluster: "dal", At: s.now, Forbidden: denied})
		}, true, "dal forbidden for 0s: permissions are missing: list, watch configmaps; create, delete, patch deployments.apps in namespace web: grant them to the user whose credentials gitfleet uses there",
			map[string]string{"crp/web": "forbidden"}},
		"forbidden in part": {func(s *stage) {
			s.in.Ledger.Fold(ledger.ClusterSeen{Cluster: "dal", At: s.now, Healthy: true, Forbidden: denied[1:]})
		}, true, "dal forbidden for 0s: permissions are missing: create, delete, patch deployments.apps in namespace web: grant",
			map[string]string{"crp/web": "available"}},
		"held by another fleet": {func(s *stage) {
			s.in.Ledger.SetFleet(ledger.Fleet{Name: "prod", ID: "11111111-ours"})
			s.in.Ledger.Fold(ledger.ClusterSeen{Cluster: "dal", At: s.now, Healthy: true, Owners: []ledger.Owner{{ID: "5f0c2a9e-theirs", Source: "https://git.example.com/other"}}})
		}, true, "dal not ready for 120m: another fleet named", nil},
		"all is well": {func(*stage) {}, false, "4 of 4 ready", map[string]string{"crp/web": "available"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := settledFleet(t)
			test.happens(s)
			s.turn(0)
			o := newOverview(s.report)
			if got := o.needsAttention(); got != test.attention {
				t.Errorf("it needs attention: %t", got)
			}
			text := o.text(output.Page{Width: 80}, s.now, false)
			if said := strings.Join(strings.Fields(strings.Join(text, " ")), " "); !strings.Contains(said, test.says) {
				t.Errorf("it does not say %q:\n%s", test.says, strings.Join(text, "\n"))
			}
			for _, line := range text {
				if output.Width(line) > 80 {
					t.Errorf("%d columns: %s", output.Width(line), line)
				}
			}
			for i := range o.Placements {
				if word, _ := o.Placements[i].word(); test.words[o.Placements[i].Name] != "" && word != test.words[o.Placements[i].Name] {
					t.Errorf("%s is %s, want %s", o.Placements[i].Name, word, test.words[o.Placements[i].Name])
				}
			}
			_, address := listening(t, s.report)
			var out bytes.Buffer
			transcribe(&out, "status", "--server", address)
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

// A placement that is gone from the repository is described with its own policy, and listed
// as deleted, until what it placed is gone.
func TestADeletedPlacementIsDescribed(t *testing.T) {
	s := settledFleet(t)
	s.commit(secondCommit, "Grace Hopper", "Remove the tools", strings.Replace(replaceValue(fleetText, "1"), "place tools of tools pick 2 near eu\n", "", 1))
	s.turn(10 * time.Second)
	s.turn(3 * time.Minute)
	_, address := listening(t, s.report)
	for args, want := range map[string]string{
		"describe crp/tools": "ago; what it placed is being cleaned up",
		"describe tools":     "PickN 2",
		"get crp":            "tools PickN 2 Deleted - -",
		"get crp tools":      "tools PickN 2 Deleted - -",
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

// Whoever has misspelt a selector has a placement that is available everywhere
// and holds nothing: the screen says so.
func TestStatusWarnsOfPlacements(t *testing.T) {
	s := settledFleet(t)
	s.commit(secondCommit, "Grace Hopper", "Misspell it", fleetText+"place typo of webb\n")
	s.saysAll()
	text := strings.Join(newOverview(s.report).text(output.Page{Width: 100}, s.now, false), "\n")
	if want := `there is no Namespace "webb" in the repository, so this selects nothing`; !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
		t.Errorf("no warning %q in\n%s", want, text)
	}
}
