package review

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/reconciler/member"
)

// The result of a dry run is said unless the plan says the same.
func TestWhatADryRunSays(t *testing.T) {
	difference := func(path, owner string) api.Difference {
		d := api.Difference{PatchDetail: api.PatchDetail{Path: path, ValueInHub: "theirs-1", ValueInMember: "ours-1"}}
		if owner != "" {
			d.By = []api.Actor{{Manager: owner, Operation: "Update"}}
		}
		return d
	}
	ours, theirs := difference("/data/a", api.FieldManager), difference("/data/b", "kubectl")
	for name, test := range map[string]struct {
		change       member.Change
		text, detail string
		refused      bool
	}{
		"created":                       {change: member.Change{Effect: member.Adds}},
		"changed":                       {change: member.Change{Effect: member.Changes, Diffs: []api.Difference{ours}}},
		"refused by the API server":     {member.Change{Effect: member.Fails, Message: "denied"}, "the API server refuses it", "denied", true},
		"not taken over":                {member.Change{Effect: member.Differs, Refused: true, Message: "whenToTakeOver is Never"}, "it exists already and is not taken over", "whenToTakeOver is Never", true},
		"cannot be tried":               {member.Change{Effect: member.Unknown, Message: "a webhook has side effects"}, "it cannot be tried", "a webhook has side effects", false},
		"recreated":                     {member.Change{Effect: member.Recreates, Diffs: []api.Difference{ours}}, "it is deleted and created anew", "/data/a", false},
		"only compared":                 {member.Change{Effect: member.Differs, Message: "its strategy is ReportDiff"}, "it stays as it is", "its strategy is ReportDiff", false},
		"taken over with other values":  {member.Change{Effect: member.Changes, TakesOver: true, Diffs: []api.Difference{theirs}}, "it exists already and is taken over, with other values", "/data/b of kubectl (Update)", false},
		"taken over as it is":           {member.Change{Effect: member.Changes, TakesOver: true}, "it exists already and is taken over as it is", "", false},
		"fields of others":              {member.Change{Effect: member.Changes, Diffs: []api.Difference{ours, theirs}}, "it sets fields that others own", "/data/b of kubectl (Update)", false},
		"its namespace does not exist":  {member.Change{Effect: member.Adds, Message: "its namespace is new"}, "it cannot be tried yet", "its namespace is new", false},
		"a Secret, whose owner is told": {member.Change{Effect: member.Changes, Diffs: []api.Difference{difference("/data/password", "helm")}}, "it sets fields that others own", "/data/password of helm (Update)", false},
	} {
		t.Run(name, func(t *testing.T) {
			text, detail := describeChange(test.change)
			if text != test.text || detail != test.detail || isRefused(test.change) != test.refused {
				t.Errorf("says %q, %q, refused: %v", text, detail, isRefused(test.change))
			}
			if r := (&Result{Answers: &Answers{Members: []Answer{{Changes: []member.Change{test.change}}}}}); r.Failed() != test.refused {
				t.Errorf("fails: %v, want %v", r.Failed(), test.refused)
			}
		})
	}
}

// The totals of a dry run name every member that did not answer, and count what was left out.
func TestTheSummaryOfADryRun(t *testing.T) {
	refused, recreated, unknown := member.Change{Effect: member.Fails}, member.Change{Effect: member.Recreates}, member.Change{Effect: member.Unknown}
	taken := member.Change{Effect: member.Changes, TakesOver: true}
	down := errors.New("no route to host")
	for want, a := range map[string]*Answers{
		"2 objects tried on 1 cluster: 0 refused.": {Members: []Answer{{Cluster: "a", Objects: 2}}},
		"5 objects tried on 2 clusters: 2 refused, 1 recreated, 1 taken over, 1 that cannot be tried.": {Members: []Answer{
			{Cluster: "a", Objects: 3, Changes: []member.Change{refused, recreated, taken}}, {Cluster: "b", Objects: 2, Changes: []member.Change{refused, unknown}},
		}},
		"1 object tried on 1 cluster: 0 refused. No answer from b, c. 7 objects not tried.": {
			Members: []Answer{{Cluster: "a", Objects: 1}, {Cluster: "b", Objects: 1, Err: down}, {Cluster: "c", Objects: 1, Err: down}}, Rest: 7,
		},
		"No answer from a.": {Members: []Answer{{Cluster: "a", Objects: 1, Err: down}}},
	} {
		if got := a.Summary(); got != want {
			t.Errorf("says %q, want %q", got, want)
		}
	}
}

