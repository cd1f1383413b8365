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

// A plan of two commits lists the objects that are recreated, and those that may be. Those that
// certainly are count for the share of a cluster's objects that may be deleted at once.
func TestRecreationsBetweenCommits(t *testing.T) {
	const asks = "annotations: {gitfleet.dev/recreate: \"true\"}"
	job := func(name, image, notes string) string {
		return fmt.Sprintf("apiVersion: batch/v1\nkind: Job\nmetadata: {name: %s, namespace: web, %s}\n"+
			"spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: %s}]}}}\n---\n", name, notes, image)
	}
	gadget := func(size string) string {
		return "apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: small, namespace: web, " + asks + "}\nspec: {size: " + size + "}\n"
	}
	jobs := func(image string) (text string) {
		for i := range 12 {
			text += job(fmt.Sprintf("job-%02d", i), image, asks)
		}
		return text
	}
	tests := map[string]struct {
		before, after, allowed string
		want                   []string
		text                   string
	}{
		"nothing":              {job("one", "a", asks), job("one", "a", asks), "", nil, "Nothing changes"},
		"it does not ask":      {job("one", "a", ""), job("one", "b", ""), "", nil, "Changed objects:\n  ~ Job.batch/web/one  (crp/web) on a\n"},
		"an immutable field":   {job("one", "a", ""), job("one", "b", asks), "", []string{"a Job.batch/web/one true"}, "Recreated objects:\n  Job.batch/web/one  (crp/web) on a: recreated, since an immutable field changes\n"},
		"a custom resource":    {gadget("1"), gadget("2"), "", []string{"a Gadget.example.com/web/small false"}, "  Gadget.example.com/web/small  (crp/web) on a: may be recreated: only the cluster knows which fields are immutable\n"},
		"many":                 {jobs("a"), jobs("b"), "", nil, "recreated, blocked: deleting 12 of the 13 objects that gitfleet has on this cluster is more than 30 %\n"},
		"a commit allows many": {jobs("a"), jobs("b"), "crp/web", nil, "  Job.batch/web/job-11  (crp/web) on a: recreated, since an immutable field changes\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			repo := githttp.NewScratch(t, filepath.Join(t.TempDir(), "hub.git"))
			commit := func(objects, message string) string {
				files := map[string]string{"objects.yaml": objects}
				for name, f := range world.Files(t, "clusters a\nnamespace web\nplace web on a\n") {
					files[name] = string(f.Data)
				}
				return repo.Change(t, "main", githttp.Change{Files: files, Message: message})
			}
			message := "change"
			if test.allowed != "" {
				message += "\n\nGitfleet-Allow-Delete: " + test.allowed
			}
			from := commit(test.before, "first")
			to := from
			if test.after != test.before {
				to = commit(test.after, message)
			}
			what := repo.Dir + "@" + from + ".." + to
			code, out, errOut := command("plan", what)
			if !strings.Contains(out, test.text) || (code == exit.Attention) != (test.before != test.after) {
				t.Errorf("exit code %d\n%s%s\nwant\n%s", code, out, errOut, test.text)
			}
			if len(test.want) == 0 {
				return
			}
			_, out, errOut = command("plan", what, "-o", "json")
			var d forecast.Document
			if err := json.Unmarshal([]byte(out), &d); err != nil {
				t.Fatalf("%v\n%s%s", err, out, errOut)
			}
			var got []string
			for _, r := range d.Recreations {
				got = append(got, fmt.Sprintf("%s %s %t", r.Cluster, r.ID(), r.Certain))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("recreations %q, want %q", got, test.want)
			}
		})
	}
}
