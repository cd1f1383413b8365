package simulation

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Fleets in which placements are rolled out by staged update runs, with approvals, windows, evictions and budgets. Clusters
// join, leave and change their regions, by which stages choose them. Each placement has a namespace of its own, and no cluster
// gets other content than another.

// A stagedSpec is what a commit says about staged update runs, windows and evictions.
type stagedSpec struct {
	strategies map[string]strategySpec
	runs       map[string]runSpec
	approvals  map[string]bool // as RUN after STAGE
	evictions  map[string]evictionSpec
	budgets    map[string]budgetSpec // by placement
	windows    map[string]windowSpec
	gates      map[string]gateSpec // empty in fleets without
}

// A strategySpec is a ClusterStagedUpdateStrategy.
type strategySpec struct {
	stages               []stageSpec
	onFailure, unmatched string // annotations; empty if not set
	gated                bool   // its gates have been drawn
}

// A stageSpec is a stage with the name of the region whose clusters it has.
type stageSpec struct {
	region        string
	before, after bool // approvals
	wait          time.Duration
	concurrency   string // empty if not set
	gates         []string
}

// A runSpec is a ClusterStagedUpdateRun.
type runSpec struct{ placement, strategy, state string }

type evictionSpec struct{ placement, cluster string }

// A budgetSpec is a ClusterResourcePlacementDisruptionBudget.
type budgetSpec struct {
	field string // min or max
	value int
}

// A windowSpec is a RolloutWindow that is open for some minutes of every so many, on clusters of a region.
type windowSpec struct {
	every, open int
	stops       bool
	region      string // empty for all
}

// ownNamespaces are the namespaces of the placements.
var ownNamespaces = map[string]string{"p": "web", "q": "shop", "r": "docks"}

// firstStaged returns the first commit of a scenario with staged update runs.
func firstStaged(r *rand.Rand) *desired {
	d := &desired{
		clusters: map[string]cluster{}, configMaps: map[string]map[string]string{}, placements: map[string]placementSpec{}, overrides: map[api.ID]override{},
		staged: &stagedSpec{
			strategies: map[string]strategySpec{}, runs: map[string]runSpec{}, approvals: map[string]bool{}, evictions: map[string]evictionSpec{}, budgets: map[string]budgetSpec{}, windows: map[string]windowSpec{}, gates: map[string]gateSpec{},
		},
	}
	for _, name := range clusterNames[:2+r.IntN(len(clusterNames)-1)] {
		d.clusters[name] = cluster{region: pick(r, regions)}
	}
	for _, name := range []string{"careful", "hasty"} {
		d.staged.strategies[name] = newStrategy(r)
	}
	for _, name := range keys(ownNamespaces) {
		space := ownNamespaces[name]
		d.configMaps[space] = map[string]string{"one": "good-0"}
		p := placementSpec{namespaces: []string{space}, numberOfClusters: -1, unavailablePeriod: 60, external: name == "p"}
		if name == "q" {
			p.external = r.IntN(2) == 0
		}
		if p.external {
			p.strategy = pick(r, []string{"careful", "careful", "hasty", ""})
			p.queues = r.IntN(4) == 0
		}
		d.placements[name] = p
	}
	return d
}

func newStrategy(r *rand.Rand) strategySpec {
	var s strategySpec
	for _, region := range regions {
		s.stages = append(s.stages, stageSpec{
			region: region, before: r.IntN(4) == 0, after: r.IntN(2) == 0, wait: pick(r, []time.Duration{0, 0, 20 * time.Second, 90 * time.Second}), concurrency: pick(r, []string{"", "", "1", "2", "50%", "100%"}),
		})
	}
	r.Shuffle(len(s.stages), func(i, j int) { s.stages[i], s.stages[j] = s.stages[j], s.stages[i] })
	s.onFailure = pick(r, []string{"", "", api.OnFailureRollBack, api.OnFailureContinue})
	s.unmatched = pick(r, []string{api.UnmatchedLast, api.UnmatchedIgnore, api.UnmatchedLast, ""})
	return s
}

func (s *stagedSpec) clone() *stagedSpec {
	if s == nil {
		return nil
	}
	return &stagedSpec{maps.Clone(s.strategies), maps.Clone(s.runs), maps.Clone(s.approvals), maps.Clone(s.evictions), maps.Clone(s.budgets), maps.Clone(s.windows), maps.Clone(s.gates)}
}

