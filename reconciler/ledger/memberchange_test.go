package ledger

import (
	"slices"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// What has happened to a member cluster is told once, and only missing permissions of a cluster that is unhealthy because of them.
func TestMemberChanges(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	member := func(healthy bool, why string) *Cluster {
		return &Cluster{Joined: noon, ClusterSeen: protocol.ClusterSeen{Healthy: healthy, Error: why}}
	}
	silent := func(why string) *Cluster { return &Cluster{ClusterSeen: protocol.ClusterSeen{Error: why}} }
	denied := func(healthy bool, what string) *Cluster {
		c := member(healthy, "")
		c.Forbidden = []string{what}
		return c
	}
	with := func(c *Cluster, set func(c *Cluster)) *Cluster {
		set(c)
		return c
	}
	fine, down := member(true, ""), member(false, "timeout")
	unrenewed := with(member(true, ""), func(c *Cluster) { c.Unrenewed = "expired" })
	for name, test := range map[string]struct {
		was, is MemberState
		want    []MemberChange
	}{
		"not probed":                         {MemberState{}, MemberState{}, nil},
		"first probe without an answer":      {MemberState{}, MemberState{Seen: silent("")}, []MemberChange{MemberUnanswered}},
		"the same":                           {MemberState{Seen: silent("a")}, MemberState{Seen: silent("a")}, nil},
		"another reason":                     {MemberState{Seen: silent("a")}, MemberState{Seen: silent("b")}, []MemberChange{MemberUnanswered}},
		"joins":                              {MemberState{Seen: silent("a")}, MemberState{Seen: fine}, []MemberChange{MemberJoined}},
		"lost":                               {MemberState{Seen: fine}, MemberState{Seen: down}, []MemberChange{MemberUnhealthy}},
		"back":                               {MemberState{Seen: down}, MemberState{Seen: fine}, []MemberChange{MemberReady}},
		"unhealthy without permissions":      {MemberState{Seen: fine}, MemberState{Seen: denied(false, "a")}, []MemberChange{MemberForbidden}},
		"then it is lost":                    {MemberState{Seen: denied(false, "a")}, MemberState{Seen: down}, []MemberChange{MemberUnhealthy}},
		"others are missing":                 {MemberState{Seen: denied(true, "a")}, MemberState{Seen: denied(true, "b")}, []MemberChange{MemberForbidden}},
		"granted":                            {MemberState{Seen: denied(true, "a")}, MemberState{Seen: fine}, []MemberChange{MemberPermitted}},
		"granted, and it becomes healthy":    {MemberState{Seen: denied(false, "a")}, MemberState{Seen: fine}, []MemberChange{MemberReady, MemberPermitted}},
		"restored, and it answers again":     {MemberState{Seen: down}, MemberState{Seen: with(member(true, ""), func(c *Cluster) { c.Restored.At = noon })}, []MemberChange{MemberRestored, MemberReady}},
		"new credentials cannot be used":     {MemberState{Seen: fine}, MemberState{Seen: unrenewed}, []MemberChange{CredentialsUnusable}},
		"they are used":                      {MemberState{Seen: unrenewed}, MemberState{Seen: fine}, []MemberChange{CredentialsRenewed}},
		"another fleet holds it":             {MemberState{Seen: fine}, MemberState{fine, "a"}, []MemberChange{MemberRefused}},
		"a third fleet holds it":             {MemberState{fine, "a"}, MemberState{fine, "b"}, []MemberChange{MemberRefused}},
		"no other fleet holds it any longer": {MemberState{fine, "b"}, MemberState{Seen: fine}, []MemberChange{MemberAccepted}},
	} {
		if got := test.is.Since(test.was); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
