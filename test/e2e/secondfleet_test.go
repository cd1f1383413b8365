package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/githttp"
)

// heldByAnother lists the clusters that a daemon reports as held by another fleet, and the
// message.
func heldByAnother(r *status.Report) (clusters []string, message string) {
	for _, c := range r.Clusters {
		for _, cond := range c.Status.Conditions {
			if cond.Reason == api.MemberClusterForeign && cond.Type == api.Joined && cond.Status == metav1.ConditionFalse {
				clusters, message = append(clusters, c.Name), cond.Message
			}
		}
	}
	return clusters, message
}

// onMembers returns the resource versions of all objects of a daemon on the members.
func (d *daemon) onMembers() map[string]string {
	d.t.Helper()
	out := map[string]string{}
	for _, m := range d.members {
		for _, c := range slices.Concat(d.configMaps(m, d.name), d.configMaps(m, api.Namespace)) {
			if c.Labels[api.ManagedByLabel] == d.name {
				out[m+"/"+c.Namespace+"/"+c.Name] = c.ResourceVersion
			}
		}
	}
	return out
}

// Two repositories, two state directories, the same clusters and the same fleet name: the
// second daemon writes nothing and reports why, until a user has it adopt the clusters; then
// the first one writes nothing there any more. Nothing of the first fleet is deleted before a
// commit allows it.
func TestSecondFleetOfTheSameNameWritesNothing(t *testing.T) {
	t.Parallel()
	first := newDaemon(t)
	first.startAt(first.repo.Commit(t, "main", map[string]string{
		"namespace.yaml": yamlNamespace(first.name), "one.yaml": yamlConfigMap(first.name, "one", "first"),
		"placement.yaml": yamlPlacement("app", first.name, pickAll),
	}))
	before := first.onMembers()
	second := newDaemon(t, "--fleet-name", first.name)
	second.repo.Commit(t, "main", map[string]string{
		"namespace.yaml": yamlNamespace(second.name), "two.yaml": yamlConfigMap(second.name, "two", "second"),
		"placement.yaml": yamlPlacement("app", second.name, pickAll),
	})
	second.start()
	var why string
	second.until("held by the first", func(r *status.Report) bool {
		var held []string
		held, why = heldByAnother(r)
		return len(held) == len(second.members)
	})
	id := first.report().Fleet.ID
	for _, want := range []string{id[:8], strings.TrimPrefix(strings.TrimSuffix(first.git.URL("hub.git"), ".git"), "http://"), "gitfleet adopt-fleet " + id[:8]} {
		if !strings.Contains(why, want) {
			t.Errorf("%q is not in the message: %s", want, why)
		}
	}
	// It has checked everything again, and found nothing to do.
	second.asks("3 clusters", "sync", "--wait=false")
	second.until("still held", func(r *status.Report) bool { held, _ := heldByAnother(r); return len(held) == len(second.members) })
	if after := first.onMembers(); len(before) == 0 || !maps.Equal(before, after) {
		t.Errorf("the first daemon's objects were\n%v\nand are\n%v", before, after)
	}
	for _, m := range second.members {
		if second.configMap(m, "two") != nil {
			t.Errorf("%s: the second daemon has written", m)
		}
	}
	if out, code := second.cli("status"); !strings.Contains(out, id[:8]) {
		t.Errorf("status: exit code %d\n%s", code, out)
	}
	if out, code := second.cli("adopt-fleet"); code != 1 || strings.Count(out, id[:8]) < 3 {
		t.Errorf("adopt-fleet: exit code %d\n%s", code, out)
	}
	if out, code := second.cli("adopt-fleet", "00000000"); code != 2 || !strings.Contains(out, id[:8]+" on member-1") {
		t.Errorf("adopt-fleet with a wrong ID: exit code %d\n%s", code, out)
	}

	second.asks("belongs to this fleet now", "adopt-fleet", id[:8], "--cluster", "member-1")
	second.eventually("applied on the adopted cluster", func() bool { return second.configMap("member-1", "two") != nil })
	first.until("the first has lost it", func(r *status.Report) bool {
		held, _ := heldByAnother(r)
		return slices.Equal(held, []string{"member-1"})
	})
	r := second.until("what it does not have is held", func(r *status.Report) bool { return len(blockedDeletions(r, "member-1")) == 2 })
	if why := blockedDeletions(r, "member-1")[0]; !strings.Contains(why, "taken over from another fleet") {
		t.Errorf("it says: %s", why)
	}
	if first.configMap("member-1", "one") == nil || second.configMap("member-2", "two") != nil {
		t.Error("something was deleted, or written to a cluster that was not adopted")
	}
	first.repo.Commit(t, "main", map[string]string{"one.yaml": yamlConfigMap(first.name, "one", "changed")})
	first.eventually("the first fleet continues on other members", func() bool { return first.configMap("member-2", "one")["value"] == "changed" })
	if got := first.configMap("member-1", "one")["value"]; got != "first" {
		t.Errorf("the first has written to the adopted cluster: %q", got)
	}
	second.commitAllowing("crp/app", githttp.Change{Files: map[string]string{"README.md": "clean up"}})
	second.eventually("deleted once that is allowed", func() bool {
		return second.configMap("member-1", "one") == nil && first.configMap("member-1", "one") == nil
	})
	if first.configMap("member-2", "one") == nil {
		t.Error("something was deleted on a cluster that was not adopted")
	}
}

