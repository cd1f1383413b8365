package proposal

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// The body says what has changed where, who did it, and what merging and closing do.
func TestBodies(t *testing.T) {
	noon := time.Date(2027, 1, 15, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		change func(*change)
		want   []string
		not    string
	}{
		"a field": {
			func(*change) {},
			[]string{
				"`ConfigMap shop/web` was changed on 2 clusters, and is left so until this pull request is merged or closed.\n",
				"```diff\n  data.key\n- \"1\"\n+ \"7\"\n```\n", "- **Where:** `east`, `west`; first seen at 2027-01-15T12:00:00Z\n", "- **Who:** not known\n", "- **In Git:** [`web.yaml:1`](https://git.example.com/c/web.yaml#L1)\n",
				"**Merging** takes the change over into Git. Nothing is written to the object on these clusters.\n",
				"**Closing** reverts the change, also if somebody makes the same change once more.\n", "The label `gitfleet/hold` keeps the object as it is, also after closing, until the label is removed.\n",
				"- `gitfleet proposals show 00000000` shows",
			},
			"is for them only",
		},
		"on some of the clusters": {func(c *change) { c.holders = 3 }, []string{"was changed on 2 of 3 clusters, and"}, ""},
		"a field of an item": {
			func(c *change) {
				c.object = map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "web", "replicas": int64(1)}}}}
				c.paths[0].Path = "/spec/containers/0/replicas"
			}, []string{"  spec.containers[web].replicas\n- 1\n+ 7\n"}, "containers/0",
		},
		"a field that is added":   {func(c *change) { c.paths[0].ValueInHub = "" }, []string{"  data.key\n+ \"7\"\n"}, "- \"1\""},
		"a field that is removed": {func(c *change) { c.paths[0].ValueInMember = "" }, []string{"  data.key\n- \"1\"\n"}, "+ \"7\""},
		"a cluster-scoped object": {func(c *change) { c.id = api.ID{Kind: "Namespace", Name: "shop"} }, []string{"`Namespace shop` was changed on"}, ""},
		"its source is not known": {func(c *change) { c.source = api.Origin{} }, nil, "**In Git:**"},
		"no link":                 {func(c *change) { c.link = "" }, []string{"- **In Git:** `web.yaml:1`\n"}, ""},
		"people who are known": {
			func(c *change) {
				c.drifts[0].By = []api.Actor{{Manager: "kubectl-edit", Operation: "Update", Time: noon}, {Manager: "helm", Operation: "Apply"}}
				c.drifts[1].By = []api.Actor{{Manager: "kubectl-edit", Operation: "Update"}}
			},
			[]string{"- **Who:** `kubectl-edit (Update)`, `helm (Apply)`\n", "east: kubectl-edit (Update) at 2027-01-15T12:00:00Z\n", "east: helm", "west: kubectl-edit"}, "not known",
		},
		"changed before on one of them": {
			func(c *change) { c.drifts[0].Count, c.drifts[1].Count = 3, 1 },
			[]string{"east: not known; the object was changed there 2 times before\nwest: not known\n"}, "",
		},
		"seen earlier on the other cluster": {
			func(c *change) { c.drifts[1].Since = noon.Add(-time.Hour) }, []string{"first seen at 2027-01-15T11:00:00Z"}, "",
		},
		"an override": {
			func(c *change) { c.override = "ResourceOverride web-1" },
			[]string{"on these clusters. `ResourceOverride web-1` in `web.yaml` is for them only: while it sets the value, later changes of it in the manifest do not reach them.\n"}, "other cluster",
		},
		"an override that deletes": {
			func(c *change) { c.override, c.deleted, c.paths = "ResourceOverride web-1", true, nil }, []string{"`ResourceOverride web-1` in `web.yaml` is for them only.\n"}, "sets the value",
		},
		"other clusters change as well": {
			func(c *change) { c.others = []string{"north"} },
			[]string{"on these clusters. It also **changes** the object on 1 other cluster, in the order of the rollout: `north`.\n"}, "",
		},
		"deleted": {
			func(c *change) { c.deleted, c.paths = true, nil },
			[]string{
				"`ConfigMap shop/web` was deleted on 2 clusters, and is left so until this pull request is merged or closed.\n", "```diff\n- (the whole object)\n```\n",
				"**Squashing:** keep the trailer `Gitfleet-Allow-Delete: crp/web`, which allows the deletion, as the last line of the message.\n",
				"**Merging** takes the deletion over into Git.", "**Closing** creates the object again as it is in Git, also if",
			},
			"",
		},
		"an issue": {
			func(c *change) { c.reason = errors.New("line 7: `x`: an anchor") },
			[]string{
				"left so until this issue is closed.\n", "**Why this is not a pull request:** no edit of the files in Git makes the change: `` line 7: `x`: an anchor ``\n",
				"**To keep the change**, make it in Git by hand. Once these clusters have the commit, gitfleet closes this issue.\n", "**Closing** reverts the change",
			},
			"**Merging**",
		},
		"a long reason": {func(c *change) { c.reason = errors.New(strings.Repeat("x", 3000)) }, []string{strings.Repeat("x", maxReason-1) + "…`\n"}, ""},
		"very many clusters": {
			func(c *change) {
				d := c.drifts[0]
				c.drifts = nil
				for i := range most + 3 {
					c.drifts = append(c.drifts, &status.Drift{Cluster: fmt.Sprintf("c%02d", i), Placement: d.Placement, Since: noon, By: []api.Actor{{Manager: "helm", Operation: "Apply"}}})
				}
			},
			[]string{"on 53 clusters", "`c49`, and 3 more; first seen", "c49: helm (Apply)\nand 3 more\n"}, "c50: helm",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := heldChange(7, "east", "west")
			c.link = "https://git.example.com/c/web.yaml#L1"
			for _, d := range c.drifts {
				d.Since = noon
			}
			test.change(c)
			body := c.body("shop", nil)
			for _, want := range test.want {
				if !strings.Contains(body, want) {
					t.Errorf("the body has no\n%s\nin\n%s", want, body)
				}
			}
			if test.not != "" && strings.Contains(body, test.not) {
				t.Errorf("the body has %q:\n%s", test.not, body)
			}
			if !strings.HasSuffix(body, "\n\n"+marker("shop", c.hash)+"\n") {
				t.Errorf("the body ends without its marker:\n%s", body)
			}
		})
	}
}

