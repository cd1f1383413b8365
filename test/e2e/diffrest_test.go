package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/test/sshd"
)

// Diff shows nothing that a sync would not do: suspended objects are shown as left alone, and
// objects that ask to be kept as released. Without a daemon, it says that it does not know what
// is suspended.
func TestDiffMarksSuspendedObjects(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	kept := strings.Replace(yamlConfigMap(d.name, "kept", "a"), "metadata:\n", "metadata:\n  annotations: {gitfleet.dev/prune: disabled}\n", 1)
	files := map[string]string{
		"all.yaml": yamlNamespace(d.name) + "---\n" + yamlConfigMap(d.name, "one", "a") + "---\n" + yamlConfigMap(d.name, "two", "a") + "---\n" + yamlPlacement("all", d.name, pickAll),
	}
	for i := range 12 { // more than the limit of deletions
		files[fmt.Sprintf("kept/%02d.yaml", i)] = strings.Replace(kept, "name: kept", fmt.Sprintf("name: kept-%02d", i), 1)
	}
	d.startAt(d.repo.Commit(t, "main", files))
	config := d.config()
	d.asks("is suspended by alice", "suspend", "cm/one", "-n", d.name, "--cluster", "member-1", "--reason", "INC-1: tuned")
	d.asks("is suspended by alice", "suspend", "cluster/member-2", "--reason", "INC-2: moved")

	checkout := d.checkout()
	changed := yamlNamespace(d.name) + "---\n" + yamlConfigMap(d.name, "one", "b") + "---\n" + yamlConfigMap(d.name, "new", "b") + "---\n" + yamlPlacement("all", d.name, pickAll)
	if err := os.WriteFile(filepath.Join(checkout, "all.yaml"), []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(checkout, "kept")); err != nil {
		t.Fatal(err)
	}
	out, code := d.cli("diff", "--config", config, "--path", checkout, "-o", "json")
	got, _ := diffed(t, out)
	var want []string
	for m, effects := range map[string][4]string{
		"member-1": {"differ", "add", "delete", "release"}, "member-2": {"differ", "differ", "differ", "differ"}, "member-3": {"change", "add", "delete", "release"},
	} {
		want = append(want, m+" "+effects[0]+" ConfigMap/one", m+" "+effects[1]+" ConfigMap/new", m+" "+effects[2]+" ConfigMap/two")
		for i := range 12 {
			want = append(want, fmt.Sprintf("%s %s ConfigMap/kept-%02d", m, effects[3], i))
		}
	}
	slices.Sort(want)
	if code != 1 || !slices.Equal(got, want) {
		t.Errorf("exit code %d\n%s\nwant\n%s", code, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if strings.Contains(out, "blocked until a commit allows it") {
		t.Errorf("what is released is no deletion, and not held:\n%s", out)
	}
	text, _ := d.cli("diff", "--config", config, "--path", checkout)
	for _, want := range []string{
		"suspended by alice: INC-1: tuned\n      once that is over: to change\n", "suspended by alice: INC-2: moved\n      once that is over: to delete\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "note:") {
		t.Errorf("the daemon was asked:\n%s", text)
	}

	// The daemon of another repository is not used, and without a daemon suspensions are
	// unknown.
	other := strings.Replace(read(t, config), "hub.git", "other.git", 1)
	if text, _ := d.cli("diff", "--config", write(t, filepath.Join(t.TempDir(), "other.yaml"), other), "--path", checkout); !strings.Contains(text, "note: whether anything is suspended is not known: the daemon at http://"+d.address+" follows ") {
		t.Errorf("of another daemon:\n%s", text)
	}
	d.stop()
	text, code = d.cli("diff", "--config", config, "--path", checkout, "--cluster", "member-2")
	if code != 1 || !strings.Contains(text, "note: whether anything is suspended is not known: no daemon answers at http://"+d.address) || !strings.Contains(text, "member-2: 1 to add, 1 to change, 1 to delete, 12 to release") {
		t.Errorf("without a daemon: exit code %d\n%s", code, text)
	}
}

// Diff says so if the newest commit would not be accepted, because of a missing or untrusted
// signature, and shows its content nevertheless.
func TestDiffOfARefusedCommit(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	dir := t.TempDir()
	key := sshd.NewKey(t, filepath.Join(dir, "ada"), "")
	signers := write(t, filepath.Join(dir, "signers"), "ada@example.com "+read(t, key+".pub"))
	d.args = append(d.args, "--set", "source.signatures.allowedSigners="+signers)
	d.commitOne("a")
	since := d.repo.Head(t, "main")
	signed := d.sign(key)
	d.args = append(d.args, "--set", "source.signatures.since="+since)
	config := write(t, filepath.Join(dir, "gitfleet.yaml"), strings.Replace(read(t, d.config()), "allowHTTP: true",
		fmt.Sprintf("allowHTTP: true, signatures: {allowedSigners: %q, since: %s}", signers, since), 1))
	d.startAt(signed)
	if out, code := d.cli("diff", "--config", config); code != 0 {
		t.Errorf("of a signed commit: exit code %d\n%s", code, out)
	}
	unsigned := d.commitOne("b")
	for _, state := range []string{"running", "stopped"} {
		if state == "stopped" {
			d.stop()
		}
		out, code := d.cli("diff", "--config", config)
		if code != 1 || !strings.Contains(out, "! the newest commit is not accepted: commit "+unsigned+": not signed") || !strings.Contains(out, "~ ConfigMap/"+d.name+"/one") {
			t.Errorf("of an unsigned commit, with the daemon %s: exit code %d\n%s", state, code, out)
		}
	}
}
