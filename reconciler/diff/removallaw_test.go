package diff

import (
	"fmt"
	"slices"
	"strings"
	"testing"

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
		others := slices.Concat(theirs["kubectl"], theirs["flux"])
		r := s.request(with(after))
		r.Force = rapid.Bool().Draw(rt, "force")
		gone := RemovedFrom(r, nil)
		if !gone.Empty() {
			raw, err := gone.Claim(s.live, api.FieldManager)
			if err != nil {
				rt.Fatal(err)
			}
			s.patch(api.FieldManager, raw)
		}
		s.apply(api.FieldManager, with(after))

		named := ""
		for _, d := range gone.All().In(s.live, r.Desired).Differences(s.live, api.FieldManager) {
			named += d.Path + d.ValueInMember + "\n"
		}
		live := s.live.DeepCopy()
		live.SetManagedFields(nil)
		content := string(mustJSON(t, live.Object))
		for i, mark := range marks {
			there := strings.Contains(content, mark)
			switch {
			case slices.Contains(after, i):
				if !there {
					rt.Fatalf("%s is in Git, and not there:\n%s", mark, content)
				}
			case slices.Contains(before, i):
				if there && (r.Force || !strings.Contains(named, mark)) {
					rt.Fatalf("%s was removed from Git, and is there; named are %q:\n%s", mark, named, content)
				}
			case there != slices.Contains(others, i):
				rt.Fatalf("%s was never in Git, others have applied %v, and it is there: %t", mark, others, there)
			}
		}
	})
}
