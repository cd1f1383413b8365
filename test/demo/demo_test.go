package main

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/gitfleet/gitfleet/gitsource/hub"
)

// quickstart returns the files of the demo's first commit.
func quickstart(t *testing.T) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	for _, dir := range []string{filepath.Join("..", "..", "examples", "quickstart"), "staged"} {
		err := fs.WalkDir(os.DirFS(dir), ".", func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			data, err := os.ReadFile(filepath.Join(dir, path))
			files[path] = &fstest.MapFile{Data: data}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// tourOf returns the text of a tour.
func tourOf(t *testing.T, tr tour) string {
	t.Helper()
	text, err := newScreen(os.Stdout).render(tr)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// appended returns what the n-th "echo" of the tour appends to its file.
func appended(t *testing.T, text string, n int) (file, line string) {
	t.Helper()
	for l := range strings.Lines(text) {
		rest, found := strings.CutPrefix(strings.TrimSpace(l), "echo '")
		if !found {
			continue
		}
		if n--; n < 0 {
			line, file, _ = strings.Cut(rest, "' >> fleet/")
			return file, line
		}
	}
	t.Fatal("no such command in the tour")
	return "", ""
}

// The objects and files that the tour names exist in the example. The first change loads, the
// other one does not.
func TestTourWorksOnTheExample(t *testing.T) {
	text := tourOf(t, tour{Checkout: "fleet", File: "platform/fleet-info.yaml", Victim: victims[0]})

	files := quickstart(t)
	file, line := appended(t, text, 0)
	if files[file] == nil {
		t.Fatalf("no %s in the example", file)
	}
	files[file].Data = append(files[file].Data, line+"\n"...)
	snapshot, err := hub.NewLoader(hub.Options{}).Load(hub.Commit{Hash: "one"}, files)
	if err != nil {
		t.Fatalf("after the first change: %v", err)
	}
	found := map[string]bool{}
	for _, o := range snapshot.Objects {
		found[o.ID.String()] = true
	}
	for _, v := range victims {
		if id := "ConfigMap/" + v.Namespace + "/" + v.Name; !found[id] {
			t.Errorf("no %s in the example; there are %v", id, slices.Sorted(maps.Keys(found)))
		}
	}
	if !found["Deployment.apps/storefront/storefront"] {
		t.Error("the Deployment that the tour scales is not in the example")
	}
	var names []string
	for _, c := range snapshot.Clusters {
		names = append(names, c.Name)
	}
	if !slices.Equal(names, members) {
		t.Errorf("the example has members %v, the demo %v", names, members)
	}

	file, line = appended(t, text, 1)
	files[file].Data = append(files[file].Data, line+"\n"...)
	if _, err := hub.NewLoader(hub.Options{}).Load(hub.Commit{Hash: "two"}, files); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("after the second change: %v", err)
	}
}

// The image that the tour replaces is in the file that it names, and the demo's kubelet cannot
// pull the new one.
func TestTourBreaksAnImageOfTheExample(t *testing.T) {
	files := quickstart(t)
	text := string(files[storefrontFile].Data)
	if strings.Count(text, storefrontImage) != 1 {
		t.Fatalf("%s is not once in %s:\n%s", storefrontImage, storefrontFile, text)
	}
	files[storefrontFile].Data = []byte(strings.Replace(text, storefrontImage, badImage, 1))
	if _, err := hub.NewLoader(hub.Options{}).Load(hub.Commit{Hash: "bad"}, files); err != nil {
		t.Errorf("the commit with the bad image is refused: %v", err)
	}
	p := pod{}
	for image, want := range map[string]string{storefrontImage: "Running", badImage: "ImagePullBackOff"} {
		p.Spec.Containers = []struct{ Name, Image string }{{"web", image}}
		if got := p.status(); !strings.Contains(got, want) || !json.Valid([]byte(got)) {
			t.Errorf("of a pod of %s the kubelet says %s, want %s", image, got, want)
		}
	}
	if got := tourOf(t, tour{Checkout: "fleet", Deployment: storefrontFile, Image: storefrontImage, BadImage: badImage}); !strings.Contains(got, "sed -i.bak 's|nginx:1.29|nginx:no-such-tag|' fleet/apps/storefront/deployment.yaml\n    rm fleet/apps/storefront/deployment.yaml.bak\n") {
		t.Errorf("the tour does not break the image:\n%s", got)
	}
}

// The staged rollout of the tour begins with the cluster that the tour names, waits for the stage that it approves, and then
// reaches all other clusters.
func TestTourRollsOutInStages(t *testing.T) {
	files := quickstart(t)
	text := string(files[stagedFile].Data)
	if strings.Count(text, stagedText) != 1 {
		t.Fatalf("%s is not once in %s:\n%s", stagedText, stagedFile, text)
	}
	files[stagedFile].Data = []byte(strings.Replace(text, stagedText, "Sale starts today", 1))
	snapshot, err := hub.NewLoader(hub.Options{}).Load(hub.Commit{Hash: "sale"}, files)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(snapshot.Runs, func(r *hub.StagedRun) bool { return r.Placement.Name == stagedPlacement })
	if i < 0 {
		t.Fatalf("no run of %s", stagedPlacement)
	}
	stages, in := snapshot.Runs[i].Stages, map[string][]string{}
	for _, c := range snapshot.Clusters {
		for _, s := range stages {
			if selector, err := metav1.LabelSelectorAsSelector(s.LabelSelector); err == nil && selector.Matches(labels.Set(c.Labels)) {
				in[s.Name] = append(in[s.Name], c.Name)
			}
		}
	}
	if first := stages[0]; first.Name != canaryStage || !slices.Equal(in[first.Name], []string{canary}) || !first.NeedsApproval(false) {
		t.Errorf("the first stage is %+v with %v", first, in[first.Name])
	}
	if n := len(slices.Concat(slices.Collect(maps.Values(in))...)); n != len(members) {
		t.Errorf("%d clusters are in stages: %v", n, in)
	}
	got := tourOf(t, tour{Gitfleet: "gitfleet", Checkout: "fleet", Staged: stagedPlacement, StagedFile: stagedFile, Text: stagedText, Stage: canaryStage, Canary: canary})
	for _, want := range []string{"sed -i.bak 's|Welcome|Sale starts today|' fleet/apps/announcement/config.yaml\n    rm fleet/apps/announcement/config.yaml.bak\n", "gitfleet approve crp/announcement --stage canary", "member-3 gets the text first"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in the tour:\n%s", want, got)
		}
	}
}

func TestTourCommandsAreQuoted(t *testing.T) {
	text := tourOf(t, tour{Root: shell("/home of/ada's"), Gitfleet: "build/gitfleet", Server: "http://127.0.0.1:1", Victim: victims[0], Kubeconfig: "k", Config: shell("my demo/gitfleet.yaml")})
	for _, want := range []string{`cd '/home of/ada'\''s'`, "export GITFLEET_SERVER=http://127.0.0.1:1\n", "export KUBECONFIG=k GITFLEET_CONFIG='my demo/gitfleet.yaml'\n", "build/gitfleet doctor\n", "removes everything"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in the tour:\n%s", want, text)
		}
	}
	if text := tourOf(t, tour{Hosted: true, Victim: victims[0]}); strings.Contains(text, "repaired") || strings.Contains(text, "Enter") || strings.Contains(text, "delete") || !strings.Contains(text, "proposals list") {
		t.Errorf("with a forge the tour says that changes are repaired:\n%s", text)
	} else if strings.Contains(text, "-n storefront scale") { // the tour then commits another image of it, which would close its pull request
		t.Errorf("the tour closes a pull request that it has opened:\n%s", text)
	}
	if text := tourOf(t, tour{Keep: true}); strings.Contains(text, "GITFLEET_SERVER") || strings.Contains(text, "removes") {
		t.Errorf("the usual address is exported, or what is kept is removed:\n%s", text)
	}
}