// Equal findings of several members are one line, refusals come first, and a long list is cut.
func TestFindingsOfMembersAreGrouped(t *testing.T) {
	id := func(name string) api.ID { return api.ID{Kind: "ConfigMap", Namespace: "web", Name: name} }
	web := api.PlacementKey{Name: "web"}
	unknown := member.Change{ID: id("first"), Placement: web, Effect: member.Unknown, Message: "down"}
	denied := member.Change{ID: id("second"), Placement: web, Effect: member.Fails, Message: "denied"}
	a := &Answers{Members: []Answer{{Cluster: "a", Changes: []member.Change{unknown, denied}}, {Cluster: "b", Changes: []member.Change{denied}}}}
	var got []string
	for _, f := range a.Findings() {
		got = append(got, fmt.Sprintf("%s %v %s", f.Object.Name, f.Clusters, f.Detail))
	}
	if want := "second [a b] denied, first [a] down"; strings.Join(got, ", ") != want {
		t.Errorf("findings are %q, want %q", got, want)
	}
	many := Answer{Cluster: "a"}
	for i := range maxProblems + 3 {
		many.Changes = append(many.Changes, member.Change{ID: id(fmt.Sprint(i)), Placement: web, Effect: member.Fails, Message: "denied"})
	}
	if text := (&Result{Answers: &Answers{Members: []Answer{many}}}).membersText(false); strings.Count(text, "denied") != maxProblems || !strings.Contains(text, "\n- and 3 more\n") {
		t.Errorf("the comment has\n%s", text)
	}
	var fields []api.Difference
	for i := range maxFields + 2 {
		fields = append(fields, api.Difference{PatchDetail: api.PatchDetail{Path: fmt.Sprint("/data/", i)}})
	}
	if names := fieldNames(fields); !strings.HasSuffix(names, "/data/19, and 2 more") {
		t.Errorf("the fields are %s", names)
	}
}

// What changes on a cluster is one line for each object, in the form of a diff.
func TestLinesOfAClusterChange(t *testing.T) {
	object := func(kind, name string) forecast.Object {
		return forecast.Object{Kind: kind, Namespace: "web", Name: name, Placement: "crp/web"}
	}
	for want, c := range map[string]forecast.ClusterChange{
		"+ ConfigMap/web/one (crp/web)":                                                            {Gained: []forecast.Object{object("ConfigMap", "one")}},
		"- ConfigMap/web/one (crp/web)":                                                            {Deleted: []forecast.Deletion{{Object: object("ConfigMap", "one")}}},
		"- ConfigMap/web/one (crp/web), blocked":                                                   {Deleted: []forecast.Deletion{{Object: object("ConfigMap", "one"), Blocked: "too many"}}},
		"# ConfigMap/web/one (crp/web) stays and is released":                                      {Released: []forecast.Object{object("ConfigMap", "one")}},
		"# ConfigMap/web/one moves from crp/old to crp/web":                                        {Passed: []forecast.PassedObject{{Object: object("ConfigMap", "one"), From: "crp/old"}}},
		"# the cluster leaves the fleet; 2 objects stay there and are released":                    {Gone: true, Lost: make([]forecast.Object, 2)},
		"# the cluster joins the fleet\n+ ConfigMap/web/one (crp/web)\n+ Secret/web/two (crp/web)": {New: true, Gained: []forecast.Object{object("ConfigMap", "one"), object("Secret", "two")}},
	} {
		if got := strings.Join(changesOf(c), "\n"); got != want {
			t.Errorf("the lines are\n%s\nwant\n%s", got, want)
		}
	}
}

