package forecast

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/test/world"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// snapshot loads a commit from a short text.
func snapshot(t *testing.T, commit, text string) *hub.Snapshot {
	t.Helper()
	hash, message, _ := strings.Cut(commit, " ")
	s, err := hub.NewLoader(hub.Options{}).Load(hub.Commit{Hash: hash, Time: noon, Message: "a change\n\n" + message}, world.Files(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A limit is a brake on more than a number of deletions at once.
type limit int

func (n limit) TooMuch(going, _ int) string {
	if going > int(n) {
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
		if x.Held != "" {
			text += ", held: " + x.Held
		}
		out = append(out, text)
	}
	for _, x := range o.ContentChanges() {
		add("%s changes on %s", x.After.ID, strings.Join(x.Clusters, ","))
	}
	if why := o.Refusal(); why != "" {
		add("refused: %s", strings.SplitN(why, ";", 2)[0])
	}
	return strings.Join(out, "\n")
}

// changes are commits after base, and what they change.
const base = "clusters a b\nnamespace web\nconfigmap web/one x\nconfigmap web/two x\nplace web\n"

var changes = map[string]struct {
	commit, text string
	want         string
}{
	"nothing": {"v2", base, ""},
	"another value": {"v2", strings.Replace(base, "one x", "one y", 1),
		"ConfigMap/web/one changes on a,b"},
	"a new object": {"v2", base + "configmap web/three x\n",
		"a gets ConfigMap/web/three\nb gets ConfigMap/web/three"},
	"an object less": {"v2", strings.Replace(base, "configmap web/two x\n", "", 1),
		"a loses ConfigMap/web/two\nb loses ConfigMap/web/two"},
	"too many less": {"v2", strings.NewReplacer("configmap web/two x\n", "", "configmap web/one x\n", "").Replace(base),
		"a loses ConfigMap/web/one, held: more than 1\na loses ConfigMap/web/two, held: more than 1\nb loses ConfigMap/web/one, held: more than 1\nb loses ConfigMap/web/two, held: more than 1"},
	"many less, allowed": {"v2 Gitfleet-Allow-Delete: web", strings.NewReplacer("configmap web/two x\n", "", "configmap web/one x\n", "").Replace(base),
		"a loses ConfigMap/web/one\na loses ConfigMap/web/two\nb loses ConfigMap/web/one\nb loses ConfigMap/web/two"},
	"another name": {"v2", strings.Replace(base, "place web", "place shop of web", 1),
		"crp/shop was crp/web"},
	"a cluster less": {"v2", strings.Replace(base, "clusters a b", "clusters a", 1), ""},
	"a placement more": {"v2", base + "namespace shop\nplace shop\n",
		"crp/shop is new\na gets Namespace/shop\nb gets Namespace/shop"},
	"a split": {"v2", base + "place also of web\n", "crp/also is new"},
}

// The forecast of a commit names what changes from the plan of another one, and what is held.
func TestForecasts(t *testing.T) {
	for name, test := range changes {
		t.Run(name, func(t *testing.T) {
			first, err := Of(Input{Snapshot: snapshot(t, "v1", base), Now: noon})
			if err != nil {
				t.Fatal(err)
			}
			before := first.Describe()
			o, err := Of(Input{Snapshot: snapshot(t, test.commit, test.text), Before: &before, Earlier: first.Plan, Now: noon})
			if err != nil {
				t.Fatal(err)
			}
			d, c := o.Compared(limit(1))
			if got := describeChanges(o, d, c); got != test.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, test.want)
			}
		})
	}
}

// The forecast for a running fleet names the same changes as one from the plan of its commit.
func TestForecastsOfARunningFleet(t *testing.T) {
	head := snapshot(t, "v1", base)
	in := plan.Input{InForce: head, Ledger: ledger.New(), Now: noon, Memo: plan.NewMemo()}
	for _, c := range head.Clusters {
		in.Ledger.Fold(ledger.ClusterSeen{Cluster: c.Name, At: noon, Healthy: true})
	}
	var p *plan.Plan
	for range 4 {
		p = plan.Resolve(in)
		p.UpdateLedger(in.Ledger)
		in.Now = in.Now.Add(time.Minute)
		for cluster, works := range p.Works {
			for _, w := range works {
				in.Ledger.Fold(ledger.WorkSeen{Cluster: cluster, Placement: w.Placement, Revision: w.Revision, At: in.Now, Done: true, Total: len(w.Manifests)})
			}
		}
	}
	running := NewRunning(head, p, in.Now)
	for name, test := range changes {
		t.Run(name, func(t *testing.T) {
			o, err := running.Forecast(snapshot(t, test.commit, test.text))
			if err != nil {
				t.Fatal(err)
			}
			d, c := o.Compared(limit(1))
			if got := describeChanges(o, d, c); got != test.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, test.want)
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
		"a line is moved":  {"\n\n" + budget, "", ""},
		"another typo":     {budget + "place more of wbe\n", "", `spec.resourceSelectors[0]: there is no Namespace "wbe" in the repository, so this selects nothing; did you mean web?`},
		"a typo is mended": {budget + "namespace gone\n", "crp/idle: 4 clusters, 1 unavailable, first a", ""},
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

// Labels and taints of an observed fleet count where a file has them, with a warning where the
// checkout says otherwise. A cluster that the checkout does not declare is left out.
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
		"nothing":            {member("a", "", ""), nil, false, false},
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
