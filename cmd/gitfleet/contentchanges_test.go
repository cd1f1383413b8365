package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/test/githttp"
	"github.com/gitfleet/gitfleet/test/world"
)

// A plan of two commits says that nothing changes if and only if no object does, and lists the fields of those that do,
// without values of Secrets. Its JSON and its exit code say the same.
func TestPlansOfChangedContents(t *testing.T) {
	const fleet = "clusters a b\nnamespace web\nconfigmap web/one x\nplace web\n"
	secret := func(password string) string {
		return "{apiVersion: v1, kind: Secret, metadata: {name: key, namespace: web}, stringData: {password: " + password + "}}\n"
	}
	for name, test := range map[string]struct {
		fleets  [2]string
		secrets [2]string
		text    string // what the plan begins with
		fields  []string
	}{
		"nothing":        {[2]string{fleet, fleet}, [2]string{}, "Nothing changes: the same clusters get the same objects.\n", nil},
		"a value":        {[2]string{fleet, strings.Replace(fleet, "one x", "one y", 1)}, [2]string{}, "Changed objects:\n  ~ ConfigMap/web/one  (crp/web) on a, b\n    configmap-web-one.yaml:1\n    @@ -1,6 +1,6 @@\n     apiVersion: v1\n     data:\n    -  value: x\n    +  value: \"y\"\n     kind: ConfigMap\n", []string{"/data/value x y"}},
		"a Secret":       {[2]string{fleet, fleet}, [2]string{secret("hunter2"), secret("hunter3")}, "Changed objects:\n  ~ Secret/web/key  (crp/web) on a, b\n    secret.yaml:1\n", []string{"/data/password (redacted for security reasons) (redacted for security reasons)"}},
		"only a setting": {[2]string{fleet, strings.Replace(fleet, "place web\n", "place web unavailable 1\n", 1)}, [2]string{}, "Changes:\n  crp/web\n    strategy", nil},
	} {
		t.Run(name, func(t *testing.T) {
			repo := githttp.NewScratch(t, filepath.Join(t.TempDir(), "hub.git"))
			var commits []string
			for i, fleet := range test.fleets {
				files := map[string]string{"secret.yaml": test.secrets[i], "count.txt": fmt.Sprint(i)}
				for name, f := range world.Files(t, fleet) {
					files[name] = string(f.Data)
				}
				commits = append(commits, repo.Change(t, "main", githttp.Change{Files: files, Message: "change"}))
			}
			what := repo.Dir + "@" + strings.Join(commits, "..")
			want := exit.Attention
			if strings.HasPrefix(test.text, "Nothing") {
				want = exit.OK
			}
			code, out, errOut := command("plan", what)
			if code != want || !strings.HasPrefix(out, test.text) || strings.Contains(out, "hunter") {
				t.Errorf("exit code %d, want %d\n%s%s\nwant\n%s", code, want, out, errOut, test.text)
			}
			code, out, _ = command("plan", what, "-o", "json")
			var d forecast.Document
			if err := json.Unmarshal([]byte(out), &d); err != nil {
				t.Fatal(err)
			}
			var fields []string
			for _, c := range d.Changes.Contents {
				if !strings.HasPrefix(c.Diff, "@@ -") || c.Origin == "" {
					t.Errorf("%s has the difference %q at %q", c.Name, c.Diff, c.Origin)
				}
				for _, f := range c.Fields {
					fields = append(fields, f.Path+" "+f.Before+" "+f.After)
				}
			}
			if code != want || d.Changes.None != (want == exit.OK) || !d.Changes.ContentsKnown || !slices.Equal(fields, test.fields) || strings.Contains(out, "hunter") {
				t.Errorf("exit code %d, none %t, fields %q, want %d and %q", code, d.Changes.None, fields, want, test.fields)
			}
		})
	}
}
