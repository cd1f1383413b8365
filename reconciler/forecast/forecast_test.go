package forecast

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/world"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// snapshot loads a commit from a short text, in which a line that begins with { is a manifest. The
// commit is a hash, which a trailer may follow.
func snapshot(t *testing.T, commit, text string) *hub.Snapshot {
	t.Helper()
	return load(t, hub.NewLoader(hub.Options{}), commit, text)
}

// load is like snapshot, with a loader that caches between commits.
func load(t *testing.T, loader *hub.Loader, commit, text string) *hub.Snapshot {
	t.Helper()
	hash, message, _ := strings.Cut(commit, " ")
	var short string
	manifests := fstest.MapFS{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "{") {
			manifests[fmt.Sprintf("manifest-%d.yaml", len(manifests))] = &fstest.MapFile{Data: []byte(line)}
		} else {
			short += line
		}
	}
	files := world.Files(t, short)
	maps.Copy(files, manifests)
	s, err := loader.Load(hub.Commit{Hash: hash, Time: noon, Message: "a change\n\n" + message}, files)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// limit is a DeletionLimit that blocks more than this number of deletions on a cluster.
type limit int

func (n limit) TooMuch(deleted, _ int) string {
	if deleted > int(n) {
		return fmt.Sprintf("more than %d", n)
	}
	return ""
}

// describeChanges lists what changes, one line each.
func describeChanges(o *Forecast, d Document, c Changes) string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, p := range c.Placements {
		if p.RenamedFrom != "" {
			add("%s was %s", p.Placement, p.RenamedFrom)
		}
		if s := p.Summary(); s != "" {
			add("%s %s", p.Placement, s)
		}
		for _, s := range p.Settings {
			add("%s: %s from %s to %s", p.Placement, s.Field, s.From, s.To)
		}
		if p.PolicyFrom != p.PolicyTo {
			add("%s: %s to %s", p.Placement, p.PolicyFrom, p.PolicyTo)
		}
	}
	for _, c := range c.Clusters {
		for _, x := range c.Gained {
			add("%s gets %s", c.Cluster, x.ID())
		}
		for _, x := range c.Released {
			add("%s keeps %s", c.Cluster, x.ID())
		}
		for _, x := range c.Passed {
			add("%s: %s passes from %s to %s", c.Cluster, x.ID(), x.From, x.Placement)
		}
	}
	for _, x := range d.Deletions {
		text := fmt.Sprintf("%s loses %s", x.Cluster, x.ID())
		if x.Blocked != "" {
			text += ", blocked: " + x.Blocked
		}
		out = append(out, text)
	}
	for _, x := range o.ContentChanges() {
		add("%s changes on %s%s", x.After.ID, strings.Join(x.Clusters, ","), x.Note())
	}
	for _, x := range d.Recreations {
		if x.Blocked != "" {
			add("%s recreates %s, blocked: %s", x.Cluster, x.ID(), x.Blocked)
		}
	}
	if why := o.Refusal(); why != "" {
		add("refused: %s", strings.SplitN(why, ";", 2)[0])
	}
	return strings.Join(out, "\n")
}

// changes are commits after base, with the differences that are described.
const base = "clusters a b\nnamespace web\nconfigmap web/one x\nconfigmap web/two x\nplace web\n"

const (
	kept      = `{apiVersion: v1, kind: ConfigMap, metadata: {name: kept, namespace: web, annotations: {gitfleet.dev/prune: disabled}}}` + "\n"
	job       = `{apiVersion: batch/v1, kind: Job, metadata: {name: %s, namespace: web, annotations: {gitfleet.dev/recreate: "true"}}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: "%s"}]}}}}` + "\n"
	guarded   = "deleting a Namespace deletes everything in it"
	uncertain = "crp/web is gone, and may have been renamed: it keeps what it holds\n"
)

