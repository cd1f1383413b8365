package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"code.gitea.io/sdk/gitea"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/proposal"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// With a drift mode for a kind, in a fleet that reverts all other drift, people decide on the
// command line: "open" opens the pull request before the drift's minimum age; "close" reverts
// the drift.
func TestProposalsAreOpenedAndClosedByCommand(t *testing.T) {
	t.Parallel()
	p := newProposingWith(t, func(string) map[string]string { return nil },
		"--set", "drift.mode=revert", "--set", "drift.kinds=apps/Deployment=propose", "--set", "drift.minAge=1h")
	p.start()
	const before, after = "registry.example/app:1", "registry.example/app:2"
	p.settled(before)
	one, two := p.members[0], p.members[1]
	p.image(one, after)
	p.image(two, after)
	p.until("held", func(r *status.Report) bool {
		return !slices.ContainsFunc([]string{one, two}, func(c string) bool {
			return !slices.ContainsFunc(r.Drifts, func(d status.Drift) bool { return d.Cluster == c && d.State == api.DriftHeld })
		})
	})
	var change proposal.HeldChange
	p.eventually("listed", func() bool {
		var list proposal.HeldList
		if json.Unmarshal([]byte(p.gitfleet("proposals", "list", "-o", "json")), &list) != nil || len(list.Items) != 1 {
			return false
		}
		change = list.Items[0]
		return len(change.Clusters) == 2
	})
	if change.State != proposal.Waiting || change.Holders != 3 || change.Rules[0] != "propose" {
		t.Errorf("listed as %+v", change)
	}
	show := p.gitfleet("proposals", "show", change.Name)
	for _, want := range []string{"Deployment.apps/" + p.name + "/web", "by kubectl-edit (Update) on " + one, "- " + before, "+ " + after, "source apps/web.yaml:"} {
		if !strings.Contains(show, want) {
			t.Errorf("it shows\n%s\nwant in it %s", show, want)
		}
	}
	if said := p.gitfleet("proposals", "open", change.Name[:8]); !strings.Contains(said, "offered as http") {
		t.Fatalf("open says %s", said)
	}
	p.opened(1)
	p.waitForAll(after, one, two)
	if said := p.gitfleet("proposals", "close", change.Name[:8]); !strings.Contains(said, "will be put back on 2 clusters") {
		t.Fatalf("close says %s", said)
	}
	p.waitForAll(before, one, two)
	if pr := p.opened(1); pr.State != gitea.StateClosed || pr.HasMerged {
		t.Errorf("the pull request is %s, merged: %t", pr.State, pr.HasMerged)
	}
}
