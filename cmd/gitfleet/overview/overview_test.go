package overview

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/reports"
)

// However many placements and clusters there are, the first page shows those with trouble and
// fits on the screen.
func TestStatusOfALargeFleet(t *testing.T) {
	r := &status.Report{At: reports.Noon}
	for i := range 300 {
		d := &status.Detail{Placement: "crp/" + strings.Repeat("long-", i%9) + string(rune('a'+i%26))}
		for j := range 250 {
			d.Clusters = append(d.Clusters, status.ClusterDetail{Cluster: "c", Available: i%7 > 0 || j > 3, Applied: true, Commit: reports.FirstCommit})
		}
		r.Details = append(r.Details, d)
	}
	r.Clusters = append(r.Clusters, reports.MemberCluster("c", true))
	lines := New(r).Text(output.Page{Width: 80}, reports.Noon, false)
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

// The bar is filled to the end only if every cluster is available, and every state that occurs
// has at least one character in it.
func TestBar(t *testing.T) {
	for name, test := range map[string]struct {
		counts  map[State]int
		missing int
		want    string
	}{
		"nothing":       {nil, 0, "[          ]"},
		"none found":    {nil, 3, "[          ]"},
		"one":           {map[State]int{status.StateAvailable: 1}, 0, "[##########]"},
		"few":           {map[State]int{status.StateAvailable: 3, status.StateWaiting: 2}, 0, "[######....]"},
		"one missing":   {map[State]int{status.StateAvailable: 2}, 1, "[#######   ]"},
		"a few missing": {map[State]int{status.StateAvailable: 999}, 1, "[######### ]"},
		"exactly":       {map[State]int{status.StateAvailable: 8, status.StateFailed: 2}, 0, "[########!!]"},
		"many":          {map[State]int{status.StateAvailable: 500, status.StateRolling: 500}, 0, "[#####>>>>>]"},
		"one of all":    {map[State]int{status.StateAvailable: 999, status.StateFailed: 1}, 0, "[#########!]"},
		"every state": {map[State]int{status.StateAvailable: 1000, status.StateProgressing: 1, status.StateRolling: 1, status.StateWaiting: 1, status.StateFailed: 1, status.StateUnreachable: 1, status.StateRemoving: 1}, 0,
			"[####=>.!?-]"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := bar(output.Page{}, test.counts, test.missing, 10); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// Colours do not change the layout.
func TestColoursAreOnlyColours(t *testing.T) {
	o := New(reports.Troubled(t).Report)
	plain := o.Text(output.Page{Width: 80}, o.At, true)
	painted := strings.Join(o.Text(output.Page{Width: 80, Color: true}, o.At, true), "\n")
	if mark, _, _ := strings.Cut(output.Page{Color: true}.Paint(output.Red, "x"), "x"); !strings.Contains(painted, mark) {
		t.Error("nothing is red")
	}
	var file strings.Builder
	io.WriteString(output.NewWriter(&file), painted)
	if file.String() != strings.Join(plain, "\n") {
		t.Errorf("without colours it is\n%s", &file)
	}
}

// A placement whose selector is misspelt selects nothing and is available everywhere. The
// summary warns of it.
func TestStatusWarnsOfPlacements(t *testing.T) {
	s := reports.Settled(t)
	s.Commit(reports.SecondCommit, "Grace Hopper", "Misspell it", reports.Manifests+"place typo of webb\n")
	s.SaysAll()
	text := strings.Join(New(s.Report).Text(output.Page{Width: 100}, s.Now, false), "\n")
	if want := `there is no Namespace "webb" in the repository, so this selects nothing`; !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
		t.Errorf("no warning %q in\n%s", want, text)
	}
}

// Drift that is held is shown with its pull request, and with the command that decides about it.
func TestStatusNamesProposals(t *testing.T) {
	held := status.Drift{Placement: "crp/web", Cluster: "east", State: api.DriftHeld, Since: reports.Noon, Message: "left as it is; offered as https://git.example.com/pulls/1"}
	held.Kind, held.Name = "ConfigMap", "web"
	contested := held
	contested.Cluster, contested.State, contested.Message = "west", api.DriftContested, "another writer keeps making the change"
	for name, test := range map[string]struct {
		drifts       []status.Drift
		want, absent string
	}{
		"held":      {[]status.Drift{held, contested}, "offered as https://git.example.com/pulls/1", "another writer"},
		"counted":   {[]status.Drift{held, contested}, "1 object held; see gitfleet proposals list", "2 objects held"},
		"none held": {[]status.Drift{contested}, "ConfigMap/web on west, contested", "gitfleet proposals"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &status.Report{At: reports.Noon, Drifts: test.drifts}
			text := strings.Join(New(r).Text(output.Page{Width: 120}, reports.Noon, false), "\n")
			if !strings.Contains(text, test.want) || strings.Contains(text, test.absent) {
				t.Errorf("want %q and not %q in\n%s", test.want, test.absent, text)
			}
		})
	}
}

// A reason that several clusters share is said once, with all of them, and since when at most.
func TestAReasonIsSaidOnce(t *testing.T) {
	o := &Overview{
		Members: Members{Total: 4, NotReady: []Member{
			{"ams", reports.Ago(time.Hour).Time, "connection refused", status.StateUnreachable}, {"ber", reports.Ago(time.Minute).Time, "connection refused", status.StateUnreachable},
			{"chi", reports.Ago(time.Minute).Time, "connection refused", status.StateForeign}, {"dal", reports.Ago(time.Minute).Time, "timeout", status.StateUnreachable},
		}},
		BlockedDeletions: []Deletions{{"crp/web", "ams", []string{"ConfigMap/web/a: x"}}, {"crp/web", "ber", []string{"ConfigMap/web/a: x"}}, {"crp/web", "chi", []string{"ConfigMap/web/b: x"}}},
		Lingering:        []Deletions{{"crp/api", "ams", []string{"ConfigMap/web/a", "ConfigMap/web/b"}}, {"crp/api", "ber", []string{"ConfigMap/web/a", "ConfigMap/web/b"}}},
		Drifts: []Drift{
			{Placement: "crp/web", Cluster: "ams", Object: "ConfigMap/web/a", State: "held", By: []string{"kubectl"}, Since: reports.Noon.Add(-time.Hour)},
			{Placement: "crp/web", Cluster: "ber", Object: "ConfigMap/web/a", State: "held", By: []string{"kubectl"}, Since: reports.Noon.Add(-time.Hour)},
			{Placement: "crp/web", Cluster: "chi", Object: "ConfigMap/web/a", State: "held", By: []string{"helm"}, Since: reports.Noon.Add(-time.Minute)},
		},
	}
	text := strings.Join(o.Text(output.Page{Width: 80}, reports.Noon, false), "\n")
	for _, want := range []string{
		"\n  ams, ber unreachable for up to 60m: connection refused\n", "\n  chi not ready for 60s: connection refused\n", "\n  dal unreachable for 60s: timeout\n",
		" for 1 on ams, ber: ConfigMap/web/a: x\n", " for 1 on chi: ConfigMap/web/b: x\n", "\n  crp/api on ams, ber: ConfigMap/web/a (and 1 more; see gitfleet describe\n",
		"Drift: 3 objects not as in Git\n  ConfigMap/web/a on ams, ber, held for 60m by kubectl\n  ConfigMap/web/a on chi, held for 60s by helm\n",
	} {
		if !strings.Contains(text+"\n", want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
}

// The newest commit is refused, or waits to be read, but not both; the one in force is neither.
func TestTheNewestCommitIsRefusedOrWaiting(t *testing.T) {
	first, second := hub.Commit{Hash: reports.FirstCommit}, hub.Commit{Hash: reports.SecondCommit}
	for name, test := range map[string]struct {
		of               status.Source
		refused, waiting bool
	}{
		"in force": {status.Source{InForce: first, Newest: first}, false, false},
		"none":     {status.Source{}, false, false},
		"read":     {status.Source{InForce: first, Newest: second}, false, true},
		"fetched":  {status.Source{Newest: second, Fetches: []string{"oci://charts/web:^1"}}, false, true},
		"refused":  {status.Source{InForce: first, Newest: second, LoadError: "no such path"}, true, false},
	} {
		o := New(&status.Report{Source: test.of})
		if (o.Refused != nil) != test.refused || (o.Waiting != nil) != test.waiting {
			t.Errorf("%s: refused %+v, waiting %+v", name, o.Refused, o.Waiting)
		}
		if o.Waiting != nil && (o.Waiting.Hash != reports.SecondCommit || len(o.Waiting.Fetches) != len(test.of.Fetches)) {
			t.Errorf("%s: waiting is %+v", name, o.Waiting)
		}
	}
}