var changes = map[string]struct {
	base, commit, text string
	want               string
}{
	"nothing": {base, "v2", base, ""},
	"another value": {base, "v2", strings.Replace(base, "one x", "one y", 1),
		"ConfigMap/web/one changes on a,b"},
	"a new object": {base, "v2", base + "configmap web/three x\n",
		"a gets ConfigMap/web/three\nb gets ConfigMap/web/three"},
	"an object is deleted": {base, "v2", strings.Replace(base, "configmap web/two x\n", "", 1),
		"a loses ConfigMap/web/two\nb loses ConfigMap/web/two"},
	"too many deletions": {base, "v2", strings.NewReplacer("configmap web/two x\n", "", "configmap web/one x\n", "").Replace(base),
		"a loses ConfigMap/web/one, blocked: more than 1\na loses ConfigMap/web/two, blocked: more than 1\nb loses ConfigMap/web/one, blocked: more than 1\nb loses ConfigMap/web/two, blocked: more than 1"},
	"many deletions, allowed": {base, "v2 Gitfleet-Allow-Delete: web", strings.NewReplacer("configmap web/two x\n", "", "configmap web/one x\n", "").Replace(base),
		"a loses ConfigMap/web/one\na loses ConfigMap/web/two\nb loses ConfigMap/web/one\nb loses ConfigMap/web/two"},
	"a rename": {base, "v2", strings.Replace(base, "place web", "place shop of web", 1),
		"crp/shop was crp/web"},
	"a cluster leaves": {base, "v2", strings.Replace(base, "clusters a b", "clusters a", 1), ""},
	"a new placement": {base, "v2", base + "namespace shop\nplace shop\n",
		"crp/shop is new\na gets Namespace/shop\nb gets Namespace/shop"},
	"a second placement of the same objects": {base, "v2", base + "place also of web\n", "crp/also is new"},
	"a namespace is no longer selected": {base + "namespace shop\nplace more of web,shop\n", "v2", base + "namespace shop\nplace more of web\n",
		"a loses Namespace/shop, blocked: " + guarded + "\nb loses Namespace/shop, blocked: " + guarded},
	"an object goes with its namespace": {strings.Replace(base, "place web", "place web of web,shop", 1) + "namespace shop\nconfigmap shop/one x\n", "v2", base + "namespace shop\nconfigmap shop/one x\n",
		"a loses Namespace/shop, blocked: " + guarded + "\na loses ConfigMap/shop/one, blocked: Namespace shop goes as well, and " + guarded +
			"\nb loses Namespace/shop, blocked: " + guarded + "\nb loses ConfigMap/shop/one, blocked: Namespace shop goes as well, and " + guarded},
	"a placement is deleted, within the limit": {base + "namespace shop\nplace shop\n", "v2", base + "namespace shop\n",
		"crp/shop is gone\na loses Namespace/shop\nb loses Namespace/shop"},
	"a placement that abandons is deleted": {base + "namespace shop\nplace shop abandon\n", "v2", base + "namespace shop\n",
		"crp/shop is gone\na keeps Namespace/shop\nb keeps Namespace/shop"},
	"a placement leaves a cluster": {base + "namespace shop\nplace shop on a,b\n", "v2", base + "namespace shop\nplace shop on a\n",
		"b loses Namespace/shop"},
	"a placement leaves its last cluster": {base + "namespace shop\nplace shop on a\n", "v2 Gitfleet-Allow-Delete: web", base + "namespace shop\nplace shop on c\n",
		"a loses Namespace/shop, blocked: the placement has no cluster left"},
	"a placement leaves its last cluster, allowed": {base + "namespace shop\nplace shop on a\n", "v2 Gitfleet-Allow-Delete: shop", base + "namespace shop\nplace shop on c\n",
		"a loses Namespace/shop"},
	"an object with gitfleet.dev/prune: disabled": {base + kept, "v2", base, "a keeps ConfigMap/web/kept\nb keeps ConfigMap/web/kept"},
	"an object changes its placement": {base + "namespace shop\nplace zoo of web,shop\n", "v2",
		"clusters a b\nnamespace web\nconfigmap web/one x\nconfigmap web/two x\nnamespace shop\nplace zoo of web,shop\n",
		"crp/web is gone\na: Namespace/web passes from crp/web to crp/zoo\na: ConfigMap/web/one passes from crp/web to crp/zoo\na: ConfigMap/web/two passes from crp/web to crp/zoo\n" +
			"b: Namespace/web passes from crp/web to crp/zoo\nb: ConfigMap/web/one passes from crp/web to crp/zoo\nb: ConfigMap/web/two passes from crp/web to crp/zoo"},
	"an uncertain rename": {base, "v2", strings.Replace(base, "place web", "place one of web\nplace two of web", 1),
		"crp/one is new, and may be a renamed placement: nothing of it is placed\ncrp/two is new, and may be a renamed placement: nothing of it is placed\n" + strings.TrimSpace(uncertain)},
	"invalid selectors": {base, "v2", strings.Replace(base, "place web", "namespace other\nwidget other/one\nplace web broken", 1), ""},
	"an immutable field": {base + fmt.Sprintf(job, "one", "v1"), "v2", base + fmt.Sprintf(job, "one", "v2"),
		"Job.batch/web/one changes on a,b, recreated"},
	"too many recreations": {base + fmt.Sprintf(job, "one", "v1") + fmt.Sprintf(job, "two", "v1"), "v2", base + fmt.Sprintf(job, "one", "v2") + fmt.Sprintf(job, "two", "v2"),
		"Job.batch/web/one changes on a,b, recreated\nJob.batch/web/two changes on a,b, recreated\n" +
			"a recreates Job.batch/web/one, blocked: more than 1\na recreates Job.batch/web/two, blocked: more than 1\nb recreates Job.batch/web/one, blocked: more than 1\nb recreates Job.batch/web/two, blocked: more than 1"},
	"recreations and deletions count together": {base + fmt.Sprintf(job, "one", "v1"), "v2", strings.Replace(base, "configmap web/two x\n", "", 1) + fmt.Sprintf(job, "one", "v2"),
		"a loses ConfigMap/web/two, blocked: more than 1\nb loses ConfigMap/web/two, blocked: more than 1\nJob.batch/web/one changes on a,b, recreated\n" +
			"a recreates Job.batch/web/one, blocked: more than 1\nb recreates Job.batch/web/one, blocked: more than 1"},
	"too many recreations, allowed": {base + fmt.Sprintf(job, "one", "v1") + fmt.Sprintf(job, "two", "v1"), "v2 Gitfleet-Allow-Delete: web", base + fmt.Sprintf(job, "one", "v2") + fmt.Sprintf(job, "two", "v2"),
		"Job.batch/web/one changes on a,b, recreated\nJob.batch/web/two changes on a,b, recreated"},
	"no placement is left": {base, "v2", "clusters a b\nnamespace web\n",
		"crp/web is gone\na loses Namespace/web, blocked: more than 1\na loses ConfigMap/web/one, blocked: more than 1\na loses ConfigMap/web/two, blocked: more than 1\n" +
			"b loses Namespace/web, blocked: more than 1\nb loses ConfigMap/web/one, blocked: more than 1\nb loses ConfigMap/web/two, blocked: more than 1\n" +
			"refused: the commit has no placement left, and would remove everything from every cluster"},
}

