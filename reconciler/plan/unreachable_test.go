package plan

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// If missing permissions make a cluster unusable, the message is about the permissions and not
// about reachability.
func TestMissingPermissionsAreReportedAsTheReason(t *testing.T) {
	s := newScene(t)
	s.commit("v1", nil, []byte("clusters a b\nnamespace web\nplace web\nconfigmap web/one old\n"))
	for _, step := range []string{"seen a b", "plan", "done", "plan"} {
		s.do(strings.Fields(step))
	}
	s.in.Ledger.Fold(protocol.ClusterSeen{Cluster: "b", At: s.in.Now, Error: "permissions are missing: list configmaps", Forbidden: []string{"list configmaps"}})
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
	for why, seen := range map[string]protocol.ClusterSeen{
		"permissions are missing on it": {Error: "permissions are missing: list configmaps", Forbidden: []string{"list configmaps"}},
		"another fleet has claimed it":  {Healthy: true, Owners: []protocol.Owner{{ID: "theirs"}}},
		"it is unreachable":             {Error: "connection refused"},
	} {
		t.Run(why, func(t *testing.T) {
			s := newScene(t)
			s.in.Ledger.SetFleet(protocol.Fleet{Name: "shop", ID: "ours"})
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
