package e2e

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/test/fleet"
	"github.com/gitfleet/gitfleet/test/process"
)

// newReplicas creates two daemons that share a lease on a real API server, and starts neither.
func newReplicas(t *testing.T) (one, two *daemon) {
	t.Helper()
	one = newDaemon(t)
	one.args = append(one.args,
		"--set", "highAvailability.lease.name="+one.name, "--set", "highAvailability.lease.namespace=default",
		"--set", "highAvailability.kubeconfig="+fleet.Shared(t).Member("member-1").Kubeconfig)
	other := *one
	two = &other
	two.args = slices.Clone(one.args)
	var err error
	if two.address, err = process.FreeAddress(); err != nil {
		t.Fatal(err)
	}
	two.args[slices.Index(two.args, "--listen")+1] = two.address
	two.args[slices.Index(two.args, "--state-dir")+1] = t.TempDir()
	if two.log, err = os.Create(filepath.Join(t.TempDir(), "other.log")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			text, _ := os.ReadFile(two.log.Name())
			t.Logf("log of the other daemon:\n%s", text[max(0, len(text)-8<<10):])
		}
	})
	return one, two
}

// standsBy is what a replica answers while another one leads.
var standsBy = regexp.MustCompile(`^this replica stands by: (\S+) leads since \S+; ask that one at (\S+)\n$`)

// waitForStandby waits until a replica says that another one leads, and returns who that is and the address at which it
// answers.
func (d *daemon) waitForStandby() (leader, address string) {
	d.t.Helper()
	d.eventually("that it stands by", func() bool {
		code, text := d.ask("/report")
		said := standsBy.FindStringSubmatch(text)
		if code != http.StatusServiceUnavailable || said == nil {
			return false
		}
		leader, address = said[1], said[2]
		return true
	})
	return leader, address
}

// ask returns the status and the body of the answer to a GET; zero if there is none.
func (d *daemon) ask(path string) (code int, text string) {
	resp, err := http.Get("http://" + d.address + path)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body)
}

// manyChanges is a number of ConfigMaps large enough that a replica can be interrupted while it
// writes them.
const manyChanges = 40

func (d *daemon) changeAll(value string) string {
	d.t.Helper()
	files := map[string]string{}
	for i := range manyChanges {
		files[fmt.Sprintf("change-%d.yaml", i)] = changing(d.name, fmt.Sprintf("change-%d", i), value)
	}
	return d.repo.Commit(d.t, "main", files)
}

// waitForValueOn waits until a number of members have the value.
func (d *daemon) waitForValueOn(value string, members int) {
	d.t.Helper()
	d.eventually(fmt.Sprintf("%q on %d members", value, members), func() bool {
		have := 0
		for _, member := range d.members {
			if slices.Contains(slices.Collect(maps.Values(d.ownedValues(member))), value) {
				have++
			}
		}
		return have >= members
	})
}

// writes lists the writes of ConfigMaps of the test on a member since a time. Requests that the API
// server answered with an error wrote nothing: for example one whose sender was stopped before it had
// sent the body.
func (d *daemon) writes(member string, since time.Time) (lines []string) {
	d.t.Helper()
	objects, _ := d.asked(member, since)
	for _, line := range objects {
		if !reads(line) && strings.Contains(line, " configmaps "+d.name+"/") && strings.HasPrefix(line[strings.LastIndex(line, " "):], " 2") {
			lines = append(lines, line)
		}
	}
	return lines
}

func (d *daemon) placeWithValue(value string) string {
	d.t.Helper()
	d.repo.Commit(d.t, "main", map[string]string{
		"namespace.yaml": yamlNamespace(d.name),
		"place.yaml":     yamlPlacement(d.name, d.name, ""),
	})
	return d.changeAll(value)
}

// The leader is killed during a rollout: the other replica continues, and does not repeat the
// first one's writes. Until then it is healthy and not ready, and says who leads and where.
func TestReplicaTakesOverFromAKilledLeader(t *testing.T) {
	t.Parallel()
	one, two := newReplicas(t)
	first := one.placeWithValue("1")
	one.start()
	one.applied(first)
	two.start()
	leader, address := two.waitForStandby()
	if address != "http://"+one.address {
		t.Errorf("the leader is said to be at %s, and is at %s", address, one.address)
	}
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/metrics": http.StatusOK, "/readyz": http.StatusServiceUnavailable} {
		if code, text := two.ask(path); code != want {
			t.Errorf("a standby answers %s with %d %s", path, code, text)
		}
	}
	if out, code := two.cli("status", "--server", "http://"+two.address); code == 0 || !strings.Contains(out, leader+" leads since") || !strings.Contains(out, address) {
		t.Errorf("gitfleet status of a standby: exit code %d\n%s", code, out)
	}
	out, code := two.cli(append([]string{"doctor"}, two.args[1:]...)...)
	for _, want := range []string{"ok    lease default/" + one.name + ": " + leader + " leads", "ok    ledger default/" + one.name + ": 1 placement in "} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("doctor: exit code %d, %q is missing in\n%s", code, want, out)
		}
	}
	since := one.waitForAuditLog()
	second := one.changeAll("2")
	one.waitForValueOn("2", 2)
	one.kill()
	killed := time.Now()
	two.applied(second)
	t.Logf("all of it was applied %s after the leader was killed", time.Since(killed).Round(100*time.Millisecond))
	two.waitForAuditLog()
	unfinished := 0
	for _, member := range two.members {
		// What the killed leader had begun on a cluster is not in the inventory there yet, and
		// is sent again; what it had finished is not.
		switch written := len(two.writes(member, since)); {
		case written == manyChanges:
		case written > manyChanges && written <= 2*manyChanges:
			unfinished++
		default:
			t.Errorf("%s: %d objects were written %d times", member, manyChanges, written)
		}
		if names := two.inventories(member); len(names) != 1 {
			t.Errorf("the inventories of %s are %v", member, names)
		}
	}
	if unfinished > 1 {
		t.Errorf("on %d clusters objects were written twice; one at a time is updated", unfinished)
	}
}

// A leader that is stopped with SIGSTOP during a rollout and continues when another one leads
// writes nothing more, and ends.
func TestPausedLeaderWritesNothingAfterItContinues(t *testing.T) {
	t.Parallel()
	one, two := newReplicas(t)
	first := one.placeWithValue("1")
	one.start()
	one.applied(first)
	two.start()
	two.waitForStandby()
	one.changeAll("2")
	one.waitForValueOn("2", 1)
	if err := one.command.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	third := two.changeAll("3")
	two.applied(third)
	since := two.waitForAuditLog()
	if err := one.command.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	one.command.Wait()
	if got := one.command.ProcessState.String(); got != "exit status 2" {
		t.Errorf("the former leader ended with %s", got)
	}
	one.command = nil
	two.waitForAuditLog()
	for _, member := range two.members {
		if written := two.writes(member, since); len(written) > 0 {
			t.Errorf("written on %s after the former leader woke up: %v", member, written)
		}
		for i := range manyChanges {
			if got := two.configMap(member, fmt.Sprintf("change-%d", i))["value"]; got != "3" {
				t.Errorf("%s: change-%d is %q", member, i, got)
			}
		}
	}
}
