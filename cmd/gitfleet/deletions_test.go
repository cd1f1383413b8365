package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/test/githttp"
	"github.com/gitfleet/gitfleet/test/world"
)

// Two commits of a repository are compared as the daemon would move from one to the other:
// which objects it would delete, and which of these deletions it would hold.
func TestDeletionsBetweenCommits(t *testing.T) {
	const small = "clusters a/region=eu b/region=us\nnamespace web\nnamespace shop\nconfigmap web/one\nconfigmap shop/one\nplace docks of shop on b\n"
	var many, few strings.Builder
	for i := range 20 {
		fmt.Fprintf(&many, "configmap web/cm-%02d\n", i)
		if i%2 == 0 {
			fmt.Fprintf(&few, "configmap web/cm-%02d\n", i)
		}
	}
	const typo = `: the placement selects nothing: spec.resourceSelectors[0] (Namespace "wbe") matches nothing`
	tests := map[string]struct {
		before, after, allowed string
		want                   []string
	}{
		"nothing": {small + "place web on a", small + "place web on a\nnamespace more", "", nil},
		"an object is removed": {small + "configmap web/two\nplace web on a", small + "place web on a", "",
			[]string{"a crp/web ConfigMap/web/two"}},
		"a Namespace is not selected any more": {small + "place web of web,shop on a", small + "place web on a", "",
			[]string{
				"a crp/web ConfigMap/shop/one: Namespace shop goes as well, and deleting a Namespace deletes everything in it",
				"a crp/web Namespace/shop: deleting a Namespace deletes everything in it",
			}},
		"a selector has a typo":      {small + "place web on a", small + "place web of wbe on a", "", []string{"a crp/web ConfigMap/web/one" + typo, "a crp/web Namespace/web" + typo}},
		"the message allows it":      {small + "place web on a", small + "place web of wbe on a", "crp/docks, crp/web", []string{"a crp/web ConfigMap/web/one", "a crp/web Namespace/web"}},
		"the message allows other":   {small + "place web on a", small + "place web of wbe on a", "crp/docks", []string{"a crp/web ConfigMap/web/one" + typo, "a crp/web Namespace/web" + typo}},
		"a placement is deleted":     {small + "place web on a", small, "", []string{"a crp/web ConfigMap/web/one", "a crp/web Namespace/web"}},
		"a placement moves":          {small + "place web near eu", small + "place web near us", "", []string{"a crp/web ConfigMap/web/one", "a crp/web Namespace/web"}},
		"a placement has no cluster": {small + "place web near eu", small + "place web near ue", "", []string{"a crp/web ConfigMap/web/one: the placement has no cluster left", "a crp/web Namespace/web: the placement has no cluster left"}},
		"a cluster leaves the fleet": {small + "clusters c\nplace web on a,c", small + "place web on a,c", "", nil},
		"an object moves":            {small + "place web on a", small + "place other of web on a", "", nil},
		"a placement is renamed": {small + "place web of web,shop on a", small + "place other of web on a", "",
			[]string{
				"a crp/other ConfigMap/shop/one: Namespace shop goes as well, and deleting a Namespace deletes everything in it",
				"a crp/other Namespace/shop: deleting a Namespace deletes everything in it",
			}},
		"the message allows it by the earlier name": {small + "place web of web,shop on a", small + "place other of web on a", "crp/web",
			[]string{"a crp/other ConfigMap/shop/one", "a crp/other Namespace/shop"}},
		"a placement is renamed with a typo": {small + "place web of web,shop on a", small + "place other of web,shp on a", "",
			[]string{
				`a crp/other ConfigMap/shop/one: spec.resourceSelectors[1] (Namespace "shp") matches nothing, and may have selected it before`,
				`a crp/other Namespace/shop: spec.resourceSelectors[1] (Namespace "shp") matches nothing, and may have selected it before`,
			}},
		"a placement is renamed and has no cluster": {small + "place web near eu", small + "place other of web near ue", "",
			[]string{"a crp/other ConfigMap/web/one: the placement has no cluster left", "a crp/other Namespace/web: the placement has no cluster left"}},
		"a placement is renamed and moves": {small + "place web near eu", small + "place other of web near us", "",
			[]string{
				"a crp/other ConfigMap/web/one: Namespace web goes as well, and deleting a Namespace deletes everything in it",
				"a crp/other Namespace/web: deleting a Namespace deletes everything in it",
			}},
		"a rename is ambiguous": {small + "place web of web,shop on a", small + "place other of web on a\nplace another of shop on a", "", nil},
		"an ambiguous rename is allowed as a deletion": {small + "place web of web,shop on a", small + "place other of web on a\nplace another of web on b", "crp/web",
			[]string{"a crp/web ConfigMap/shop/one", "a crp/web Namespace/shop"}},
		"it stays when nobody wants it": {small + "place web on a abandon", small, "", nil},
		"ten objects of many": {small + many.String() + "place web on a", small + few.String() + "place web on a", "",
			slices.Collect(func(yield func(string) bool) {
				for i := 1; i < 20 && yield(fmt.Sprintf("a crp/web ConfigMap/web/cm-%02d", i)); i += 2 {
				}
			})},
		"many objects": {small + many.String() + "place web on a", small + "place web on a", "",
			slices.Collect(func(yield func(string) bool) {
				for i := 0; i < 20 && yield(fmt.Sprintf("a crp/web ConfigMap/web/cm-%02d: deleting 20 of the 22 objects that gitfleet has on this cluster is more than 30 %%", i)); i++ {
				}
			})},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			what := changed(t, test.before, test.after, test.allowed)
			code, out, errOut := command("plan", what, "-o", "json")
			var d forecast.Document
			if err := json.Unmarshal([]byte(out), &d); err != nil || d.Deletions == nil {
				t.Fatalf("exit code %d, no deletions: %v\n%s%s", code, err, out, errOut)
			}
			var got []string
			held := 0
			for _, x := range d.Deletions {
				text := fmt.Sprintf("%s %s %s", x.Cluster, x.Placement, x.ID())
				if x.Blocked != "" {
					text += ": " + x.Blocked
					held++
				}
				got = append(got, text)
			}
			slices.Sort(got)
			if !slices.Equal(got, test.want) {
				t.Errorf("deletions\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
			code, out, errOut = command("validate", "--strict", what)
			if isHeld := strings.Contains(out, "would be blocked"); isHeld != (held > 0) || code == exit.Failed || isHeld && code != exit.Attention {
				t.Errorf("%d deletions are held, and validate says, exit code %d:\n%s%s", held, code, out, errOut)
			}
		})
	}
}