// text returns the manifests in the format of package test/world.
func (s *stagedSpec) text() string {
	if s == nil {
		return ""
	}
	var b strings.Builder
	for _, name := range keys(s.strategies) {
		fmt.Fprintf(&b, "strategy %s%s\n", name, s.strategies[name].text())
	}
	for _, name := range keys(s.runs) {
		run := s.runs[name]
		fmt.Fprintf(&b, "run %s of %s by %s %s\n", name, run.placement, run.strategy, run.state)
	}
	for _, words := range keys(s.approvals) {
		fmt.Fprintf(&b, "approve %s\n", words)
	}
	for _, name := range keys(s.evictions) {
		fmt.Fprintf(&b, "evict %s of %s from %s\n", name, s.evictions[name].placement, s.evictions[name].cluster)
	}
	for _, name := range keys(s.budgets) {
		fmt.Fprintf(&b, "budget %s %s %d\n", name, s.budgets[name].field, s.budgets[name].value)
	}
	for _, name := range keys(s.windows) {
		fmt.Fprintf(&b, "window %s%s\n", name, s.windows[name].text())
	}
	for _, name := range keys(s.gates) {
		b.WriteString(s.gates[name].text(name))
	}
	return b.String()
}

func (s strategySpec) text() string {
	var b strings.Builder
	for _, stage := range s.stages {
		fmt.Fprintf(&b, " %[1]s/region=%[1]s", stage.region)
		if stage.before {
			b.WriteString("/before")
		}
		if stage.after {
			b.WriteString("/after")
		}
		if stage.wait > 0 {
			fmt.Fprintf(&b, "/wait=%s", stage.wait)
		}
		if stage.concurrency != "" {
			b.WriteString("/" + stage.concurrency)
		}
		b.WriteString(stage.gateText())
	}
	if s.onFailure != "" {
		b.WriteString(" on-failure=" + s.onFailure)
	}
	if s.unmatched != "" {
		b.WriteString(" unmatched=" + s.unmatched)
	}
	return b.String()
}

func (x windowSpec) text() string {
	text := fmt.Sprintf(` "*/%d * * * *" %dm`, x.every, x.open)
	if x.stops {
		text += " Stop"
	}
	if x.region != "" {
		text += " on " + x.region
	}
	return text
}

// isOpen reports whether the window is open at a time.
func (x windowSpec) isOpen(at time.Time) bool { return at.UTC().Minute()%x.every < x.open }

// stagedEdits are the edits of a commit in these fleets.
var stagedEdits = []edit{
	{14, editValue}, {3, editCluster}, {3, editRegion}, {2, editLabels}, {2, editPolicy}, {3, editExternal}, {3, editStages}, {4, editRun}, {4, editApproval}, {3, editEviction}, {3, editBudget}, {2, editWindow},
}

// editRegion changes the region of a cluster, which may be in none that a stage has.
func editRegion(d *desired, r *rand.Rand) string {
	name := pick(r, keys(d.clusters))
	c := d.clusters[name]
	c.region = pick(r, []string{"eu", "us", "ap"})
	d.clusters[name] = c
	return fmt.Sprintf("cluster %s is in %s", name, c.region)
}

// editExternal changes how a placement makes update runs.
func editExternal(d *desired, r *rand.Rand) string {
	name := pick(r, keys(d.placements))
	p := d.placements[name]
	if !p.external {
		return ""
	}
	p.strategy, p.queues = pick(r, []string{"careful", "hasty", "careful", "hasty", ""}), r.IntN(3) == 0
	d.placements[name] = p
	return "placement " + name + p.text()
}

func editStages(d *desired, r *rand.Rand) string {
	name := pick(r, keys(d.staged.strategies))
	d.staged.strategies[name] = newStrategy(r)
	return "strategy " + name + d.staged.strategies[name].text()
}