// changedSettings are the settings that some of the changes change.
var changedSettings = map[string]string{
	"a placement leaves a cluster":                 `crp/shop: policy.clusterNames from ["a","b"] to ["a"]`,
	"a placement leaves its last cluster":          `crp/shop: policy.clusterNames from ["a"] to ["c"]`,
	"a placement leaves its last cluster, allowed": `crp/shop: policy.clusterNames from ["a"] to ["c"]`,
}

// wanted is what a change of the table comes to, with its settings.
func wanted(name, want string) string {
	if line := changedSettings[name]; line != "" {
		return line + "\n" + want
	}
	return want
}

// The forecast of a commit names what changes from the plan of another one, and what is held.
func TestForecasts(t *testing.T) {
	for name, test := range changes {
		t.Run(name, func(t *testing.T) {
			first, err := Of(Input{Snapshot: snapshot(t, "v1", test.base), Now: noon})
			if err != nil {
				t.Fatal(err)
			}
			before := first.Describe()
			o, err := Of(Input{Snapshot: snapshot(t, test.commit, test.text), Before: &before, Earlier: first.Plan, Now: noon})
			if err != nil {
				t.Fatal(err)
			}
			d, c := o.Compared(limit(1))
			if got, want := describeChanges(o, d, c), wanted(name, test.want); got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// runningFleet returns the fleet of a daemon that has applied a commit on every cluster.
func runningFleet(t *testing.T, text string) *Running {
	t.Helper()
	head := snapshot(t, "v1", text)
	in := healthy(head, noon)
	var p *plan.Plan
	for range 4 {
		p = plan.Resolve(in)
		p.UpdateLedger(in.Ledger)
		in.Now = in.Now.Add(time.Minute)
		for cluster, works := range p.Works {
			for _, w := range works {
				in.Ledger.Fold(protocol.WorkSeen{Cluster: cluster, Placement: w.Placement, At: in.Now, WorkState: protocol.WorkState{Revision: w.Revision, Done: true, Total: len(w.Manifests)}})
			}
		}
	}
	return NewRunning(head, p, in.Now)
}

// The forecast for a running fleet has the same changes as one from the plan of its commit.
func TestForecastsOfARunningFleet(t *testing.T) {
	for name, test := range changes {
		t.Run(name, func(t *testing.T) {
			o, err := runningFleet(t, test.base).Forecast(snapshot(t, test.commit, test.text))
			if err != nil {
				t.Fatal(err)
			}
			d, c := o.Compared(limit(1))
			if got, want := describeChanges(o, d, c), wanted(name, test.want); got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// A commit in a running fleet begins a rollout on the clusters that the budget allows, and its
// new problems are those that the commit in force does not have.
func TestRolloutsAndNewProblems(t *testing.T) {
	const budget = "clusters a b c d\nnamespace web\nconfigmap web/one x\nplace web unavailable 1\nplace idle of gone\n"
	head := snapshot(t, "v1", budget)
	first, err := Of(Input{Snapshot: head, Now: noon})
	if err != nil {
		t.Fatal(err)
	}
	running := NewRunning(head, first.Plan, noon)
	for name, test := range map[string]struct {
		text     string
		rollouts string
		problems string
	}{
		"nothing":          {budget, "", ""},
		"another value":    {strings.Replace(budget, "one x", "one y", 1), "crp/web: 4 clusters, 1 unavailable, first a", ""},
		"another line":     {"\n\n" + budget, "", ""},
		"another typo":     {budget + "place more of wbe\n", "", `spec.resourceSelectors[0]: there is no Namespace "wbe" in the repository, so this selects nothing; did you mean web?`},
		"a corrected typo": {budget + "namespace gone\n", "crp/idle: 4 clusters, 1 unavailable, first a", ""},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := running.Forecast(snapshot(t, "v2", test.text))
			if err != nil {
				t.Fatal(err)
			}
			var rollouts, problems []string
			for _, r := range o.Rollouts {
				if r.Placement != "crp/more" {
					rollouts = append(rollouts, fmt.Sprintf("%s: %d clusters, %d unavailable, first %s", r.Placement, r.Clusters, r.MaxUnavailable, strings.Join(r.First, ",")))
				}
			}
			for _, p := range running.NewProblems(o) {
				problems = append(problems, p.Field+": "+p.Message)
			}
			if got := strings.Join(rollouts, "\n"); got != test.rollouts {
				t.Errorf("rollouts:\n%s\nwant:\n%s", got, test.rollouts)
			}
			if got := strings.Join(problems, "\n"); got != test.problems {
				t.Errorf("new problems:\n%s\nwant:\n%s", got, test.problems)
			}
		})
	}
}

// Labels and taints of a file of observed clusters take precedence, with a warning if those of the
// checkout differ. A cluster that the checkout does not declare is left out.
func TestObservedFleet(t *testing.T) {
	const head = "{apiVersion: cluster.kubernetes-fleet.io/v1beta1, kind: MemberCluster, metadata: {name: %s}, spec: {identity: {kind: User, name: fleet}%s}}\n"
	member := func(name, metadata, spec string) string {
		return fmt.Sprintf(strings.Replace(head, "name: %s}", "name: %s"+metadata+"}", 1), name, spec)
	}
	for name, test := range map[string]struct {
		file     string
		warnings []string
		eu       bool // a label of the file is in force
		tainted  bool
	}{
		"the same fields":    {member("a", "", ""), nil, false, false},
		"another label":      {member("a", ", labels: {region: eu}", ""), []string{`"eu" counts here, although cluster-a.yaml:1 says "us"`}, true, false},
		"a taint":            {member("a", "", ", taints: [{key: k, effect: NoSchedule}]"), []string{"these count here, although cluster-a.yaml:1 says otherwise"}, false, true},
		"a copy of the file": {member("a", ", labels: {region: eu}, annotations: {gitfleet.dev/path: cluster-a.yaml}", ""), nil, false, false},
		"not declared":       {member("a", "", "") + "---\n" + member("b", "", ""), []string{"the checkout declares no MemberCluster b, so it is no member, and left out"}, false, false},
		"suspended": {member("a", ", annotations: {gitfleet.dev/suspended: suspended by alice}", ""),
			[]string{"a is suspended by alice; what is planned for it comes once that is over"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			clusters, err := hub.ReadClusters("fleet.yaml", []byte(test.file))
			if err != nil {
				t.Fatal(err)
			}
			fleet := NewFleet(clusters, noon)
			o, err := Of(Input{Snapshot: snapshot(t, "v1", "clusters a/region=us\nnamespace web\nplace web\n"), Observed: fleet, Now: noon})
			if err != nil {
				t.Fatal(err)
			}
			var warnings []string
			for _, w := range o.Warnings {
				warnings = append(warnings, w.Message)
			}
			if fmt.Sprint(warnings) != fmt.Sprint(test.warnings) {
				t.Errorf("warnings %q, want %q", warnings, test.warnings)
			}
			if c := o.Plan.Clusters[0]; (c.Labels["region"] == "eu") != test.eu || (len(c.Taints) > 0) != test.tainted {
				t.Errorf("the cluster has the labels %v and the taints %v", c.Labels, c.Taints)
			}
		})
	}
}

// If an override fails on a cluster at the earlier commit, the objects on the cluster are unknown, and
// the plan cannot list their deletion. It has a warning, unless the override fails at the new commit too.
func TestUnknownContentOfTheEarlierPlan(t *testing.T) {
	const base = "clusters a/region=eu b/region=us\nnamespace web\nnamespace shop\n"
	const bare = "{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: web}}\n"
	const failing = "override web/one to v1 on eu\n"
	for name, test := range map[string]struct{ before, after, want string }{
		"removed":                 {base + bare + failing + "place web\n", base + bare + "place shop\n", "the objects of crp/web on a are unknown"},
		"renamed and mended":      {base + bare + failing + "place web\n", base + bare + "place new of web\n", "the objects of crp/web on a are unknown"},
		"mended":                  {base + bare + failing + "place web\n", base + bare + "place web\n", "the objects of crp/web on a are unknown"},
		"invalid selectors":       {base + bare + "widget web/one\nplace web broken\n", base + bare + "place shop\n", "the objects of crp/web on its clusters are unknown"},
		"invalid selectors still": {base + bare + "widget web/one\nplace web broken\n", base + bare + "widget web/one\nplace web broken\nplace shop\n", ""},
		"failing still":           {base + bare + failing + "place web\n", base + bare + failing + "place web\nplace shop\n", ""},
		"renamed, failing still":  {base + bare + failing + "place web\n", base + bare + failing + "place new of web\n", ""},
		"nothing fails":           {base + bare + "place web\n", base + bare + "place shop\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			earlier, err := Of(Input{Snapshot: snapshot(t, "v1", test.before), Now: noon})
			if err != nil {
				t.Fatal(err)
			}
			before := earlier.Describe()
			o, err := Of(Input{Snapshot: snapshot(t, "v2", test.after), Now: noon, Before: &before, Earlier: earlier.Plan})
			if err != nil {
				t.Fatal(err)
			}
			d, _ := o.Compared(limit(9))
			told := ""
			for _, p := range d.Problems {
				if strings.Contains(p.Message, "unknown") {
					told += p.Message
				}
			}
			if !strings.Contains(told, test.want) || test.want == "" && told != "" {
				t.Errorf("%q, want %q", told, test.want)
			}
		})
	}
}

// If an override fails on a cluster of a running fleet, the cluster still has the objects that were
// assigned to it before. The plan lists their deletion.
func TestDeletionsWhereAnOverrideFails(t *testing.T) {
	const fleet = "clusters a/region=eu b/region=us\nnamespace web\nnamespace shop\n{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: web}}\n"
	in := healthy(snapshot(t, "v1", fleet+"place web\n"), noon)
	in.Past = map[string]*hub.Snapshot{"v1": in.InForce}
	plan.Resolve(in).UpdateLedger(in.Ledger)
	in.InForce = snapshot(t, "v2", fleet+"place web\noverride web/one to v1 on eu\n")
	o, err := NewRunning(in.InForce, plan.Resolve(in), noon).Forecast(snapshot(t, "v3", fleet+"place shop\n"))
	if err != nil {
		t.Fatal(err)
	}
	d, _ := o.Compared(limit(9))
	lost := 0
	for _, x := range d.Deletions {
		if x.Cluster == "a" {
			lost++
		}
	}
	if lost != 2 || len(o.Unknown) > 0 {
		t.Errorf("a loses %d objects; unknown: %v", lost, o.Unknown)
	}
}
