package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/fleet"
)

// A member that accepts connections and never answers does not affect the others: a commit
// reaches them with as many requests as before. It is reported as not answering, and catches up
// when it answers again.
func TestSilentMemberAffectsNoOther(t *testing.T) {
	d := newDaemon(t, "--set", "members.probeInterval=1s", "--set", "members.timeout=2s")
	app := func(value string) map[string]string {
		files := map[string]string{"namespace.yaml": yamlNamespace(d.name)}
		for i := range 30 { // more than may be in flight to one member
			files[fmt.Sprintf("cm-%02d.yaml", i)] = yamlConfigMap(d.name, fmt.Sprintf("cm-%02d", i), value)
		}
		return files
	}
	first := app("a")
	first["placement.yaml"] = yamlPlacement("all", d.name, pickAll+"  strategy: {rollingUpdate: {maxUnavailable: 100%}}\n")
	d.startAt(d.repo.Commit(t, "main", first))
	// reaches returns how many objects and inventories were written until the members had a
	// value.
	reaches := func(value string, members ...string) map[string][2]int {
		t.Helper()
		start := d.waitForAuditLog()
		d.repo.Commit(t, "main", app(value))
		d.eventually(value+" on "+strings.Join(members, " "), func() bool {
			for _, m := range members {
				for _, name := range []string{"cm-00", "cm-29"} {
					if d.configMap(m, name)["value"] != value {
						return false
					}
				}
			}
			return true
		})
		d.waitForAuditLog()
		written := map[string][2]int{}
		for _, m := range members {
			objects, inventories := d.asked(m, start)
			written[m] = [2]int{len(slices.DeleteFunc(objects, reads)), len(slices.DeleteFunc(inventories, reads))}
		}
		return written
	}
	usual := reaches("b", d.members...)
	f := fleet.Shared(t)
	if err := f.Pause("member-2"); err != nil {
		t.Fatal(err)
	}
	resumed := false
	resume := func() {
		if !resumed {
			resumed = true
			if err := f.Resume("member-2"); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(resume)
	for _, value := range []string{"c", "d", "e"} {
		for m, n := range reaches(value, "member-1", "member-3") {
			if n[0] != usual[m][0] || n[0] != 30 || n[1] > 2 {
				t.Errorf("%s: %d objects and %d inventories were written to %s beside a member that does not answer, and %d and %d before", value, n[0], n[1], m, usual[m][0], usual[m][1])
			}
		}
	}
	d.until("reported as not answering", func(r *status.Report) bool {
		for _, c := range r.Clusters {
			for _, a := range c.Status.AgentStatus {
				for _, cond := range a.Conditions {
					if c.Name == "member-2" && cond.Type == api.Healthy && cond.Status == metav1.ConditionFalse && strings.Contains(cond.Message, "did not answer in time") {
						return true
					}
				}
			}
		}
		return false
	})
	resume()
	d.eventually("caught up", func() bool { return d.configMap("member-2", "cm-29")["value"] == "e" })
	d.applied(d.repo.Head(t, "main"))
}
