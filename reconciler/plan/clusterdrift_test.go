package plan

import (
	"fmt"
	"testing"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
)

// The works of a cluster have its drift rule. A commit that changes only the rule updates them.
func TestWorksHaveTheDriftRuleOfTheCluster(t *testing.T) {
	s := newScene(t)
	const fleet = members + app + "1" + placed
	annotated := func(commit, rule string) {
		t.Helper()
		s.commit(commit, nil, []byte(fleet))
		for i, c := range s.in.InForce.Clusters {
			if c.Name == "east" && rule != "" {
				m := *c.MemberCluster
				m.Annotations = map[string]string{api.DriftAnnotation: rule}
				s.in.InForce.Clusters[i] = &hub.Cluster{MemberCluster: &m, Origin: c.Origin}
			}
		}
	}
	annotated("v1", "")
	s.do([]string{"seen", "east", "west"})
	s.do([]string{"plan"})
	s.do([]string{"done"})
	for i, rule := range []string{"report", "propose until 2030-01-31T00:00:00Z", ""} {
		commit := fmt.Sprint("v", i+2)
		annotated(commit, rule)
		p := s.resolve()
		if got := onCluster(t, p, "east").ClusterDrift; got != rule {
			t.Errorf("%s: east gets %q, want %q", commit, got, rule)
		}
		if got := onCluster(t, p, "west").ClusterDrift; got != "" {
			t.Errorf("%s: west gets %q", commit, got)
		}
	}
}
