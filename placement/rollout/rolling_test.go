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
// content; x is being removed.
func TestRollingUpdateMovesWhatKubeFleetMoves(t *testing.T) {
	tests := []struct {
		policy, bindings, limits string
		selected, waiting        string
		wake                     time.Duration
	}{
		1:  {"PickN 5", "bF b- b- b- b-", "20%/3 60", "update 0", "1 2 3 4", 0},
		2:  {"PickN 5", "bF bF bF bR bR", "20%/3 60", "update 0, update 1, update 2", "3 4", 0},
		3:  {"PickN 5", "bR bR bR bR bR", "0/3 60", "", "0 1 2 3 4", 0},
		4:  {"PickN 2", "s s", "20%/3 60", "add 0, add 1", "", 0},
		5:  {"PickN 3", "bC s", "20%/3 60", "add 1", "0", 0},
		6:  {"PickN 2", "uR uR", "20%/3 60", "remove 0", "1", 0},
		7:  {"PickN 3", "bT35 bC bR=", "20%/3 60", "", "0 1", 25 * time.Second},
		8:  {"PickN 2", "uCx uC s s", "0/1 1", "add 2", "1 3", 0},
		9:  {"PickN 2", "uRx uR s s", "2/0 1", "remove 1", "2 3", 0},
		10: {"PickN 2", "bRx bR", "2/0 1", "update 1", "0", 0},
		11: {"PickN 2", "bRx bC", "2/0 1", "", "0 1", 0},
		12: {"PickN 2", "bRx bF", "0/0 1", "update 1", "0", 0},
		13: {"PickN 4", "bRx bR= s s", "0/0 1", "add 2, add 3", "0", 0},
		14: {"PickN 4", "uCx uC s s s s", "0/1 1", "add 2, add 3, add 4", "1 5", 0},
		15: {"PickN 4", "bRx bR s s", "4/0 1", "update 1, add 2, add 3", "0", 0},
		16: {"PickN 2", "bR= bR= uRx uR", "0/0 1", "remove 3", "", 0},
		17: {"PickN 2", "bRx bR= uR uR", "1/0 1", "remove 2, remove 3", "0", 0},
		18: {"PickN 2", "uRx uR uR uR s s", "0/0 1", "remove 1", "2 3 4 5", 0},
		19: {"PickN 2", "uFx uF uF uF s s", "0/0 60", "add 4, add 5", "1 2 3", 0},
		20: {"PickN 2", "bRx bR uR uR", "0/0 1", "remove 2", "0 1 3", 0},
		21: {"PickN 2", "bR bR uRx uR", "1/0 1", "remove 3, update 0", "1", 0},
		22: {"PickN 3", "uT61 uT35", "20%/3 60", "", "0 1", 25 * time.Second},
		23: {"PickAll", "b-x", "20%/3 60", "", "0", 0},
	}
	for i, test := range tests[1:] {
		t.Run(fmt.Sprint(i+1), func(t *testing.T) {
			in := input(test.policy, test.bindings, test.limits)
			p := Next(in)
			if got := moves(in, p); !slices.Equal(got, words(test.selected)) {
				t.Errorf("selected %v, want %s", got, test.selected)
			}
			// clusters that are being removed and are selected again wait for the removal
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
	in := Input{Strategy: api.RolloutStrategy{RollingUpdate: &api.RollingUpdateConfig{MaxUnavailable: &one}}}
	if u, s := in.limits(8); u != 1 || s != 2 {
		t.Errorf("limits of 8 clusters are %d and %d, want 1 and 2", u, s)
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
	in := input("PickAll", "bR bR", "1/1 60")
	in.Bindings[1].Cluster = in.Bindings[0].Cluster
	Next(in)
}

func TestTargetIsOfThePolicy(t *testing.T) {
	three := int32(3)
	tests := map[string]struct {
		policy *api.PlacementPolicy
		want   int
	}{
		"none counts scheduled and bound": {nil, 4},
		"PickAll too":                     {&api.PlacementPolicy{PlacementType: api.PickAll}, 4},
		"PickN, also if fewer are found":  {&api.PlacementPolicy{PlacementType: api.PickN, NumberOfClusters: &three}, 3},
		"PickFixed, also unknown names":   {&api.PlacementPolicy{PlacementType: api.PickFixed, ClusterNames: []string{"a", "b"}}, 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := input("PickAll", "bR bRx s sx uR", "1/1 60")
			in.Policy = test.policy
			if got := in.target(); got != test.want {
				t.Errorf("target %d, want %d", got, test.want)
			}
		})
	}
}

// input parses an example. Clusters are named 0, 1, 2 …, and v2 is the latest content.
func input(policy, bindings, limits string) Input {
	share, seconds, _ := strings.Cut(limits, " ")
	u, s, _ := strings.Cut(share, "/")
	unavailable, surge := intstr.Parse(u), intstr.Parse(s)
	wait, _ := strconv.Atoi(seconds)
	in := Input{
		Now: noon,
		Strategy: api.RolloutStrategy{Type: api.RollingUpdate, RollingUpdate: &api.RollingUpdateConfig{
			MaxUnavailable: &unavailable, MaxSurge: &surge, UnavailablePeriodSeconds: &wait,
		}},
	}
	kind, n, _ := strings.Cut(policy, " ")
	in.Policy = &api.PlacementPolicy{PlacementType: api.PlacementType(kind)}
	if count, err := strconv.ParseInt(n, 10, 32); err == nil {
		n := int32(count)
		in.Policy.NumberOfClusters = &n
	}
	for i, word := range strings.Fields(bindings) {
		in.Bindings = append(in.Bindings, binding(fmt.Sprint(i), word))
	}
	return in
}

func revision(v string) placement.Revision {
	return placement.Revision{Commit: "commit of " + v, Hash: v}
}

func binding(cluster, word string) Binding {
	b := Binding{Latest: revision("v2")}
	b.Cluster = cluster
	state, rest := word[0], word[1:]
	rest, b.Removing = strings.CutSuffix(rest, "x")
	rest, latest := strings.CutSuffix(rest, "=")
	if b.Unscheduled = state == 'u'; b.Unscheduled {
		b.Latest = placement.Revision{}
	}
	if state == 's' {
		return b
	}
	b.Assigned = revision("v1")
	if latest {
		b.Assigned = b.Latest
	}
	b.AssignedAt = noon.Add(-time.Hour)
	b.Seen = Seen{Hash: b.Assigned.Hash, Since: noon.Add(-time.Hour)}
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
		i := slices.IndexFunc(in.Bindings, func(b Binding) bool { return b.Cluster == a.Cluster })
		if in.Bindings[i].HasRevision() {
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