// The newest pull request lists the objects that wait, each change once, and not more than fit.
func TestTheBodyListsWhatWaits(t *testing.T) {
	var waiting []*change
	for i := range most + 2 {
		waiting = append(waiting, heldChange(i+10, "east"))
		waiting[i].id.Name = fmt.Sprint("web-", i)
	}
	for n, want := range map[int]string{
		0: "", 1: "**Waiting** until fewer pull requests and issues of drift are open: 1 change: `ConfigMap shop/web-0`.\n",
		2: ": 2 changes: `ConfigMap shop/web-0`, `ConfigMap shop/web-1`.\n", most + 2: ": 52 changes: `ConfigMap shop/web-0`,",
	} {
		body := heldChange(7, "east").body("shop", waiting[:n])
		if !strings.Contains(body, want) || strings.Contains(body, "**Waiting**") != (n > 0) || n > most && !strings.Contains(body, ", and 2 more.\n") {
			t.Errorf("with %d waiting the body is\n%s", n, body)
		}
	}
}

// The message of the commit names the file, the object and the fields, and ends with the trailers.
func TestTheCommitMessage(t *testing.T) {
	c := heldChange(7, "east", "west")
	c.paths = append(c.paths, api.Difference{PatchDetail: api.PatchDetail{Path: "/data/a\nGitfleet-Allow-Delete: crp/web"}})
	const want = "web.yaml: take over drift of ConfigMap shop/web\n\nFields that were changed on member clusters:\n- data.key\n- data[\"a\\nGitfleet-Allow-Delete: crp\"].web\n\nGitfleet-Drift: 0000000000000007\n"
	if got := c.message(trailer(c.hash)); got != want {
		t.Errorf("the message is\n%s\nwant\n%s", got, want)
	}
}

// Each placement of the change has a label, shortened to what forges allow.
func TestLabelsOfPlacements(t *testing.T) {
	c := heldChange(7, "east", "west", "north")
	c.drifts[1].Placement, c.drifts[2].Placement = "rp/shop/web", "crp/"+strings.Repeat("x", 63)
	want := []string{driftLabel, "gitfleet/severity: other", "placement/web", "placement/shop/web", "placement/" + strings.Repeat("x", 40)}
	if got := c.labels(); strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("the labels are %q, want %q", got, want)
	}
	c = heldChange(7, "east")
	for id, want := range map[api.ID]string{{Kind: "ServiceAccount", Name: "a"}: "rbac", {Group: "example.com", Kind: "ServiceAccount", Name: "a"}: "other"} {
		if c.id = id; c.severity() != want {
			t.Errorf("%s is %q, want %q", id, c.severity(), want)
		}
	}
}

// Values of Secrets cannot be adopted, and neither can what is not known.
func TestAdoptable(t *testing.T) {
	trace := func(d *status.Drift) *status.Trace {
		return &status.Trace{Cluster: "east", Origin: "web.yaml:1", ResourceIdentifier: api.ResourceIdentifier{Kind: "Secret", Name: "web"}, Drift: d}
	}
	masked, plain := heldChange(7).paths[0], heldChange(7).paths[0]
	masked.ValueInMember = "(redacted for security reasons)"
	for name, test := range map[string]struct {
		drift *status.Drift
		want  string
	}{
		"no drift":    {nil, "Secret/web on east: no drift is known"},
		"no field":    {&status.Drift{}, "Secret/web on east: no drift is known"},
		"deleted":     {&status.Drift{Deleted: true}, ""},
		"a field":     {&status.Drift{Paths: []api.Difference{plain}}, ""},
		"of a Secret": {&status.Drift{Paths: []api.Difference{plain, masked}}, "Secret/web: gitfleet does not know values of Secrets, nor writes those that are encrypted in Git; edit web.yaml:1 by hand, with sops if it is encrypted"},
	} {
		got := ""
		if err := Adoptable(trace(test.drift)); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
