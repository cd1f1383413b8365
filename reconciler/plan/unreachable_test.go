package plan

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// If missing permissions make a cluster unusable, the message is about the permissions and not
// about reachability. A healthy cluster that lacks some permissions can be selected.
func TestMissingPermissionsAreReportedAsTheReason(t *testing.T) {
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	seen := func(healthy bool, joined time.Time, forbidden ...string) *ledger.Cluster {
		return &ledger.Cluster{ClusterSeen: ledger.ClusterSeen{Cluster: "a", Healthy: healthy, Forbidden: forbidden}, Since: start, Joined: joined, LastSeen: start}
	}
	for name, test := range map[string]struct {
		seen *ledger.Cluster
		want string
	}{
		"never connected":  {seen(false, time.Time{}, "list configmaps"), "permissions are missing: list configmaps"},
		"denied later":     {seen(false, start, "list configmaps"), "permissions are missing: list configmaps"},
		"some are missing": {seen(true, start, "patch deployments.apps"), ""},
		"unreachable":      {seen(false, start), "no recent heartbeat signals"},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := ineligibleReason(test.seen, start.Add(2*unreachableGrace))
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	s := newScene(t)
	s.commit("v1", nil, []byte("clusters a b\nnamespace web\nplace web\nconfigmap web/one old\n"))
	for _, step := range []string{"seen a b", "plan", "done", "plan"} {
		s.do(strings.Fields(step))
	}
	s.in.Ledger.Fold(ledger.ClusterSeen{Cluster: "b", At: s.in.Now, Error: "permissions are missing: list configmaps", Forbidden: []string{"list configmaps"}})
	s.commit("v2", nil, []byte("clusters a b\nnamespace web\nplace web\nconfigmap web/one new\n"))
	if got := s.do([]string{"plan"}); !strings.Contains(got, "web waits on b: permissions are missing: list configmaps") {
		t.Errorf("the cluster does not wait for its permissions:\n%s", got)
	}
}

// Unreachable clusters count as unavailable only beyond MaxUnreachable.
func TestMaxUnreachable(t *testing.T) {
	none, all := intstr.FromInt32(0), intstr.FromString("100%")
	for name, test := range map[string]struct {
		max   *intstr.IntOrString
		waits bool
	}{"unset": {nil, false}, "all": {&all, false}, "none": {&none, true}} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.in.MaxUnreachable = test.max
			const hub = "clusters a b c\nnamespace web\nplace web unavailable 1\n"
			s.commit("v1", nil, []byte(hub+"configmap web/one old\n"))
			for _, step := range []string{"seen a b c", "plan", "done", "plan", "done", "plan", "done", "plan", "down c"} {
				s.do(strings.Fields(step))
			}
			s.commit("v2", nil, []byte(hub+"configmap web/one new\n"))
			got := s.do([]string{"plan"})
			if waits := strings.Contains(got, "web waits on a: maxUnavailable 1: waits for c"); waits != test.waits {
				t.Errorf("the first cluster waits: %t, want %t\n%s", waits, test.waits, got)
			}
		})
	}
}

// If an unusable cluster stops a rollout, the message says why it cannot be used.
func TestStoppedByAnUnusableCluster(t *testing.T) {
	for why, seen := range map[string]ledger.ClusterSeen{
		"permissions are missing on it": {Error: "permissions are missing: list configmaps", Forbidden: []string{"list configmaps"}},
		"another fleet holds it":        {Healthy: true, Owners: []ledger.Owner{{ID: "theirs"}}},
		"it is unreachable":             {Error: "connection refused"},
	} {
		t.Run(why, func(t *testing.T) {
			s := newScene(t)
			s.in.Ledger.SetFleet(ledger.Fleet{Name: "shop", ID: "ours"})
			s.commit("v1", nil, []byte("clusters a b\nnamespace web\nplace web unavailable 1\nconfigmap web/one old\n"))
			for _, step := range []string{"seen a b", "plan", "done", "plan"} {
				s.do(strings.Fields(step))
			}
			s.commit("v2", nil, []byte("clusters a b\nnamespace web\nplace web unavailable 1\nconfigmap web/one new\n"))
			for _, step := range []string{"plan", "fail web a", "plan"} {
				s.do(strings.Fields(step))
			}
			seen.Cluster, seen.At = "a", s.in.Now
			s.in.Ledger.Fold(seen)
			if got := s.do([]string{"plan"}); !strings.Contains(got, "("+why+")") {
				t.Errorf("got:\n%s", got)
			}
		})
	}
}
