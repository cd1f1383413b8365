package plan

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// A cluster that does not answer holds up a rollout only if there are more of
// them than may be.
func TestUnreachableClustersHoldUpARolloutBeyondTheirBudget(t *testing.T) {
	none, all := intstr.FromInt32(0), intstr.FromString("100%")
	for name, test := range map[string]struct {
		max   *intstr.IntOrString
		waits bool
	}{"unset": {nil, false}, "all": {&all, false}, "none": {&none, true}} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.in.MaxUnreachable = test.max
			const hub = "clusters a b c\nnamespace web\nplace web unavailable 1\n"
			s.commit("v1", []byte(hub+"configmap web/one old\n"))
			for _, step := range []string{"seen a b c", "plan", "done", "plan", "done", "plan", "done", "plan", "down c"} {
				s.do(strings.Fields(step))
			}
			s.commit("v2", []byte(hub+"configmap web/one new\n"))
			got := s.do([]string{"plan"})
			if waits := strings.Contains(got, "web waits on a: maxUnavailable 1: waits for c"); waits != test.waits {
				t.Errorf("the first cluster waits: %t, want %t\n%s", waits, test.waits, got)
			}
		})
	}
}
