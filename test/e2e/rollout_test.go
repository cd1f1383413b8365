package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/fleet"
)

// yamlWithExpression returns a ConfigMap that is available unless its value is broken, so that a commit
// can break it.
func yamlWithExpression(namespace, name, value string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata:
  name: %s
  namespace: %s
  annotations: {gitfleet.dev/available: "!object.data.value.startsWith('broken')"}
data: {value: %q}
`, name, namespace, value)
}

const oneByOne = "  strategy: {rollingUpdate: {maxUnavailable: 1, maxSurge: 3}}\n"

// app returns a commit's application: one object of yamlWithExpression.
func (d *daemon) app(value string) map[string]string {
	return map[string]string{"app.yaml": yamlNamespace(d.name) + "---\n" + yamlWithExpression(d.name, "one", value)}
}

// values returns the values on the members, in their order; "-" for none.
func (d *daemon) values() string {
	var out []string
	for _, m := range d.members {
		value := d.configMap(m, "one")["value"]
		if value == "" {
			value = "-"
		}
		out = append(out, value)
	}
	return strings.Join(out, " ")
}

// waitForValues waits until the members have these values.
func (d *daemon) waitForValues(want string) {
	d.t.Helper()
	got := ""
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if got = d.values(); got == want {
			return
		}
	}
	text, _ := d.cli("status")
	d.t.Fatalf("the members have %s, want %s\n%s", got, want, text)
}

// waitForProven waits until the only placement reports that a commit was available on every cluster.
func (d *daemon) waitForProven(commit string) {
	d.t.Helper()
	d.until(commit+" is proven", func(r *status.Report) bool { return len(r.Details) == 1 && r.Details[0].Proven == commit })
}

// waits waits until the status of a placement on a cluster says why the rollout waits there,
// and the members have these values.
func (d *daemon) waits(cluster, why, values string) {
	d.t.Helper()
	said := ""
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		r := d.report()
		if r == nil || len(r.Details) != 1 {
			continue
		}
		for _, c := range r.Details[0].Clusters {
			if c.Cluster == cluster {
				said = c.Waits
			}
		}
		if strings.Contains(said, why) && d.values() == values {
			return
		}
	}
	d.t.Fatalf("of %s it says %q, want %q; the members have %s, want %s", cluster, said, why, d.values(), values)
}

// contains reports whether a part of a report contains a text.
func contains(part any, words string) bool {
	text, err := json.Marshal(part)
	return err == nil && strings.Contains(string(text), words)
}

// A commit that breaks something available stops at the first cluster, also after a restart. A
// cluster that joins gets the last good content, a user can resume the rollout, and a commit
// with a fix continues without that.
func TestFailedUpdateStopsTheRollout(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, "--set", "rollout.availableTimeout=2s")
	d.repo.Remove(t, "main", "clusters/member-3.yaml")
	d.repo.Commit(t, "main", map[string]string{"placement.yaml": yamlPlacement("all", d.name, pickAll+oneByOne)})
	good := d.repo.Commit(t, "main", d.app("good"))
	d.startAt(good)
	d.waitForValues("good good -")
	d.waitForProven(good)

	d.repo.Commit(t, "main", d.app("broken"))
	const stopped = "waits for cluster member-1, which was available before its update and is not now; " +
		"the rollout goes on when it recovers, with a commit that changes what it gets, or with gitfleet resume --stopped --reason TEXT"
	d.waits("member-2", stopped, "broken good -")
	text, _ := d.cli("status")
	if !strings.Contains(text, "member-1") || !strings.Contains(text, "gitfleet resume crp/all --stopped") {
		t.Errorf("the status does not say what to do:\n%s", text)
	}
	d.kill()
	d.start()
	d.waits("member-2", stopped, "broken good -")

	d.repo.Commit(t, "main", map[string]string{"clusters/member-3.yaml": memberCluster("member-3")})
	d.waitForValues("broken good good")
	d.waits("member-3", stopped, "broken good good")

	// A suspension does not end the stop, neither when it begins nor when it ends.
	d.asks("is suspended by", "suspend", "crp/all", "--reason", "an incident")
	d.asks("its rollout is stopped by the failed update of member-1", "resume", "crp/all")
	d.waits("member-2", stopped, "broken good good")
	d.asks("is suspended by", "suspend", "cluster/member-1", "--reason", "an incident")
	d.waits("member-2", "is not now (it is suspended); the rollout goes on when", "broken good good")
	d.asks("is resumed", "resume", "cluster/member-1")
	d.waits("member-2", stopped, "broken good good")
	if out, code := d.cli("resume", "crp/all"); code != 2 || !strings.Contains(out, "gitfleet resume crp/all --stopped --reason TEXT") {
		t.Errorf("resume without --stopped: exit code %d\n%s", code, out)
	}

	d.asks("continues within its budget, although cluster member-1 is not available", "resume", "crp/all", "--stopped", "--reason", "an incident")
	d.waits("member-3", "maxUnavailable 1: waits for member-1 to be available", "broken good good")
	d.repo.Commit(t, "main", map[string]string{"placement.yaml": yamlPlacement("all", d.name, pickAll+"  strategy: {rollingUpdate: {maxUnavailable: 2}}\n")})
	d.waits("member-3", "waits for cluster member-2, which was available", "broken broken good")

	fixed := d.repo.Commit(t, "main", d.app("fixed"))
	d.waitForValues("fixed fixed fixed")
	d.waitForProven(fixed)

	// After a resume the rollout continues within the budget: a broken cluster does not count
	// as available.
	d.repo.Commit(t, "main", map[string]string{"placement.yaml": strings.Replace(yamlPlacement("all", d.name, pickAll+
		"  strategy: {rollingUpdate: {maxUnavailable: 2}}\n"), "  name: all\n", "  name: all\n  annotations: {gitfleet.dev/on-failure: continue}\n", 1)})
	d.repo.Commit(t, "main", d.app("broken-again"))
	d.waitForValues("broken-again broken-again fixed")
	d.waits("member-3", "maxUnavailable 2: waits for member-1, member-2 to be available", "broken-again broken-again fixed")
}

// With the strategy External nothing is rolled out, which the status says for each cluster;
// drift is still reverted.
func TestExternalStrategyUpdatesNoCluster(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	d.repo.Remove(t, "main", "clusters/member-3.yaml")
	d.repo.Commit(t, "main", map[string]string{"placement.yaml": yamlPlacement("all", d.name, pickAll+oneByOne)})
	d.startAt(d.repo.Commit(t, "main", d.app("a")))
	d.waitForValues("a a -")
	files := d.app("b")
	files["placement.yaml"] = yamlPlacement("all", d.name, pickAll+"  strategy: {type: External}\n")
	files["clusters/member-3.yaml"] = memberCluster("member-3")
	d.repo.Commit(t, "main", files)
	const external = "the strategy is External: the cluster waits for an update run"
	for _, m := range d.members {
		d.waits(m, external, "a a -")
	}
	d.tamper("member-1", "a")
	d.kill()
	d.start()
	d.waits("member-3", external, "a a -")
	d.repo.Commit(t, "main", map[string]string{"placement.yaml": yamlPlacement("all", d.name, pickAll+oneByOne)})
	d.waitForValues("b b b")
}

// With Abandon the objects of a deleted placement stay, without an owner, although the daemon
// was not running when the placement was deleted.
func TestDeletedPlacementAbandonsItsObjects(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	d.startAt(d.abandoning("a"))
	d.waitForValues("a a a")
	d.stop()
	d.repo.Remove(t, "main", "placement.yaml", "app.yaml")
	d.start()
	d.waitForAbandoned()
	d.waitForValues("a a a")
}

// otherPlacement returns a placement of another namespace, for tests that delete the first: a
// repository without any placement is refused.
func (d *daemon) otherPlacement() string {
	return yamlNamespace(d.name+"-rest") + "---\n" + yamlPlacement("rest", d.name+"-rest", pickAll)
}

// abandoning commits a placement with Abandon, and another one that stays.
func (d *daemon) abandoning(value string) string {
	files := d.app(value)
	files["placement.yaml"] = yamlPlacement("all", d.name, pickAll+"  strategy: {rollingUpdate: {maxUnavailable: 3}, deleteStrategy: {propagationPolicy: Abandon}}\n")
	files["rest.yaml"] = d.otherPlacement()
	return d.repo.Commit(d.t, "main", files)
}

// waitForAbandoned waits until the placement is gone, and checks that gitfleet owns none of its
// objects.
func (d *daemon) waitForAbandoned() {
	d.t.Helper()
	d.until("forgotten", func(r *status.Report) bool {
		return r.Source.InForce.Hash == d.repo.Head(d.t, "main") && len(r.Details) == 1
	})
	for _, m := range d.members {
		if got := d.ownedValues(m); len(got) > 0 {
			d.t.Errorf("%s: still ours: %v", m, got)
		}
		if got := d.inventories(m); len(got) != 1 {
			d.t.Errorf("%s: there are inventories: %v", m, got)
		}
		if d.configMap(m, "one") == nil {
			d.t.Errorf("%s: what was abandoned is gone", m)
		}
	}
}

// An override for one cluster is rolled out there, and causes no request to the others. An
// override that cannot be applied fails on that cluster only, which keeps its content, and the
// corrected one reaches it at once; one that matches nothing is reported.
func TestOverrideOfOneClusterUpdatesOnlyThatCluster(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	d.repo.Commit(t, "main", map[string]string{"placement.yaml": yamlPlacement("all", d.name, pickAll+oneByOne)})
	d.startAt(d.repo.Commit(t, "main", d.app("a")))
	d.waitForValues("a a a")
	override := func(object, number, patch string) map[string]string {
		return map[string]string{"override.yaml": fmt.Sprintf(`apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ResourceOverride
metadata: {name: tune, namespace: %s}
spec:
  placement: {name: all}
  resourceSelectors: [{group: "", version: v1, kind: ConfigMap, name: %s}]
  policy:
    overrideRules:
    - clusterSelector: {clusterSelectorTerms: [{labelSelector: {matchLabels: {number: %q}}}]}
      jsonPatchOverrides: [%s]
`, d.name, object, number, patch)}
	}
	since := d.waitForAuditLog()
	d.repo.Commit(t, "main", override("one", "2", `{op: replace, path: /data/value, value: "${MEMBER-CLUSTER-NAME}"}`))
	d.waitForValues("a member-2 a")
	d.repo.Commit(t, "main", override("one", "2", `{op: replace, path: /data/none, value: x}`))
	d.until("it says what is wrong", func(r *status.Report) bool {
		return contains(r.Placements[0].Status, `failed to apply on ConfigMap`)
	})
	d.waitForValues("a member-2 a")
	d.repo.Commit(t, "main", override("one", "2", `{op: replace, path: /data/value, value: c}`))
	d.waitForValues("a c a")
	d.waitForAuditLog()
	for _, m := range []string{"member-1", "member-3"} {
		objects, inventories := d.asked(m, since)
		for _, line := range append(objects, inventories...) {
			if !reads(line) {
				t.Errorf("%s got a request: %s", m, line)
			}
		}
	}
	d.repo.Commit(t, "main", override("two", "2", `{op: replace, path: /data/value, value: c}`))
	d.waitForValues("a a a")
	d.until("the override is named", func(r *status.Report) bool {
		return len(r.Details[0].Warnings) == 1 && strings.Contains(r.Details[0].Warnings[0], `ResourceOverride "`+d.name+`/tune" selects v1 ConfigMap`)
	})
}

// A member that does not answer does not count as unavailable, unless maxUnreachable says so.
func TestMaxUnreachableLimitsUncountedMembers(t *testing.T) {
	for name, setting := range map[string]string{"any number": "100%", "none": "0"} {
		t.Run(name, func(t *testing.T) {
			d := newDaemon(t, "--set", "members.probeInterval=1s", "--set", "members.timeout=2s", "--set", "rollout.maxUnreachable="+setting)
			d.repo.Commit(t, "main", map[string]string{"placement.yaml": yamlPlacement("all", d.name, pickAll+oneByOne)})
			d.startAt(d.repo.Commit(t, "main", d.app("a")))
			d.waitForValues("a a a")
			says := func(what string) {
				t.Helper()
				d.until("it says "+what, func(r *status.Report) bool {
					return r.Source.InForce.Hash == d.repo.Head(t, "main") && contains(r.Placements[0].Status, what)
				})
			}
			f := fleet.Shared(t)
			if err := f.Pause("member-2"); err != nil {
				t.Fatal(err)
			}
			resume := sync.OnceFunc(func() {
				if err := f.Resume("member-2"); err != nil {
					t.Error(err)
				}
			})
			t.Cleanup(resume)
			d.until("reported as not answering", func(r *status.Report) bool { return contains(r.Clusters, "did not answer in time") })
			d.repo.Commit(t, "main", d.app("b"))
			says("the cluster is unreachable and left as it is until it answers")
			has := func(m string) string { return d.configMap(m, "one")["value"] }
			if setting == "0" {
				says("maxUnavailable 1: waits for member-2 to be available")
				if has("member-1") != "a" || has("member-3") != "a" {
					t.Errorf("the others have %s and %s", has("member-1"), has("member-3"))
				}
			} else {
				d.eventually("the others go on", func() bool { return has("member-1") == "b" && has("member-3") == "b" })
			}
			resume()
			d.waitForValues("b b b")
		})
	}
}
