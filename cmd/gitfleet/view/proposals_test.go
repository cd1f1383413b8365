package view

import (
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/proposal"
	"github.com/gitfleet/gitfleet/test/reports"
)

func heldChange() proposal.HeldChange {
	return proposal.HeldChange{
		Name: "0123456789abcdef", Object: api.ResourceIdentifier{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}, State: proposal.Open,
		Message: "left as it is; offered as https://git.example.com/pulls/1", Rules: []string{"propose (drift.mode)", "annotation"}, Placements: []string{"crp/web"},
		Clusters: []string{"east", "west"}, Holders: 3, FirstSeen: reports.Noon.Add(-time.Hour),
	}
}

// A change is a row, followed by what it waits for.
func TestProposalsText(t *testing.T) {
	c := heldChange()
	const want = "NAME OBJECT CLUSTERS MODE STATE SINCE 01234567 Deployment.apps/shop/web 2 of 3 propose open 60m offered as https://git.example.com/pulls/1"
	if got := strings.Join(strings.Fields(proposalsText(&proposal.HeldList{At: reports.Noon, Items: []proposal.HeldChange{c}}, output.Format{})), " "); got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
	if got := proposalsText(&proposal.HeldList{}, output.Format{}); got != "nothing is held\n" {
		t.Errorf("none: %q", got)
	}
}

// What merging and closing do is said for changes and deletions, and for what no edit expresses.
func TestProposalText(t *testing.T) {
	edits := []proposal.FileEdit{{Path: "web.yaml", Diff: "@@ -1 +1 @@\n-a\n+b\n"}}
	for name, test := range map[string]struct {
		of   func(c *proposal.HeldChange)
		want []string
		not  string
	}{
		"without an edit so far": {func(*proposal.HeldChange) {}, []string{"open: offered as https://git.example.com/pulls/1", "on 2 of 3 clusters: east, west", "first seen 60m ago, held by drift mode propose (drift.mode), annotation", "placement crp/web"}, "Merging"},
		"who and where": {func(c *proposal.HeldChange) {
			c.Source, c.By = "web.yaml:3", []proposal.Writer{{Cluster: "east", Actor: api.Actor{Manager: "kubectl-edit", Operation: "Update", Time: reports.Noon}}}
		}, []string{"source web.yaml:3", "by kubectl-edit (Update) on east at 2026-03-01T12:00:00Z"}, "Merging"},
		"an edit":        {func(c *proposal.HeldChange) { c.Edits = edits }, []string{"Edit in Git @@ -1 +1 @@ -a +b", "Merging takes the change over into Git.", "Closing without merging puts the object back to what is in Git"}, "It would also change"},
		"for others too": {func(c *proposal.HeldChange) { c.Edits, c.OtherClusters = edits, []string{"north"} }, []string{"It would also change the object on 1 other cluster: north."}, "The edit is in"},
		"an override":    {func(c *proposal.HeldChange) { c.Edits, c.Override = edits, "ResourceOverride shop/web" }, []string{"The edit is in ResourceOverride shop/web, for these clusters only. While it sets the value, later changes of it in the manifest do not reach them."}, "It would also change"},
		"a Secret":       {func(c *proposal.HeldChange) { c.Edits = []proposal.FileEdit{{Path: "key.yaml"}} }, []string{"key.yaml is not shown, since it has a Secret"}, "@@"},
		"a deletion":     {func(c *proposal.HeldChange) { c.Deleted, c.Edits = true, edits }, []string{"the object was deleted", "Merging takes the deletion over into Git.", "Closing without merging creates the object again as it is in Git"}, "puts the object back"},
		"no edit": {func(c *proposal.HeldChange) {
			c.Reason, c.Message = "it is generated", "left as it is; offered as an issue; no edit of the files makes the change: it is generated"
		}, []string{"open: offered as an issue on", "No edit of the files in Git makes the change: it is generated", "Closing the issue puts the object back"}, "Merging"},
	} {
		t.Run(name, func(t *testing.T) {
			c := heldChange()
			test.of(&c)
			got := strings.Join(strings.Fields(proposalText(reports.Noon, &c)), " ")
			for _, want := range test.want {
				if !strings.Contains(got, want) {
					t.Errorf("no %q in %q", want, got)
				}
			}
			if strings.Contains(got, test.not) {
				t.Errorf("%q is in %q", test.not, got)
			}
		})
	}
}