// What happens to a placement is one line.
func TestTheLineOfAPlacement(t *testing.T) {
	settings := func(n int) (out []forecast.SettingChange) {
		for i := range n {
			out = append(out, forecast.SettingChange{Field: fmt.Sprint("f", i), From: "1", To: "2"})
		}
		return out
	}
	for want, p := range map[string]forecast.PlacementChange{
		" is new; gains 2 clusters: `a`, `b`":                                     {New: true, Gained: []string{"a", "b"}},
		" is gone; leaves 1 cluster: `a`":                                         {Gone: true, Lost: []string{"a"}},
		" is renamed from `crp/old`; its clusters and rollout carry over":         {RenamedFrom: "crp/old"},
		": its policy changes from `PickAll` to `PickN 2`; leaves 1 cluster: `c`": {PolicyFrom: "PickAll", PolicyTo: "PickN 2", Lost: []string{"c"}},
		": `strategy.type` changes from not set to `\"RollingUpdate\"`":           {Settings: []forecast.SettingChange{{Field: "strategy.type", To: `"RollingUpdate"`}}},
		": `strategy.type` changes from `\"RollingUpdate\"` to not set":           {Settings: []forecast.SettingChange{{Field: "strategy.type", From: `"RollingUpdate"`}}},
		": gains 1 cluster: `a`; leaves 1 cluster: `b`":                           {Gained: []string{"a"}, Lost: []string{"b"}},
		" is gone, and may have been renamed: it keeps what it holds":             {Gone: true, Unclear: true},
	} {
		if got := placementText(p); got != want {
			t.Errorf("the line is %q, want %q", got, want)
		}
	}
	if got := placementText(forecast.PlacementChange{Settings: settings(maxFields + 2)}); !strings.HasSuffix(got, "`f19` changes from `1` to `2`; and 2 more fields") {
		t.Errorf("of many fields the line is %q", got)
	}
}

// Each list of a comment is cut at its limit, and says how much is left out.
func TestListsOfACommentAreCut(t *testing.T) {
	manifest := func(fields int, value string) *work.Manifest {
		data := map[string]any{}
		for i := range fields {
			data[fmt.Sprintf("key-%02d", i)] = value
		}
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "one"}, "data": data}}
		return &work.Manifest{Object: &api.Object{ID: api.ID{Kind: "ConfigMap", Name: "one"}, Content: o}}
	}
	content := func(fields int) forecast.ContentChange {
		return forecast.ContentChange{Before: manifest(fields, "1"), After: manifest(fields, "2"), Clusters: []string{"a"}}
	}
	r := &Result{}
	for i := range maxProblems + 1 {
		r.Problems = append(r.Problems, problem.Problem{Message: fmt.Sprint(i)})
	}
	for range maxContents + 2 {
		r.Changes.Contents = append(r.Changes.Contents, content(1))
	}
	for i := range maxPlacements + 3 {
		r.Changes.Placements = append(r.Changes.Placements, forecast.PlacementChange{Placement: fmt.Sprint(i), New: true})
		r.Rollouts = append(r.Rollouts, forecast.Rollout{Placement: fmt.Sprint(i)})
	}
	for i := range maxGroups + 4 {
		d := forecast.Deletion{Blocked: fmt.Sprint("reason ", i), Object: forecast.Object{Kind: "ConfigMap", Name: fmt.Sprint(i), Placement: "crp/web"}}
		r.Changes.Clusters = append(r.Changes.Clusters, forecast.ClusterChange{Cluster: fmt.Sprint(i), Deleted: []forecast.Deletion{d}})
	}
	var groups comment
	r.clustersText(&groups)
	var changes comment
	r.contentsText(&changes, subject{})
	long := &Result{Changes: forecast.Changes{Contents: []forecast.ContentChange{content(maxLines)}}}
	for name, test := range map[string]struct{ text, want string }{
		"problems":   {r.problemsText(subject{}), "\n- and 1 more\n"},
		"objects":    {changes.text.String(), "\nand 2 more objects\n"},
		"placements": {r.placementsText(), "\n- and 3 more\n"},
		"rollouts":   {r.rolloutsText(), "\n- and 3 more\n"},
		"deletions":  {r.blockedText(), "\n- and 4 more\n"},
		"groups":     {groups.text.String(), "\nand 5 more groups of clusters\n"},
		"fields":     {changeTitle(content(maxPaths + 6)), ", and 6 more fields"},
		"lines":      {long.changeText(0, subject{}), "\n# and 106 more lines\n"},
	} {
		if !strings.Contains(test.text, test.want) {
			t.Errorf("%s: no %q in\n%s", name, test.want, test.text)
		}
	}
	none := &Result{Changes: forecast.Changes{Contents: []forecast.ContentChange{content(0)}}}
	if got := none.changeText(0, subject{}); got != "`a`\n\nonly what gitfleet does not compare, such as its own annotations\n" {
		t.Errorf("an object without a difference is %q", got)
	}
}