// editRun adds an update run, changes the state of one, or removes one.
func editRun(d *desired, r *rand.Rand) string {
	name := fmt.Sprintf("m%d", 1+r.IntN(4))
	run, exists := d.staged.runs[name]
	switch {
	case !exists:
		var external []string
		for _, p := range keys(d.placements) {
			if d.placements[p].external {
				external = append(external, p)
			}
		}
		run = runSpec{pick(r, external), pick(r, keys(d.staged.strategies)), pick(r, []string{"Run", "Run", "Run", "Initialize"})}
	case r.IntN(3) == 0:
		delete(d.staged.runs, name)
		return "run " + name + " goes"
	default:
		run.state = pick(r, []string{"Run", "Run", "Stop"})
	}
	d.staged.runs[name] = run
	return fmt.Sprintf("run %s is %+v", name, run)
}

// editApproval approves a stage of a declared run, or takes an approval out of Git.
func editApproval(d *desired, r *rand.Rand) string {
	if all := keys(d.staged.approvals); len(all) > 0 && r.IntN(3) == 0 {
		words := pick(r, all)
		delete(d.staged.approvals, words)
		return "approval " + words + " goes"
	}
	if len(d.staged.runs) == 0 {
		return ""
	}
	words := pick(r, keys(d.staged.runs)) + pick(r, []string{" before ", " after "}) + pick(r, regions)
	d.staged.approvals[words] = true
	return "approval " + words
}

func editEviction(d *desired, r *rand.Rand) string {
	name := fmt.Sprintf("e%d", 1+r.IntN(9))
	if _, exists := d.staged.evictions[name]; exists {
		delete(d.staged.evictions, name)
		return "eviction " + name + " goes"
	}
	d.staged.evictions[name] = evictionSpec{pick(r, keys(d.placements)), pick(r, keys(d.clusters))}
	return fmt.Sprintf("eviction %s is %+v", name, d.staged.evictions[name])
}

func editBudget(d *desired, r *rand.Rand) string {
	name := pick(r, keys(d.placements))
	if _, exists := d.staged.budgets[name]; exists && r.IntN(3) == 0 {
		delete(d.staged.budgets, name)
		return "budget " + name + " goes"
	}
	d.staged.budgets[name] = budgetSpec{pick(r, []string{"min", "min", "max"}), r.IntN(4)}
	return fmt.Sprintf("budget %s is %+v", name, d.staged.budgets[name])
}

func editWindow(d *desired, r *rand.Rand) string {
	name := fmt.Sprintf("w%d", 1+r.IntN(2))
	if _, exists := d.staged.windows[name]; exists && r.IntN(2) == 0 {
		delete(d.staged.windows, name)
		return "window " + name + " goes"
	}
	d.staged.windows[name] = windowSpec{pick(r, []int{5, 10, 20}), 1 + r.IntN(3), r.IntN(2) == 0, pick(r, []string{"", "eu", "us"})}
	return "window " + name + d.staged.windows[name].text()
}

// makeConsistent removes what the hub would refuse.
func (d *desired) makeConsistent() {
	s := d.staged
	maps.DeleteFunc(s.budgets, func(name string, b budgetSpec) bool {
		p := d.placements[name]
		return len(p.clusterNames) > 0 || b.field == "max" && p.numberOfClusters < 0
	})
	maps.DeleteFunc(s.approvals, func(words string, _ bool) bool {
		w := strings.Fields(words)
		run, declared := s.runs[w[0]]
		i := slices.IndexFunc(s.strategies[run.strategy].stages, func(x stageSpec) bool { return x.region == w[2] })
		return declared && (i < 0 || w[1] == "before" && !s.strategies[run.strategy].stages[i].before || w[1] == "after" && !s.strategies[run.strategy].stages[i].after)
	})
}

// makeValidStaged gives each placement content that it has never had and a run of its own, and ends what keeps it from clusters.
func (d *desired) makeValidStaged() {
	s := d.staged
	clear(s.runs)
	clear(s.approvals)
	clear(s.windows)
	for name, c := range d.clusters {
		if !slices.Contains(regions, c.region) {
			d.clusters[name] = cluster{region: regions[0]}
		}
	}
	for _, name := range keys(d.placements) {
		p := d.placements[name]
		p.queues = false
		if p.external && p.strategy == "" {
			p.strategy = "careful"
		}
		d.placements[name] = p
		space := ownNamespaces[name]
		if d.configMaps[space] == nil {
			d.configMaps[space] = map[string]string{}
		}
		d.configMaps[space]["one"] = "good-last"
	}
	d.makeConsistent()
}
