package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/placement/api"
)

// parts are parts of a Deployment that a manifest may have or not: where they are, and their text.
var parts = []struct{ where, text string }{
	{"metadata", "  labels: {part0: x}\n"},
	{"spec", "  minReadySeconds: 1001\n"},
	{"spec", "  strategy: {rollingUpdate: {maxSurge: 1002}}\n"},
	{"pod", "      tolerations: [{key: part3, operator: Exists}]\n"},
	{"pod", "      volumes: [{name: part4, emptyDir: {}}]\n"},
	{"env", "        - {name: PART5, value: x}\n"},
	{"env", "        - {name: PART6, value: x}\n"},
	{"container", "        livenessProbe: {httpGet: {path: /part7, port: 80}}\n"},
	{"container", "        resources: {limits: {cpu: 1008m}}\n"},
	{"containers", "      - {name: part9, image: x}\n"},
}

// marks are texts by which the parts are found in an object.
var marks = []string{"part0", "1001", "1002", "part3", "part4", "PART5", "PART6", "part7", "1008m", "part9"}

// with returns a manifest with some of the parts.
func with(some []int) string {
	at := map[string]string{}
	for _, i := range some {
		at[parts[i].where] += parts[i].text
	}
	if at["env"] != "" {
		at["env"] = "        env:\n" + at["env"]
	}
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
%sspec:
  selector: {matchLabels: {app: web}}
%s  template:
    metadata: {labels: {app: web}}
    spec:
%s      containers:
      - name: web
        image: nginx
%s%s%s`, at["metadata"], at["spec"], at["pod"], at["env"], at["container"], at["containers"])
}

// edits change or add something within a part, by the mark of that part.
var edits = map[string]func(t *testing.T, o map[string]any){
	"1001": func(t *testing.T, o map[string]any) { set(t, o, int64(2001), "spec", "minReadySeconds") },
	"1002": func(t *testing.T, o map[string]any) {
		set(t, o, int64(2002), "spec", "strategy", "rollingUpdate", "maxSurge")
	},
	"PART5": func(t *testing.T, o map[string]any) { variable(o)["value"] = "changed" },
	"part7": func(t *testing.T, o map[string]any) {
		container(o)["livenessProbe"].(map[string]any)["httpGet"].(map[string]any)["port"] = int64(81)
	},
	"part9": func(t *testing.T, o map[string]any) {
		list, _, _ := unstructured.NestedFieldNoCopy(o, "spec", "template", "spec", "containers")
		list.([]any)[1].(map[string]any)["image"] = "changed"
	},
}

// remains are texts that are there while a part is, also if it was changed.
var remains = map[string]string{"1001": "minReadySeconds", "1002": "maxSurge"}

// What Git removed is gone or named: whoever else has applied a part that a new manifest no longer has,
// the part is gone after the apply, or reported if others must not be overridden. What only
// others have applied stays.
func TestWhatGitRemovedIsGoneOrNamed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		some := func(label string) []int {
			var out []int
			for i := range parts {
				if rapid.Bool().Draw(rt, fmt.Sprint(label, " has ", i)) {
					out = append(out, i)
				}
			}
			return out
		}
		before, after, theirs := some("before"), some("after"), map[string][]int{}
		s := newServer(t, with(before))
		for _, manager := range []string{"kubectl", "flux"} {
			if rapid.Bool().Draw(rt, manager+" applies") {
				theirs[manager] = some(manager)
				s.apply(manager, with(theirs[manager]))
			}
		}
		for i, mark := range marks {
			if edit := edits[mark]; edit != nil && slices.Contains(before, i) && rapid.Bool().Draw(rt, "edit of "+mark) {
				s.update("kubectl-edit", "", func(o map[string]any) { edit(t, o) })
			}
		}
		others := slices.Concat(theirs["kubectl"], theirs["flux"])
		r := s.request(with(after))
		r.Force, r.KeepShared = rapid.Bool().Draw(rt, "force"), rapid.Bool().Draw(rt, "keep shared")
		r.Before = object(t, with(before))
		gone := RemovedFrom(r, nil)
		if !gone.Empty() {
			raw, err := gone.OwnershipPatch(s.live, api.FieldManager)
			if err != nil {
				rt.Fatal(err)
			}
			s.patch(api.FieldManager, raw)
		}
		s.apply(api.FieldManager, with(after))

		named := ""
		for _, d := range gone.All().In(s.live, r.Desired).Differences(s.live, api.FieldManager) {
			named += d.Path + d.ValueInMember + d.ValueInHub + "\n"
		}
		live := s.live.DeepCopy()
		live.SetManagedFields(nil)
		content := string(mustJSON(t, live.Object))
		for i, mark := range marks {
			mark := cmp.Or(remains[mark], mark)
			there := strings.Contains(content, mark)
			switch {
			case slices.Contains(after, i):
				if !there {
					rt.Fatalf("%s is in Git, and not there:\n%s", mark, content)
				}
			case slices.Contains(before, i):
				if there && (r.Force && !r.KeepShared || !strings.Contains(named, mark)) {
					rt.Fatalf("%s was removed from Git, and is there; named are %q:\n%s", mark, named, content)
				}
			case there != slices.Contains(others, i):
				rt.Fatalf("%s was never in Git, others have applied %v, and it is there: %t", mark, others, there)
			}
		}
	})
}

// One search finds what two find: the fields that Git has removed, and the defaults of the content before.
func TestRemovedAndOutdatedAreFoundTogether(t *testing.T) {
	both := 0
	rapid.Check(t, func(rt *rapid.T) {
		some := func(label string) string {
			return with(rapid.SliceOfDistinct(rapid.IntRange(0, len(parts)-1), rapid.ID).Draw(rt, label))
		}
		before := some("before")
		s := newServer(t, before)
		if rapid.Bool().Draw(rt, "kubectl applies") {
			s.apply("kubectl", some("kubectl"))
		}
		container(s.live.Object)["imagePullPolicy"] = rapid.SampledFrom([]string{"Always", "IfNotPresent"}).Draw(rt, "pull policy")
		r := s.request(strings.Replace(some("after"), "image: nginx", "image: nginx:1", 1))
		r.Before, r.Force = object(t, before), rapid.Bool().Draw(rt, "force")
		removed, outdated, got := RemovedFrom(r, nil), OutdatedDefaults(r), RemovedOrOutdated(r)
		if !removed.Empty() && !outdated.Empty() {
			both++
		}
		want := removed.Union(outdated)
		if !got.roots.Equals(want.roots) || !got.toOwn.Equals(want.toOwn) || !got.kept.Equals(want.kept) {
			rt.Fatalf("found %s to own %s and to keep %s, want %s, %s and %s", got.roots, got.toOwn, got.kept, want.roots, want.toOwn, want.kept)
		}
	})
	if both == 0 {
		t.Error("nothing was both removed and outdated")
	}
}
