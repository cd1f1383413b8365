package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/githttp"
)

// config writes a configuration file for the daemon's fleet.
func (d *daemon) config() string {
	d.t.Helper()
	path := filepath.Join(d.t.TempDir(), "gitfleet.yaml")
	text := fmt.Sprintf("fleetName: %s\nsource: {url: %q, branch: main, allowHTTP: true}\nmembers: {kubeconfigDir: %q}\n", d.name, d.git.URL("hub.git"), d.args[slices.Index(d.args, "--kubeconfig-dir")+1])
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
	return path
}

// diffed parses the output of diff: a line for each object, and its fields.
func diffed(t *testing.T, out string) (all []string, fields map[string]string) {
	t.Helper()
	var doc struct {
		Clusters []struct {
			Name, Error string
			Changes     []struct {
				Effect, Kind, Name, Message string
				TakesOver                   bool
				Fields                      []struct{ Path, ValueInHub, ValueInMember string }
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	fields = map[string]string{}
	for _, c := range doc.Clusters {
		if c.Error != "" {
			all = append(all, c.Name+" cannot be compared")
		}
		for _, x := range c.Changes {
			text := c.Name + " " + x.Effect + " " + x.Kind + "/" + x.Name
			if x.TakesOver {
				text += " taken over"
			}
			all = append(all, text)
			for _, f := range x.Fields {
				fields[text+" "+f.Path] = f.ValueInMember + " -> " + f.ValueInHub
			}
		}
	}
	slices.Sort(all)
	return all, fields
}

// Diff shows what a sync would change, and changes nothing; after the sync there is no
// difference.
func TestDiffShowsWhatASyncChanges(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-of-the-diff"
	d := newDaemon(t)
	all := yamlNamespace(d.name) + "---\n" + yamlPlacement("all", d.name, pickAll)
	first := d.repo.Commit(t, "main", map[string]string{
		"apps/all.yaml": all, "apps/one.yaml": yamlConfigMap(d.name, "one", "a"), "apps/two.yaml": yamlConfigMap(d.name, "two", "a"),
		"apps/web.yaml": yamlDeployment(d.name, "web", 2),
	})
	d.start()
	d.applied(first)
	if out, code := d.cli("trace", "cm/one", "-n", d.name, "--cluster", "member-1"); code != 0 || !strings.Contains(out, "apps/one.yaml:1") ||
		!strings.Contains(out, first) || !strings.Contains(out, "crp/all  (apps/all.yaml:") || !strings.Contains(out, "applied and available") {
		t.Errorf("trace: exit code %d\n%s", code, out)
	}
	d.stop()
	config := d.config()
	for _, how := range [][]string{nil, {"--server-side"}} {
		out, code := d.cli(append([]string{"diff", "--config", config}, how...)...)
		if code != 0 || !strings.Contains(out, "member-1, member-2, member-3: no difference") {
			t.Fatalf("all is synced, %q: exit code %d\n%s", how, code, out)
		}
	}

	// Somebody changes an object, and creates one that Git will have soon.
	ctx, client := context.Background(), d.clients["member-1"]
	d.edit("member-1", "one")
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "three", Namespace: d.name}, Data: map[string]string{"value": "theirs", "other": "kept"}}
	if _, err := client.CoreV1().ConfigMaps(d.name).Create(ctx, foreign, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	checkout := t.TempDir()
	if _, err := githttp.Git(checkout, "clone", "--quiet", d.repo.Dir, "."); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"apps/web.yaml": yamlDeployment(d.name, "web", 3), "apps/three.yaml": yamlConfigMap(d.name, "three", "ours"),
		"apps/key.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: key, namespace: " + d.name + "}\nstringData: {password: " + secret + "}\n",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(checkout, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(checkout, "apps/two.yaml")); err != nil {
		t.Fatal(err)
	}
	before := d.versions("member-1")
	var want []string
	for _, m := range d.members {
		want = append(want, m+" add Secret/key", m+" change Deployment/web", m+" delete ConfigMap/two")
		if m == "member-1" {
			want = append(want, m+" change ConfigMap/one", m+" change ConfigMap/three taken over")
		} else {
			want = append(want, m+" add ConfigMap/three")
		}
	}
	slices.Sort(want)
	printed := ""
	for _, how := range [][]string{nil, {"--server-side"}} {
		out, code := d.cli(append([]string{"diff", "--config", config, "--path", checkout, "-o", "json"}, how...)...)
		got, fields := diffed(t, out)
		if code != 1 || !slices.Equal(got, want) {
			t.Errorf("%q: exit code %d\n%s\nwant\n%s", how, code, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		for at, want := range map[string]string{
			"member-1 change ConfigMap/one /data/value":              "tampered -> a",
			"member-1 change ConfigMap/three taken over /data/value": "theirs -> ours",
			"member-2 change Deployment/web /spec/replicas":          "2 -> 3",
		} {
			if fields[at] != want {
				t.Errorf("%q: %s: %q, want %q", how, at, fields[at], want)
			}
		}
		printed += out
	}
	out, code := d.cli("diff", "cm/one", "-n", d.name, "--config", config, "--path", checkout, "--server-side")
	if code != 1 || !strings.Contains(out, "member-1: 1 to change\n") || !strings.Contains(out, "member-2, member-3: no difference") {
		t.Errorf("one object: exit code %d\n%s", code, out)
	}
	if out, code := d.cli("diff", "cm/nowhere", "-n", d.name, "--config", config, "--path", checkout); code != 2 || !strings.Contains(out, "no placement delivers cm/"+d.name+"/nowhere") {
		t.Errorf("an object that is nowhere: exit code %d\n%s", code, out)
	}
	text, code := d.cli("diff", "crp/all", "--config", config, "--path", checkout, "--cluster", "member-2")
	if code != 1 || !strings.Contains(text, "member-2: 2 to add, 1 to change, 1 to delete") || !strings.Contains(text, "- 2\n") || strings.Contains(text, "member-1") {
		t.Errorf("as text: exit code %d\n%s", code, text)
	}
	if strings.Contains(printed+out+text, secret) {
		t.Error("it shows a secret")
	}
	if after := d.versions("member-1"); after != before {
		t.Errorf("it wrote something:\n%s\nbefore\n%s", after, before)
	}

	d.repo.Commit(t, "main", files)
	last := d.repo.Remove(t, "main", "apps/two.yaml")
	if out, code := d.cli("diff", "--config", config, "-o", "json"); code != 1 {
		t.Errorf("of the repository: exit code %d\n%s", code, out)
	} else if got, _ := diffed(t, out); !slices.Equal(got, want) {
		t.Errorf("of the repository it says other than of the checkout:\n%s", strings.Join(got, "\n"))
	}
	d.start()
	d.until("answering", func(*status.Report) bool { return true })
	d.asks("applied", "wait", "crp/all", "--for=applied", "--commit", last) // no pod ever runs, so it is not available
	d.eventually("pruned", func() bool { return d.configMap("member-3", "two") == nil })
	d.stop()
	if out, code := d.cli("diff", "--config", config); code != 0 {
		t.Errorf("synced: exit code %d\n%s", code, out)
	}

	for name, args := range map[string][]string{
		"there is no placement crp/al; did you mean crp/all?":                    {"diff", "crp/al", "--config", config},
		"there is no cluster member-9; did you mean member-":                     {"diff", "--config", config, "--cluster", "member-9"},
		"member-1: cannot be compared: no credentials for member member-1":       {"diff", "--config", config, "--kubeconfig-dir", t.TempDir()},
		"nothing to compare: set --config gitfleet.yaml":                         {"diff"},
		"--path and --commit exclude each other":                                 {"diff", "--config", config, "--path", checkout, "--commit", "main"},
		"the kubeconfigs of the members are missing: set --config gitfleet.yaml": {"diff", "--path", checkout},
	} {
		want := 2
		if strings.HasPrefix(name, "there is no ") {
			want = 1
		}
		if out, code := d.cli(args...); code != want || !strings.Contains(out, name) {
			t.Errorf("%s: exit code %d\n%s\nwant %s", strings.Join(args, " "), code, out, name)
		}
	}
}

// versions returns the resource versions of all objects of the test on a cluster, with the
// inventories.
func (d *daemon) versions(cluster string) string {
	d.t.Helper()
	var out []string
	for _, namespace := range []string{d.name, "gitfleet-system"} {
		cms, err := d.clients[cluster].CoreV1().ConfigMaps(namespace).List(context.Background(), metav1.ListOptions{})
		if err != nil {
			d.t.Fatal(err)
		}
		for _, cm := range cms.Items {
			if namespace == d.name || cm.Labels["gitfleet.dev/managed-by"] == d.name {
				out = append(out, cm.Name+" "+cm.ResourceVersion)
			}
		}
	}
	return strings.Join(out, "\n")
}
