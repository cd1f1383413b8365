package rollout

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// Bindings are written as in KubeFleet's examples: b bound, s scheduled, u unscheduled; R
// ready, F failed, C can become ready, T35 untrackable for 35 s, - not known; = has the latest
// content; x is being removed, and therefore no longer selected, unlike in KubeFleet.
func TestRollingUpdateMovesWhatKubeFleetMoves(t *testing.T) {
	tests := []struct {
		wanted            int
		bindings, limits  string
		selected, waiting string
		wake              time.Duration
	}{
		1:  {5, "bF b- b- b- b-", "20%/3 60", "update 0", "1 2 3 4", 0},
		2:  {5, "bF bF bF bR bR", "20%/3 60", "update 0, update 1, update 2", "3 4", 0},
		3:  {5, "bR bR bR bR bR", "0/3 60", "", "0 1 2 3 4", 0},
		4:  {2, "s s", "20%/3 60", "add 0, add 1", "", 0},
		5:  {3, "bC s", "20%/3 60", "add 1", "0", 0},
		6:  {2, "uR uR", "20%/3 60", "remove 0", "1", 0},
		7:  {3, "bT35 bC bR=", "20%/3 60", "", "0 1", 25 * time.Second},
		8:  {2, "uCx uC s s", "0/1 1", "add 2", "1 3", 0},
		9:  {2, "uRx uR s s", "2/0 1", "remove 1", "2 3", 0},
		10: {2, "bRx bR", "2/0 1", "update 1", "", 0},
		11: {2, "bRx bC", "2/0 1", "", "1", 0},
		12: {2, "bRx bF", "0/0 1", "update 1", "", 0},
		13: {4, "bRx bR= s s", "0/0 1", "add 2, add 3", "", 0},
		14: {4, "uCx uC s s s s", "0/1 1", "add 2, add 3, add 4", "1 5", 0},
		15: {4, "bRx bR s s", "4/0 1", "update 1, add 2, add 3", "", 0},
		16: {2, "bR= bR= uRx uR", "0/0 1", "remove 3", "", 0},
		17: {2, "bRx bR= uR uR", "1/0 1", "remove 2, remove 3", "", 0},
		18: {2, "uRx uR uR uR s s", "0/0 1", "remove 1", "2 3 4 5", 0},
		19: {2, "uFx uF uF uF s s", "0/0 60", "add 4, add 5", "1 2 3", 0},
		20: {2, "bRx bR uR uR", "0/0 1", "remove 2", "1 3", 0},
		21: {2, "bR bR uRx uR", "1/0 1", "remove 3, update 0", "1", 0},
		22: {3, "uT61 uT35", "20%/3 60", "", "0 1", 25 * time.Second},
		23: {asSelected, "b-x", "20%/3 60", "", "", 0},
	}
	for i, test := range tests[1:] {
		t.Run(fmt.Sprint(i+1), func(t *testing.T) {
			in := input(test.wanted, test.bindings, test.limits)
			p := Next(in)
			if got := moves(in, p); !slices.Equal(got, words(test.selected)) {
				t.Errorf("selected %v, want %s", got, test.selected)
			}
			if got := waiting(p); got != test.waiting {
				t.Errorf("%s wait, want %s", got, test.waiting)
			}
			if got := p.Wake; test.wake == 0 != got.IsZero() || test.wake != 0 && got.Sub(noon) != test.wake {
				t.Errorf("wake %v, want %v after %v", got, test.wake, noon)
			}
		})
	}
}

func TestSharesAreRoundedUp(t *testing.T) {
	tests := []struct {
		share  string
		target int
		want   int
	}{{"25%", 1, 1}, {"25%", 4, 1}, {"25%", 5, 2}, {"25%", 7, 2}, {"20%", 2, 1}, {"0%", 9, 0}, {"0", 9, 0}, {"100%", 3, 3}, {"7", 3, 7},
		// invalid values were refused at load, and count as zero
		{"many", 4, 0}, {"-1", 4, 0}}
	for _, test := range tests {
		if got := roundUp(intstr.Parse(test.share), test.target); got != test.want {
			t.Errorf("%s of %d = %d, want %d", test.share, test.target, got, test.want)
		}
	}
}

func TestDefaultsAreFilledInFieldByField(t *testing.T) {
	one := intstr.FromInt32(1)
	in := Input{Wanted: 8, Strategy: api.RolloutStrategy{RollingUpdate: &api.RollingUpdateConfig{MaxUnavailable: &one}}}
	if b := in.budget(); b.MaxUnavailable != 1 || b.MaxSurge != 2 {
		t.Errorf("limits of 8 clusters are %d and %d, want 1 and 2", b.MaxUnavailable, b.MaxSurge)
	}
	if got := period(in.Strategy); got != time.Minute {
		t.Errorf("period %v, want a minute", got)
	}
}

