package simulation

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
)

// converge ends all faults, and waits until everything is as it should be.
func (w *world) converge(r *rand.Rand) {
	w.runEvent(func() {
		w.endAllFaults()
		d := w.newestValid().clone()
		d.makeValid(r)
		if w.staged {
			d.makeValidStaged()
		}
		w.push("what can be carried out\n\nGitfleet-Allow-Delete: *", d)
	})
	if w.daemon == nil {
		w.wake()
	}
	w.endSuspensions()
	settle := w.waitUntilSettled
	if w.staged {
		settle = w.finishRuns
	}
	if why := settle(); why != "" {
		w.violate(invariantConverges, "%s", why)
	}
	w.checkRemoved()
}

func (w *world) endAllFaults() {
	w.logf("all faults end")
	if w.daemon != nil {
		w.daemon.writesUntilKill = -1
	}
	w.blips, w.gates = false, gatesPass
	for _, name := range keys(w.hosts) {
		h := w.hosts[name]
		w.set(h, func() {
			h.down, h.hung, h.halfPass = false, false, 20*time.Millisecond
			clear(h.failingWrites)
			h.becomeUnavailable(0)
			h.removeOtherFleet()
		})
	}
}

const invariantConverges = "once all faults end, the fleet becomes what the commit says"

// makeValid corrects everything in a commit that cannot be applied in this fleet.
func (d *desired) makeValid(r *rand.Rand) {
	fine := func(value string) string {
		if k := kindOf(value); k == bad || k == refused {
			return good + value[len(k):] + "-mended"
		}
		return value
	}
	for _, values := range d.configMaps {
		for name, value := range values {
			values[name] = fine(value)
		}
	}
	for id, o := range d.overrides {
		d.overrides[id] = override{fine(o.value), o.region}
	}
	for name, c := range d.clusters {
		d.clusters[name] = cluster{region: c.region}
	}
	taken := map[string]bool{}
	for _, name := range keys(d.placements) {
		p := d.placements[name]
		p.namespaces = slices.DeleteFunc(slices.Clone(p.namespaces), func(space string) bool { return taken[space] })
		for _, space := range p.namespaces {
			taken[space] = true
		}
		if len(p.namespaces) == 0 {
			delete(d.placements, name)
			continue
		}
		p.invalid = false
		p.region = ""
		p.clusterNames = slices.DeleteFunc(slices.Clone(p.clusterNames), func(c string) bool { _, ok := d.clusters[c]; return !ok })
		p.numberOfClusters = min(p.numberOfClusters, len(d.clusters))
		if p.maxUnavailable == "0" {
			p.maxUnavailable = pick(r, []string{"1", ""})
		}
		d.placements[name] = p
	}
}

// settled returns what differs from the head; empty if nothing does.
func (w *world) settled() string {
	head := w.source.commits[w.source.head]
	if w.saved.head != head.Hash {
		return fmt.Sprintf("%s is in force, not %s", w.saved.head, head.Hash)
	}
	for _, s := range w.suspensions() {
		if !w.saved.requestedSuspensions[s].ended(w.now()) {
			return fmt.Sprintf("%s is still suspended", s)
		}
	}
	for key, page := range w.saved.entries {
		if _, ok := head.placements[key.Name]; !ok {
			return fmt.Sprintf("%s is still there", key)
		}
		for name := range page {
			if at := (bindingKey{key, name}); !w.saved.keeps(at) {
				return fmt.Sprintf("%s is still on %s", key, name)
			}
		}
	}
	for name, p := range head.placements {
		if why := w.checkClusters(api.PlacementKey{Name: name}, p, head.desired); why != "" {
			return why
		}
	}
	for name := range head.clusters {
		if a := w.daemon.agent(name); a == nil || !a.connected || a.pass != nil {
			return fmt.Sprintf("%s is still at work", name)
		}
		if why := w.checkObjects(w.hosts[name], head.desired); why != "" {
			return why
		}
	}
	return ""
}

// checkClusters compares the clusters of a placement with those in its policy.
func (w *world) checkClusters(key api.PlacementKey, p placementSpec, head *desired) string {
	page := w.saved.entries[key]
	want := len(head.clusters)
	switch {
	case len(p.clusterNames) > 0:
		want = len(p.clusterNames)
	case p.numberOfClusters >= 0:
		want = p.numberOfClusters
	}
	if len(page) != want {
		return fmt.Sprintf("%s is on %d clusters, not on %d", key, len(page), want)
	}
	for name, e := range page {
		if len(p.clusterNames) > 0 && !slices.Contains(p.clusterNames, name) {
			return fmt.Sprintf("%s is on %s", key, name)
		}
		then := w.source.commits[e.Binding.Assigned.Commit]
		if then == nil || !sameContent(w.content(e.Binding.Assigned, bindingKey{key, name}), head.content(key.Name, name)) {
			return fmt.Sprintf("%s has %q on %s", key, e.Binding.Assigned.Commit, name)
		}
	}
	return ""
}

// checkObjects compares the objects of a cluster with the head.
func (w *world) checkObjects(h *host, head *desired) string {
	want := map[api.ID]string{}
	for key := range w.saved.entries {
		if p := head.placements[key.Name]; !p.reportDiff && w.saved.keeps(bindingKey{key, h.name}) {
			maps.Copy(want, head.content(key.Name, h.name))
		}
	}
	for id, value := range want {
		if t := h.objects[id]; t == nil || !t.ours || t.value != value {
			return fmt.Sprintf("%s has %s as %+v, not as %q", h.name, title(id), t, value)
		}
		if _, ok := h.owner(id); !ok {
			return fmt.Sprintf("no inventory of %s has %s", h.name, title(id))
		}
	}
	for id, t := range h.objects {
		if by, ok := h.owner(id); ok && head.placements[by.Name].reportDiff {
			continue // with ReportDiff nothing is deleted
		}
		if _, ok := want[id]; !ok && t.ours {
			return fmt.Sprintf("%s still has %s", h.name, title(id))
		}
	}
	return ""
}