// Two daemons with one fleet name start at the same time on empty clusters: on each cluster
// exactly one of them writes, and the other reports what to do. When the clusters leave, the
// claims are removed, too.
func TestTwoFleetsOfTheSameNameStartTogether(t *testing.T) {
	t.Parallel()
	first := newDaemon(t)
	second := newDaemon(t, "--fleet-name", first.name)
	both := []*daemon{first, second}
	for _, d := range both {
		d.repo.Commit(t, "main", map[string]string{
			"namespace.yaml": yamlNamespace(d.name), "one.yaml": yamlConfigMap(d.name, "one", "a"),
			"placement.yaml": yamlPlacement("app", d.name, pickAll),
		})
	}
	for _, d := range both {
		d.start()
	}
	has := map[*daemon][]string{} // the clusters that each daemon writes to
	first.eventually("each cluster is held by one of the two", func() bool {
		clear(has)
		for _, d := range both {
			r := d.report()
			if r == nil {
				return false
			}
			held, why := heldByAnother(r)
			if len(held) > 0 && !strings.Contains(why, "set another fleetName, or adopt its inventories with gitfleet adopt-fleet ") {
				t.Fatalf("it says: %s", why)
			}
			for _, m := range d.members {
				if !slices.Contains(held, m) && d.configMap(m, "one") != nil {
					has[d] = append(has[d], m)
				}
			}
		}
		return len(has[first])+len(has[second]) == len(first.members)
	})
	for i, d := range both {
		d.asks("3 clusters", "sync", "--wait=false")
		other := both[1-i]
		for _, m := range d.members {
			if slices.Contains(has[d], m) == slices.Contains(has[other], m) {
				t.Errorf("%s is held by the first: %v, by the second: %v", m, has[first], has[second])
			}
			if slices.Contains(has[other], m) && d.configMap(m, "one") != nil {
				t.Errorf("%s: the daemon that does not hold it has written", m)
			}
		}
	}
	for _, d := range both {
		d.commitAllowing("*", githttp.Change{Remove: []string{"clusters/member-1.yaml", "clusters/member-2.yaml", "clusters/member-3.yaml"}})
	}
	first.eventually("nothing is left of either", func() bool { return len(first.onMembers()) == 0 })
}

// Without a fleet name each repository gets its own, which does not change: both fleets keep
// their objects, and an object that both want stays with the first.
func TestFleetsWithoutANameCoexist(t *testing.T) {
	t.Parallel()
	first, second := newDaemon(t), newDaemon(t)
	for _, d := range []*daemon{first, second} {
		at := slices.Index(d.args, "--fleet-name")
		d.args = slices.Delete(d.args, at, at+2)
	}
	shared := first.name
	first.repo.Commit(t, "main", map[string]string{
		"namespace.yaml": yamlNamespace(shared), "both.yaml": yamlConfigMap(shared, "both", "first"),
		"placement.yaml": yamlPlacement("app", shared, pickAll),
	})
	first.start()
	first.eventually("the first is applied", func() bool {
		return first.configMap("member-1", "both")["value"] == "first" && first.configMap("member-3", "both") != nil
	})
	second.repo.Commit(t, "main", map[string]string{
		"namespace.yaml": yamlNamespace(second.name), "own.yaml": yamlConfigMap(second.name, "own", "second"),
		"placement.yaml": yamlPlacement("app", second.name, pickAll),
		"shared.yaml":    yamlNamespace(shared), "both.yaml": yamlConfigMap(shared, "both", "second"),
		"theirs.yaml": yamlPlacement("theirs", shared, pickAll),
	})
	second.start()
	second.eventually("the second is applied", func() bool {
		return second.configMap("member-1", "own") != nil && second.configMap("member-3", "own") != nil
	})
	r := second.until("the shared object is refused", func(r *status.Report) bool {
		for _, p := range r.Placements {
			if p.Name == "theirs" {
				for _, s := range p.Status.PlacementStatuses {
					if len(s.FailedPlacements) > 0 {
						return true
					}
				}
			}
		}
		return false
	})
	if a, b := first.report().Fleet, r.Fleet; a.Name == b.Name || !strings.HasPrefix(a.Name, "hub-") || a.ID == b.ID {
		t.Errorf("the fleets are %v and %v", a, b)
	}
	if held, _ := heldByAnother(r); len(held) > 0 {
		t.Errorf("%v are held", held)
	}
	for _, m := range first.members {
		if got := first.configMap(m, "both")["value"]; got != "first" {
			t.Errorf("%s: the shared object has %q", m, got)
		}
	}
	name := r.Fleet.Name
	second.stop()
	second.args = append(second.args, "--fleet-name", "store")
	second.command = nil
	out, code := second.cli(append(slices.Clone(second.args), "--listen", "127.0.0.1:0")...)
	if code != 2 || !strings.Contains(out, `"`+name+`"`) || !strings.Contains(out, "set fleetName: "+name) {
		t.Errorf("another name: exit code %d\n%s", code, out)
	}
}

// A daemon whose state directory is lost finds its fleet's ID in the inventories, and writes
// nothing that exists already.
func TestInventoriesAreAdoptedAfterStateLoss(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	d.startAt(d.repo.Commit(t, "main", map[string]string{
		"namespace.yaml": yamlNamespace(d.name), "one.yaml": yamlConfigMap(d.name, "one", "a"),
		"placement.yaml": yamlPlacement("app", d.name, pickAll),
	}))
	id, before := d.report().Fleet.ID, d.onMembers()
	d.stop()
	if err := os.RemoveAll(filepath.Join(d.state(), "ledger")); err != nil {
		t.Fatal(err)
	}
	d.start()
	r := d.until("available again", func(r *status.Report) bool { return len(r.Placements) == 1 && len(notApplied(r)) == 0 })
	if held, _ := heldByAnother(r); r.Fleet.ID != id || len(held) > 0 {
		t.Errorf("the ID is %s, was %s; held: %v", r.Fleet.ID, id, held)
	}
	if after := d.onMembers(); !maps.Equal(before, after) {
		t.Errorf("was\n%v\nis\n%v", before, after)
	}
}
