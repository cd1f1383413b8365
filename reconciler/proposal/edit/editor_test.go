package edit

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/golden"
)

// A drifted is the description of a change on some clusters in an archive.
type drifted struct {
	Object, Placement string
	Changed, Others   []string
	Deleted           bool
	Fields            []struct {
		Path        string
		Hub, Member any
	}
}

func (d *drifted) target(t *testing.T) Target {
	t.Helper()
	words := strings.Fields(d.Object) // GROUP/KIND NAMESPACE NAME
	group, kind, _ := strings.Cut(words[0], "/")
	out := Target{ID: api.ID{Group: group, Kind: kind, Namespace: strings.Trim(words[1], "-"), Name: words[2]}, Deleted: d.Deleted}
	key, err := api.ParsePlacement(d.Placement)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range d.Changed {
		out.Changed = append(out.Changed, status.Holder{Cluster: name, Placement: key})
	}
	for _, name := range d.Others {
		out.Others = append(out.Others, status.Holder{Cluster: name, Placement: key})
	}
	for _, f := range d.Fields {
		difference := api.Difference{PatchDetail: api.PatchDetail{Path: f.Path}}
		if f.Hub != nil {
			difference.ValueInHub = diff.Text(f.Hub)
			difference.HubJSON, _ = json.Marshal(f.Hub)
		}
		if f.Member != nil {
			difference.ValueInMember = diff.Text(f.Member)
			difference.MemberJSON, _ = json.Marshal(f.Member)
		}
		out.Drift = append(out.Drift, difference)
	}
	return out
}

// Each archive has a tree, drifts of its objects, and the resulting edits.
func TestEditor(t *testing.T) {
	golden.Archives(t, "testdata/edits/*.txtar", func(t *testing.T, archive *txtar.Archive) {
		files := fstest.MapFS{}
		for _, f := range archive.Files {
			if !strings.HasPrefix(f.Name, "drift ") && !strings.HasPrefix(f.Name, "edit ") {
				files[f.Name] = &fstest.MapFile{Data: f.Data}
			}
		}
		load := func(files fs.FS) (*hub.Snapshot, error) {
			return hub.NewLoader(hub.Options{}).Load(hub.Commit{}, files)
		}
		head, err := load(files)
		if err != nil {
			t.Fatal(err)
		}
		editor := &Editor{Load: load, Files: files, Head: head}
		for _, f := range slices.Clone(archive.Files) {
			name, isDrift := strings.CutPrefix(f.Name, "drift ")
			if !isDrift {
				continue
			}
			var d drifted
			if err := yaml.UnmarshalStrict(f.Data, &d); err != nil {
				t.Fatalf("%s: %v", f.Name, err)
			}
			golden.Answer(t, archive, "edit "+name, formatted(editor.Edit(d.target(t))))
		}
	})
}

// formatted formats an edit.
func formatted(r *Result, err error) string {
	if err != nil {
		return "refused: " + err.Error() + "\n"
	}
	var b strings.Builder
	fmt.Fprintln(&b, "the value is at", r.Origin)
	if r.Override != "" {
		fmt.Fprintln(&b, r.Override)
	}
	for _, c := range r.Files {
		fmt.Fprintln(&b, c.Path)
		switch {
		case c.Before == nil:
			for line := range strings.Lines(string(c.After)) {
				b.WriteString("+" + line)
			}
		case c.After == nil:
			b.WriteString("removed\n")
		default:
			fmt.Fprintln(&b, golden.LineDiff(string(c.Before), string(c.After)))
		}
	}
	return b.String()
}

// A problem counts as new if the commit does not have it, or has it less often. Its line does not
// matter, since edits move lines.
func TestNewProblems(t *testing.T) {
	warning := func(line int, message string) problem.Problem {
		return problem.Problem{Origin: api.Origin{Path: "a.yaml", Line: line}, Severity: problem.Warning, Message: message}
	}
	for name, test := range map[string]struct {
		before, after problem.List
		want          string
	}{
		"none":               {nil, nil, ""},
		"the same":           {problem.List{warning(1, "x")}, problem.List{warning(1, "x")}, ""},
		"on another line":    {problem.List{warning(1, "x")}, problem.List{warning(9, "x")}, ""},
		"gone":               {problem.List{warning(1, "x")}, nil, ""},
		"another":            {problem.List{warning(1, "x")}, problem.List{warning(1, "x"), warning(2, "y")}, "y"},
		"once more the same": {problem.List{warning(1, "x")}, problem.List{warning(1, "x"), warning(2, "x")}, "x"},
	} {
		err := newProblem(&hub.Snapshot{Warnings: test.before}, &hub.Snapshot{Warnings: test.after})
		if (err == nil) != (test.want == "") || err != nil && !strings.HasSuffix(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// An edit may change its object and no other, in whatever way another one would change.
func TestOtherObjectsStayAsTheyAre(t *testing.T) {
	object := func(name, hash string) *api.Object {
		return &api.Object{ID: api.ID{Kind: "ConfigMap", Namespace: "web", Name: name}, Hash: hash}
	}
	before := &hub.Snapshot{Objects: []*api.Object{object("a", "1"), object("b", "1")}}
	for name, test := range map[string]struct {
		after []*api.Object
		want  string
	}{
		"the object itself":   {[]*api.Object{object("a", "2"), object("b", "1")}, ""},
		"the object is gone":  {[]*api.Object{object("b", "1")}, ""},
		"another one":         {[]*api.Object{object("a", "2"), object("b", "2")}, "the edit would change ConfigMap/web/b as well"},
		"a new one":           {[]*api.Object{object("a", "2"), object("b", "1"), object("c", "1")}, "the edit would change ConfigMap/web/c as well"},
		"another one is gone": {[]*api.Object{object("a", "2")}, "the edit would remove other objects as well"},
	} {
		got := ""
		if err := checkOthersUnchanged(before, &hub.Snapshot{Objects: test.after}, map[position]bool{{id: object("a", "").ID}: true}); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