func TestOneClusterHasOneBinding(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("two bindings of one cluster are taken for two clusters")
		}
	}()
	in := input(asSelected, "bR bR", "1/1 60")
	in.Targets[1].Cluster = in.Targets[0].Cluster
	Next(in)
}

// repairAfter is how long clusters have to be unavailable before they are updated outside of the budget.
const repairAfter = 30 * time.Second

// asSelected, as the number of wanted clusters, is how many are selected, as for PickAll.
const asSelected = -1

// input parses an example. Clusters are named 0, 1, 2 …, and v2 is the latest content.
func input(wanted int, bindings, limits string) Input {
	share, seconds, _ := strings.Cut(limits, " ")
	u, s, _ := strings.Cut(share, "/")
	unavailable, surge := intstr.Parse(u), intstr.Parse(s)
	wait, _ := strconv.Atoi(seconds)
	in := Input{
		Now: noon, RepairAfter: repairAfter,
		Strategy: api.RolloutStrategy{Type: api.RollingUpdate, RollingUpdate: &api.RollingUpdateConfig{
			MaxUnavailable: &unavailable, MaxSurge: &surge, UnavailablePeriodSeconds: &wait,
		}},
	}
	for i, word := range strings.Fields(bindings) {
		in.Targets = append(in.Targets, binding(fmt.Sprint(i), word))
	}
	in.want(wanted)
	return in
}

// want sets the number of wanted clusters.
func (in *Input) want(n int) {
	in.Wanted = n
	if n != asSelected {
		return
	}
	in.Wanted = 0
	for _, b := range in.Targets {
		if !b.Unscheduled {
			in.Wanted++
		}
	}
}

// selectAgain selects an unscheduled cluster again, as plan.Resolve does: a cluster that is being
// removed gets a new binding, with the revision that it had.
func (b *Target) selectAgain(latest placement.Revision, now time.Time) {
	b.Unscheduled, b.Latest = false, latest
	if b.Removing {
		b.Removing, b.Risked, b.WasAvailable, b.AssignedAt, b.Seen = false, false, false, now, Seen{}
	}
}

func revision(v string) placement.Revision {
	return placement.Revision{Commit: "commit of " + v, Hash: v}
}

func binding(cluster, word string) Target {
	b := Target{Latest: revision("v2")}
	b.Cluster = cluster
	state, rest := word[0], word[1:]
	rest, b.Removing = strings.CutSuffix(rest, "x")
	rest, latest := strings.CutSuffix(rest, "=")
	if b.Unscheduled = state == 'u' || b.Removing; b.Unscheduled {
		b.Latest = placement.Revision{}
	}
	if state == 's' {
		return b
	}
	b.Assigned, b.WasAvailable = revision("v1"), true
	if latest {
		b.Assigned = b.Latest
	}
	b.AssignedAt = noon.Add(-time.Hour)
	b.Seen = Seen{Hash: b.Assigned.Hash, Since: noon.Add(-time.Hour), DownSince: noon.Add(-time.Hour)}
	switch rest[0] {
	case 'R':
		b.Seen.Health = Available
	case 'F':
		b.Seen.Health = Failed
	case 'U':
		b.Seen.Health = Unavailable
	case 'D':
		b.Seen.Health = DiffReported
	case 'T':
		seconds, _ := strconv.Atoi(rest[1:])
		b.Seen.Health, b.Seen.Since = Untracked, noon.Add(-time.Duration(seconds)*time.Second)
	}
	return b
}

// moves lists the changes of a plan: removals, updates and additions, each in order.
func moves(in Input, p Plan) []string {
	var removals, updates, additions []string
	for _, c := range p.Remove {
		removals = append(removals, "remove "+c)
	}
	for _, a := range p.Assign {
		if !a.Changed {
			continue
		}
		i := slices.IndexFunc(in.Targets, func(b Target) bool { return b.Cluster == a.Cluster })
		if in.Targets[i].HasRevision() {
			updates = append(updates, "update "+a.Cluster)
		} else {
			additions = append(additions, "add "+a.Cluster)
		}
	}
	return slices.Concat(removals, updates, additions)
}

func waiting(p Plan) string {
	var clusters []string
	for _, w := range p.Waiting {
		clusters = append(clusters, w.Cluster)
	}
	return strings.Join(clusters, " ")
}

func words(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ", ")
}
