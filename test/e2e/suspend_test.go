package e2e

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/fleet"
)

// A suspended object is not written, whatever happens to it, and its differences are reported;
// after it is resumed, everything is applied again.
func TestAgentDoesNotWriteSuspendedObjects(t *testing.T) {
	t.Parallel()
	const why = "suspended by alice: INC-1"
	tests := map[string]func(ns string, w *work.Work){
		"a placement": func(_ string, w *work.Work) { w.Suspended = why },
		"objects": func(ns string, w *work.Work) {
			for _, name := range []string{"cm-000", "cm-001", "cm-002", "new"} {
				w.SuspendedObjects = append(w.SuspendedObjects, work.SuspendedObject{ID: api.ID{Kind: "ConfigMap", Namespace: ns, Name: name}, Why: why})
			}
		},
	}
	for name, suspend := range tests {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t)
			ns, key := fleet.Namespace(t), api.PlacementKey{Name: "web"}
			cms := a.client.CoreV1().ConfigMaps(ns)
			ctx := context.Background()
			ms := many(ns, 3, "a")
			a.Set([]*work.Work{workOf("web", "1", ms...)})
			a.applied(key, "1")
			a.eventually("inventory written", func() (bool, error) { return a.inventoryHas("c-1"), nil })

			w := workOf("web", "2", append(slices.Clone(ms[:2]), configMap(ns, "cm-001", "b"), configMap(ns, "new", "b"))...)
			suspend(ns, w)
			a.sent.Reset()
			a.Set([]*work.Work{w})
			a.until(key, "reported", func(w protocol.WorkSeen) bool { return w.Revision.Hash == "2" && w.Done })
			if _, err := cms.Patch(ctx, "cm-000", types.MergePatchType, []byte(`{"data":{"key":"tampered"}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"}); err != nil {
				t.Fatal(err)
			}
			seen := a.until(key, "drift reported", func(w protocol.WorkSeen) bool {
				return slices.ContainsFunc(w.Unusual().Drifts, func(d protocol.Drift) bool { return d.ID.Name == "cm-000" && d.State == api.DriftStanding })
			})
			states := map[string]protocol.ObjectState{}
			for _, e := range seen.Exceptions {
				states[e.ID.Name] = e
			}
			for _, name := range []string{"cm-000", "cm-001", "new"} {
				if got := states[name]; got.Applied.Reason != api.Suspended || !strings.Contains(got.Applied.Message(), why) || got.Applied.OK != (name == "cm-000") {
					t.Errorf("%s: %+v", name, got)
				}
			}
			if objects, inventories := split(a.changes()); len(objects) > 0 || name == "a placement" && len(inventories) > 0 {
				t.Errorf("written although suspended: %v %v", objects, inventories)
			}
			if cm, err := cms.Get(ctx, "cm-002", metav1.GetOptions{}); err != nil || cm.Data["key"] != "a" {
				t.Errorf("what is wanted no more: %v %v", cm.Data, err)
			}

			resumed := *w
			resumed.Suspended, resumed.SuspendedObjects = "", nil
			a.Set([]*work.Work{&resumed})
			a.until(key, "applied", func(w protocol.WorkSeen) bool { return w.Applied() && len(w.Exceptions) == 0 })
			a.eventually("as wanted", func() (bool, error) {
				list, err := cms.List(ctx, metav1.ListOptions{LabelSelector: api.ManagedByLabel + "=" + a.fleet})
				var got []string
				for _, cm := range list.Items {
					got = append(got, cm.Name+"="+cm.Data["key"])
				}
				return strings.Join(got, " ") == "cm-000=a cm-001=b new=b", errors.Join(err, errors.New(strings.Join(got, " ")))
			})
		})
	}
}

// changes returns the requests that changed something, without dry runs.
func (a *agent) changes() []string {
	var out []string
	for _, q := range a.sent.Objects() {
		if q.Method != "GET" && q.Query.Get("dryRun") == "" {
			out = append(out, q.Method+" "+q.Path)
		}
	}
	return out
}

// cli runs a command of the built binary against the daemon.
func (d *daemon) cli(args ...string) (out string, code int) {
	d.t.Helper()
	path, err := binary()
	if err != nil {
		d.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var text bytes.Buffer
	c := exec.CommandContext(ctx, path, args...)
	c.Env = append(c.Environ(), "GITFLEET_SERVER=http://"+d.address, "USER=alice")
	c.Stdout, c.Stderr = &text, &text
	c.Run()
	return text.String(), c.ProcessState.ExitCode()
}

func (d *daemon) asks(want string, args ...string) {
	d.t.Helper()
	var out string
	var code int
	d.eventually("gitfleet "+args[0]+" is answered", func() bool {
		out, code = d.cli(args...)
		return !strings.Contains(out, "no daemon answers")
	})
	if code != 0 || !strings.Contains(out, want) {
		d.t.Fatalf("gitfleet %s: exit code %d\n%s\nwant %s", strings.Join(args, " "), code, out, want)
	}
}

// A user suspends one object on one cluster, and a cluster: nothing is written there, also
// after a restart, until the user resumes it, or the suspension expires.
func TestSuspendAndResume(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	first := d.repo.Commit(t, "main", map[string]string{
		"apps/all.yaml": yamlNamespace(d.name) + "---\n" + yamlConfigMap(d.name, "one", "a") + "---\n" +
			yamlConfigMap(d.name, "two", "a") + "---\n" + yamlPlacement("all", d.name, pickAll+"  strategy: {rollingUpdate: {maxUnavailable: 100%}}\n"),
	})
	d.start()
	d.applied(first)

	if out, code := d.cli("suspend", "crp/al", "--reason", "INC-1"); code != 1 || !strings.Contains(out, "there is no placement crp/al; did you mean crp/all?") {
		t.Errorf("an unknown placement: exit code %d\n%s", code, out)
	}
	d.asks("ConfigMap/"+d.name+"/one on member-1 is suspended by alice: INC-1", "suspend", "cm/one", "-n", d.name, "--cluster", "member-1", "--reason", "INC-1")
	d.asks("cluster/member-2 is suspended by alice until", "suspend", "cluster/member-2", "--for", "1h", "--reason", "INC-2")
	d.edit("member-1", "one")
	d.edit("member-1", "two")
	d.edit("member-2", "two")
	d.eventually("objects that are not suspended are restored", func() bool { return d.configMap("member-1", "two")["value"] == "a" })
	d.until("the drift is reported", func(r *status.Report) bool { return len(standing(r)) == 2 })

	d.repo.Commit(t, "main", map[string]string{"apps/all.yaml": yamlNamespace(d.name) + "---\n" + yamlConfigMap(d.name, "one", "b") + "---\n" +
		yamlConfigMap(d.name, "two", "b") + "---\n" + yamlPlacement("all", d.name, pickAll+"  strategy: {rollingUpdate: {maxUnavailable: 100%}}\n")})
	d.eventually("the others go on", func() bool {
		return d.configMap("member-3", "one")["value"] == "b" && d.configMap("member-1", "two")["value"] == "b"
	})
	d.kill()
	d.start()
	d.until("reported again", func(r *status.Report) bool {
		return len(r.Suspensions) == 2 && r.Source.InForce.Hash == d.repo.Head(t, "main")
	})
	for _, at := range [][2]string{{"member-1", "one"}, {"member-2", "two"}} {
		if got := d.configMap(at[0], at[1])["value"]; got != "tampered" {
			t.Errorf("%s on %s is %q after a restart", at[1], at[0], got)
		}
	}
	if out, code := d.cli("sync", "crp/all", "--wait", "--timeout", "30s"); code != 1 || !strings.Contains(out, "suspended by alice until") {
		t.Errorf("waiting for what is suspended: exit code %d\n%s", code, out)
	}

	d.asks("is resumed", "resume", "configmap/one", "-n", d.name, "--cluster", "member-1")
	d.asks("is resumed", "resume", "cluster/member-2")
	d.asks("is applied", "sync", "crp/all", "--wait")
	for _, m := range d.members {
		if one, two := d.configMap(m, "one")["value"], d.configMap(m, "two")["value"]; one != "b" || two != "b" {
			t.Errorf("%s has %q and %q", m, one, two)
		}
	}

	d.asks("suspended by alice until", "suspend", "crp/all", "--cluster", "member-3", "--for", "2s", "--reason", "a moment")
	d.edit("member-3", "one")
	d.eventually("restored when the suspension expires", func() bool { return d.configMap("member-3", "one")["value"] == "b" })
	if out, code := d.cli("resume", "crp/all", "--cluster", "member-3"); code != 2 || !strings.Contains(out, "crp/all on member-3 is not suspended, and nothing else is either") {
		t.Errorf("resumed twice: exit code %d\n%s", code, out)
	}
}

// standing returns the drift that is left alone.
func standing(r *status.Report) []status.Drift {
	return slices.DeleteFunc(slices.Clone(r.Drifts), func(d status.Drift) bool { return d.State != api.DriftStanding })
}

// edit changes an object as with kubectl.
func (d *daemon) edit(cluster, name string) {
	d.t.Helper()
	_, err := d.clients[cluster].CoreV1().ConfigMaps(d.name).Patch(context.Background(), name, types.MergePatchType,
		[]byte(`{"data":{"value":"tampered"}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	if err != nil {
		d.t.Fatal(err)
	}
}