func TestReportNamesWhatIsMissing(t *testing.T) {
	applied := func(kind, name, status string) placement {
		p := placement{Kind: kind}
		p.Metadata.Name = name
		p.Status.Conditions = []struct{ Type, Status, Message string }{{Type: kind + "Scheduled", Status: "True"}, {Type: kind + "Applied", Status: status}}
		return p
	}
	tests := map[string]struct {
		in   report
		want []string
	}{
		"nothing placed": {report{}, []string{"every placement"}},
		"all applied":    {report{Placements: []placement{applied("ClusterResourcePlacement", "a", "True")}}, nil},
		"some not": {report{
			Placements:         []placement{applied("ClusterResourcePlacement", "a", "Unknown"), applied("ClusterResourcePlacement", "b", "True")},
			ResourcePlacements: []placement{applied("ResourcePlacement", "c", "False")},
		}, []string{"a", "c"}},
		"not told": {report{Placements: []placement{{Kind: "ClusterResourcePlacement"}}}, []string{""}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.in.missing("Applied"); !slices.Equal(got, test.want) {
				t.Errorf("missing %q, want %q", got, test.want)
			}
		})
	}
}

func TestStarterIsFound(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("no /proc here")
	}
	parent, name := parentOf(os.Getpid())
	if parent != os.Getppid() || !strings.HasPrefix("demo.test", name) || name == "" {
		t.Errorf("we are %q, a child of %d, not of %d", name, parent, os.Getppid())
	}
}

// A second demo must not remove the files of a running one.
func TestWorkspaceIsLocked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "place")
	first, err := newWorkspace(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newWorkspace(dir); err == nil || !strings.Contains(err.Error(), "another demo runs in "+dir) {
		t.Errorf("taken twice: %v", err)
	}
	if err := os.WriteFile(first.file("kept"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	first.release()
	again, err := newWorkspace(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer again.release()
	if _, err := os.Stat(again.file("kept")); err != nil {
		t.Error("a directory that has a name was not kept")
	}
}

func TestArgumentsAreChecked(t *testing.T) {
	for _, args := range [][]string{{"once"}, {"--twice"}, {"--timeout=soon"}} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%v is accepted", args)
		}
	}
	o, err := parse([]string{"--once", "--dir=x"}, io.Discard)
	if want := (options{once: true, dir: "x", timeout: o.timeout}); err != nil || fmt.Sprint(o) != fmt.Sprint(want) {
		t.Errorf("%+v, %v", o, err)
	}
}