// The description of the status says the worst that is known.
func TestTheStatusOfAPlan(t *testing.T) {
	failure := problem.List{{Severity: problem.Failure, Message: "x"}, {Severity: problem.Warning, Message: "y"}}
	deleted := forecast.Changes{Clusters: []forecast.ClusterChange{{Cluster: "a", Deleted: []forecast.Deletion{{Blocked: "too many", Object: forecast.Object{Name: "one"}}, {}}}}}
	denied := &Answers{Members: []Answer{{Changes: []member.Change{{Effect: member.Fails}}}}}
	for want, r := range map[string]*Result{
		"failure: cannot be merged: x.yaml":                   {Conflict: "x.yaml", Refused: "no placement"},
		"failure: the merge would be refused: empty":          {Refused: "empty", Problems: failure},
		"failure: 1 problem":                                  {Problems: failure, Answers: denied},
		"failure: 1 object refused on the members":            {Changes: deleted, Answers: denied},
		"success: no changes":                                 {Problems: failure[1:]},
		"success: 2 objects on 1 cluster, 1 deletion blocked": {Changes: deleted},
	} {
		state, text := r.Status()
		if got := string(state) + ": " + text; got != want || r.Failed() != (state == forge.StatusFailure) {
			t.Errorf("%q, fails: %v, want %q", got, r.Failed(), want)
		}
	}
}

// A reason is published only if it cannot have paths or hosts of the daemon, and decides whether
// planning is tried again.
func TestPublicReasons(t *testing.T) {
	for name, test := range map[string]struct {
		err     error
		text    string
		lasting bool
	}{
		"crashed before": {&lastingError{"it crashed gitfleet before"}, "it crashed gitfleet before", true},
		"too large":      {fmt.Errorf("fetch: %w", gitsource.ErrTooLarge), "it exceeds the limits of gitfleet; see its log", true},
		"of the machine": {errors.New("open /var/lib/gitfleet/x: disk full"), "the reason is in the log of gitfleet; trying again", false},
	} {
		if text, lasting := publicReason(test.err); text != test.text || lasting != test.lasting {
			t.Errorf("%s: %q, lasting: %v", name, text, lasting)
		}
	}
}

// The calendar of a rollout is a list below it, in which nothing is Markdown.
func TestCalendarOfARollout(t *testing.T) {
	r := Result{Rollouts: []forecast.Rollout{{
		Placement: "crp/web", Clusters: 2, MaxUnavailable: 1, MaxSurge: 1, First: []string{"oslo"},
		Waiting: []forecast.WaitingClusters{{Why: "new content waits: the window *nights* is closed until Sat 2026-11-28 22:00 CET", Clusters: []string{"paris"}}},
	}}}
	const want = "- `crp/web`: 2 clusters, at most 1 unavailable and 1 added at a time; first `oslo`\n" +
		"  - `paris: new content waits: the window *nights* is closed until Sat 2026-11-28 22:00 CET`\n"
	if got := r.rolloutsText(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
