package proposal

import (
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/proposal/edit"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/world"
)

// addedChange returns a change that adds a key.
func addedChange(clusters ...string) *change {
	c := heldChange(9, clusters...)
	c.addition, c.paths[0].ValueInHub = true, ""
	for _, d := range c.drifts {
		d.State, d.Addition, d.Rule = api.DriftAdded, true, "propose"
	}
	return c
}

// What somebody has added is offered like other drift, and is removed if the pull request is closed.
func TestAdditionsAreOffered(t *testing.T) {
	p := newProposing(10)
	p.after(t, 3*time.Minute, addedChange("east"))
	p.says(t, "east", "held: left as it is; offered as https://git.example.com/pulls/1")
	pr := p.forge.Pulls[0]
	if want := "Drift: ConfigMap shop/web: key added on 1 cluster"; pr.Title != want {
		t.Errorf("the title is %q, want %q", pr.Title, want)
	}
	for _, want := range []string{
		"Something that Git does not have was added to `ConfigMap shop/web` on 1 cluster, and is left there until this pull request is merged or closed.",
		"takes the addition over into Git", "**Closing** removes it from these clusters",
	} {
		if !strings.Contains(pr.Body, want) {
			t.Errorf("the body has no %q:\n%s", want, pr.Body)
		}
	}
	p.forge.End(1, forge.Closed)
	p.after(t, 30*time.Second, addedChange("east"))
	p.says(t, "east", "put back: https://git.example.com/pulls/1 was closed without merging")
	for key := range p.resolved["east"] {
		if !key.Addition {
			t.Errorf("the decision is about %+v", key)
		}
	}
}

// An addition that can be offered neither as a pull request nor as an issue stays: nobody has rejected it.
func TestAnAdditionThatCannotBeOfferedStays(t *testing.T) {
	p := newProposing(10)
	p.forge.refuseIssues = forge.ErrIssuesDisabled
	c := addedChange("east")
	c.files, c.reason = nil, edit.ErrInManifest
	p.after(t, 5*time.Minute, c)
	p.says(t, "east", "held: left as it is and only reported, since it can be offered neither as a pull request nor as an issue")
}

// An object may have an addition that is offered beside a change that is held: they are two changes. An addition that
// is only reported is none.
func TestAdditionsBesideAChange(t *testing.T) {
	added := func(rule string) protocol.Drift {
		return protocol.Drift{
			ID: api.ID{Kind: "ConfigMap", Namespace: "web", Name: "one"}, Version: "v1", State: api.DriftAdded, Addition: true, Rule: rule, Count: 1, FirstSeen: now, LastSeen: now,
			Paths: []api.Difference{{PatchDetail: api.PatchDetail{Path: "/data/more", ValueInMember: "theirs"}, MemberJSON: []byte(`"theirs"`)}},
		}
	}
	for rule, want := range map[string]int{"propose": 2, "": 1} {
		change := func(d *protocol.Drift) {
			d.Rule, d.Paths = "propose", []api.Difference{{PatchDetail: api.PatchDetail{Path: "/data/key", ValueInHub: "plain", ValueInMember: "x"}}}
		}
		files := world.Files(t, smallFleet)
		r := reporting(t, files, change, "east")
		extra := r.Drifts[0]
		d := added(rule)
		extra.State, extra.Addition, extra.Rule, extra.Paths = d.State, d.Addition, d.Rule, d.Paths
		r.Drifts = append(r.Drifts, extra)
		col := collector{fleet: "shop", load: func(files fs.FS) (*hub.Snapshot, error) {
			return hub.NewLoader(hub.Options{}).Load(hub.Commit{}, files)
		}}
		offers, others := col.collect(r, files)
		if len(offers)+len(others) != want {
			t.Errorf("with the rule %q there are %d changes, want %d", rule, len(offers)+len(others), want)
		}
		hashes := map[string]bool{}
		for _, c := range offers {
			hashes[c.hash] = true
			text := c.body("shop", nil)
			if c.addition && (!strings.Contains(text, "**puts back** what else was changed in the object: `") || strings.Contains(text, "Nothing is written")) {
				t.Errorf("what merging does: %s", text)
			}
			if c.addition && (c.reason != nil || len(c.files) == 0) {
				t.Errorf("the addition has no edit: %v", c.reason)
			}
		}
		if len(hashes) != len(offers) {
			t.Error("the change and the addition have the same hash")
		}
	}
}