// changed returns a repository with two commits, as REPO@FROM..TO.
func changed(t *testing.T, before, after, allowed string) string {
	t.Helper()
	repo := githttp.NewScratch(t, filepath.Join(t.TempDir(), "hub.git"))
	files := func(text string) map[string]string {
		out := map[string]string{}
		for name, f := range world.Files(t, text) {
			out[name] = string(f.Data)
		}
		return out
	}
	old, changed := files(before), files(after)
	from := repo.Replace(t, "main", old)
	for name := range old {
		if _, stays := changed[name]; !stays {
			repo.Remove(t, "main", name)
		}
	}
	message := "change"
	if allowed != "" {
		message += "\n\nGitfleet-Allow-Delete: " + allowed
	}
	to := repo.Change(t, "main", githttp.Change{Files: changed, Message: message})
	return repo.Dir + "@" + from + ".." + to
}

// plan and validate show deletions between two commits, and between an earlier plan and
// a commit.
func TestDeletionsAreShown(t *testing.T) {
	const before = "clusters a b\nnamespace web\nnamespace shop\nconfigmap shop/one\nplace web of web,shop\nplace docks of web on a\n"
	what := changed(t, before, "clusters a b\nnamespace web\nnamespace shop\nconfigmap shop/one\nplace web of web\n", "")
	shows := func(code, wantCode exit.Code, text string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("it does not say\n%s\nbut\n%s", w, text)
			}
		}
		if code != wantCode {
			t.Errorf("exit code %d, want %d", code, wantCode)
		}
	}
	code, out, _ := command("plan", what)
	shows(code, exit.Attention, out,
		"    - Namespace/shop  (crp/web), blocked\n",
		"  crp/web on a, b: deleting a Namespace deletes everything in it\n    Namespace/shop\n",
		"\n2 objects on 2 clusters would be deleted; 2 would be blocked until the message of a commit has the trailer\n  Gitfleet-Allow-Delete: crp/web\n")
	const warning = "placement-web.yaml:1: crp/web: deleting 2 objects on a, b would be blocked, such as Namespace/shop: deleting a Namespace deletes everything in it; " +
		"if that is a mistake, correct the placement or put back what was removed; otherwise add the trailer \"Gitfleet-Allow-Delete: crp/web\" to the message of a commit (warning)\n"
	code, out, errOut := command("validate", what)
	shows(code, exit.OK, out+errOut, warning, "2 objects on 2 clusters would be deleted; 2 would be blocked")

	repo, commits, _ := strings.Cut(what, "@")
	from, to, _ := strings.Cut(commits, "..")
	_, earlier, _ := command("plan", repo+"@"+from, "-o", "json")
	file := filepath.Join(t.TempDir(), "before.json")
	if err := os.WriteFile(file, []byte(earlier), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errOut = command("validate", "--strict", repo+"@"+to, "--current", file)
	shows(code, exit.Attention, out+errOut, warning)
	code, _, errOut = command("plan", what, "--current", file)
	shows(code, exit.Failed, errOut, "--current cannot be combined with FROM..TO")
	code, _, errOut = command("plan", repo+"@nowhere.."+to)
	shows(code, exit.Failed, errOut, to+" cannot be compared with "+repo+"@nowhere: ", `has no branch and no tag "nowhere"`)

	emptied := changed(t, before, "clusters a b\nnamespace web\n", "")
	code, out, errOut = command("validate", emptied)
	shows(code, exit.Failed, out+errOut, "the commit has no placement left")
	code, _, errOut = command("plan", emptied)
	shows(code, exit.Failed, errOut, "the commit would be refused: the commit has no placement left")
	emptied = changed(t, before, "clusters a b\nnamespace web\n", "*")
	code, out, _ = command("plan", emptied)
	shows(code, exit.Attention, out, "none of that would be blocked")
}
