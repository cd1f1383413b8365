package simulation

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

// The names that are used. They are few, so that placements compete for the same objects and
// clusters.
var (
	clusterNames         = []string{"a", "b", "c", "d", "e", "f"}
	namespaceNames       = []string{"web", "shop", "docks"}
	objectNames          = []string{"one", "two", "three"}
	placementNames       = []string{"p", "q", "r", "s"}
	regions              = []string{"eu", "us"}
	maxUnavailableValues = []string{"", "0", "1", "1", "2", "50%", "100%"}
	maxSurgeValues       = []string{"", "", "0", "1", "100%"}
)

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// firstCommit returns the first commit of a scenario.
func firstCommit(r *rand.Rand) *desired {
	d := &desired{clusters: map[string]cluster{}, configMaps: map[string]map[string]string{}, placements: map[string]placementSpec{}, overrides: map[api.ID]override{}}
	for _, name := range clusterNames[:1+r.IntN(len(clusterNames))] {
		d.clusters[name] = cluster{region: pick(r, regions)}
	}
	for _, name := range namespaceNames[:1+r.IntN(len(namespaceNames))] {
		d.configMaps[name] = map[string]string{"one": "good-0"}
	}
	for _, name := range placementNames[:1+r.IntN(3)] {
		d.placements[name] = d.newPlacement(r)
	}
	return d
}

func (d *desired) newPlacement(r *rand.Rand) placementSpec {
	p := placementSpec{namespaces: []string{pick(r, namespaceNames)}, numberOfClusters: -1, unavailablePeriod: 60}
	if r.IntN(3) == 0 {
		p.namespaces = namespaceNames[:2]
	}
	p.changePolicy(r)
	p.changeStrategy(r)
	p.continueOnFailure = r.IntN(5) == 0
	p.abandon = r.IntN(8) == 0
	return p
}

// changePolicy changes the policy of a placement.
func (p *placementSpec) changePolicy(r *rand.Rand) {
	p.clusterNames, p.numberOfClusters, p.region = nil, -1, ""
	switch r.IntN(6) {
	case 0:
		p.clusterNames = clusterNames[:1+r.IntN(3)]
	case 1:
		p.clusterNames = clusterNames[r.IntN(3) : 3+r.IntN(3)]
	case 2, 3:
		p.numberOfClusters = r.IntN(4)
	}
	if len(p.clusterNames) == 0 && r.IntN(4) == 0 {
		p.region = pick(r, regions)
	}
}

// changeStrategy changes the strategy of a placement.
func (p *placementSpec) changeStrategy(r *rand.Rand) {
	p.maxUnavailable, p.maxSurge = pick(r, maxUnavailableValues), pick(r, maxSurgeValues)
	if p.maxUnavailable == "0" && p.maxSurge == "0" {
		p.maxSurge = "1" // both 0 is invalid
	}
	p.unavailablePeriod = pick(r, []int{60, 60, 0, 20})
}

// An edit is one change of a commit.
type edit struct {
	weight int
	apply  func(d *desired, r *rand.Rand) string
}

var edits = []edit{
	{10, editValue}, {4, editObject}, {3, editNamespace}, {4, editPlacement}, {2, editRemoved}, {2, editRenamed},
	{3, editPolicy}, {4, editStrategy}, {3, editSelectors}, {3, editOverride}, {3, editCluster}, {2, editLabels}, {1, editMode}, {3, editTypo},
}

// change applies one to three edits of some, and describes them.
func (d *desired) change(r *rand.Rand, edits []edit) string {
	total := 0
	for _, e := range edits {
		total += e.weight
	}
	said := ""
	for range 1 + r.IntN(3)/2 + r.IntN(8)/7 {
		n := r.IntN(total)
		for _, e := range edits {
			if n -= e.weight; n < 0 {
				if what := e.apply(d, r); what != "" {
					said += ", " + what
				}
				break
			}
		}
	}
	if said == "" {
		return "nothing"
	}
	return said[2:]
}

func newValue(r *rand.Rand) string {
	kind := pick(r, []string{good, good, good, good, good, slow, slow, loose, loose, bad, bad, refused})
	return fmt.Sprintf("%s-%d", kind, r.IntN(5))
}

func editValue(d *desired, r *rand.Rand) string {
	if len(d.configMaps) == 0 {
		return editNamespace(d, r)
	}
	space := pick(r, keys(d.configMaps))
	if len(d.configMaps[space]) == 0 {
		return editObject(d, r)
	}
	name := pick(r, keys(d.configMaps[space]))
	d.configMaps[space][name] = newValue(r)
	return fmt.Sprintf("%s/%s is %s", space, name, d.configMaps[space][name])
}

func editObject(d *desired, r *rand.Rand) string {
	if len(d.configMaps) == 0 {
		return editNamespace(d, r)
	}
	space, name := pick(r, keys(d.configMaps)), pick(r, objectNames)
	if _, ok := d.configMaps[space][name]; ok {
		delete(d.configMaps[space], name)
		delete(d.overrides, objectID(space, name))
		return fmt.Sprintf("%s/%s goes", space, name)
	}
	d.configMaps[space][name] = newValue(r)
	return fmt.Sprintf("%s/%s comes as %s", space, name, d.configMaps[space][name])
}

func editNamespace(d *desired, r *rand.Rand) string {
	name := pick(r, namespaceNames)
	if _, ok := d.configMaps[name]; !ok {
		d.configMaps[name] = map[string]string{"one": newValue(r)}
		return "namespace " + name + " comes"
	}
	for id := range d.overrides {
		if id.Namespace == name {
			delete(d.overrides, id)
		}
	}
	delete(d.configMaps, name)
	return "namespace " + name + " goes"
}

func editPlacement(d *desired, r *rand.Rand) string {
	name := pick(r, placementNames)
	d.placements[name] = d.newPlacement(r)
	return "placement " + name + d.placements[name].text()
}

func editRemoved(d *desired, r *rand.Rand) string {
	if len(d.placements) < 2 {
		return ""
	}
	name := pick(r, keys(d.placements))
	delete(d.placements, name)
	return "placement " + name + " goes"
}

func editRenamed(d *desired, r *rand.Rand) string {
	if len(d.placements) == 0 {
		return ""
	}
	from, to := pick(r, keys(d.placements)), pick(r, placementNames)
	p := d.placements[from]
	delete(d.placements, from)
	d.placements[to] = p
	return "placement " + from + " is now " + to
}

// changePlacement changes one of the placements.
func (d *desired) changePlacement(r *rand.Rand, change func(p *placementSpec)) string {
	if len(d.placements) == 0 {
		return editPlacement(d, r)
	}
	name := pick(r, keys(d.placements))
	p := d.placements[name]
	change(&p)
	d.placements[name] = p
	return "placement " + name + p.text()
}

func editPolicy(d *desired, r *rand.Rand) string {
	return d.changePlacement(r, func(p *placementSpec) {
		if p.numberOfClusters >= 0 && r.IntN(2) == 0 {
			p.numberOfClusters = r.IntN(5)
			return
		}
		p.changePolicy(r)
	})
}

func editStrategy(d *desired, r *rand.Rand) string {
	return d.changePlacement(r, func(p *placementSpec) {
		p.changeStrategy(r)
		p.continueOnFailure = r.IntN(4) == 0
	})
}

func editSelectors(d *desired, r *rand.Rand) string {
	return d.changePlacement(r, func(p *placementSpec) {
		p.namespaces = slices.Clone(namespaceNames)
		r.Shuffle(len(p.namespaces), func(i, j int) { p.namespaces[i], p.namespaces[j] = p.namespaces[j], p.namespaces[i] })
		p.namespaces = p.namespaces[:1+r.IntN(2)]
	})
}

func editMode(d *desired, r *rand.Rand) string {
	return d.changePlacement(r, func(p *placementSpec) {
		switch r.IntN(3) {
		case 0:
			p.reportDiff = !p.reportDiff
		case 1:
			p.invalid = !p.invalid
		case 2:
			p.abandon = !p.abandon
		}
	})
}

func editOverride(d *desired, r *rand.Rand) string {
	if len(d.configMaps) == 0 {
		return ""
	}
	space := pick(r, keys(d.configMaps))
	if len(d.configMaps[space]) == 0 {
		return ""
	}
	id := objectID(space, pick(r, keys(d.configMaps[space])))
	if _, ok := d.overrides[id]; ok && r.IntN(2) == 0 {
		delete(d.overrides, id)
		return "the override of " + title(id) + " goes"
	}
	d.overrides[id] = override{newValue(r), pick(r, regions)}
	return fmt.Sprintf("%s is overridden by %s in %s", title(id), d.overrides[id].value, d.overrides[id].region)
}

func editCluster(d *desired, r *rand.Rand) string {
	name := pick(r, clusterNames)
	if _, ok := d.clusters[name]; !ok {
		d.clusters[name] = cluster{region: pick(r, regions)}
		return "cluster " + name + " joins"
	}
	if len(d.clusters) == 1 {
		return ""
	}
	delete(d.clusters, name)
	return "cluster " + name + " leaves"
}

func editLabels(d *desired, r *rand.Rand) string {
	name := pick(r, keys(d.clusters))
	d.clusters[name] = cluster{region: pick(r, regions), tainted: r.IntN(3) == 0, context: d.clusters[name].context}
	return fmt.Sprintf("cluster %s is %+v", name, d.clusters[name])
}

// typo is the suffix of a mistyped name.
const typo = "x"

// editTypo adds a typo to the namespace of a selector, or corrects one.
func editTypo(d *desired, r *rand.Rand) string {
	return d.changePlacement(r, func(p *placementSpec) {
		p.namespaces = slices.Clone(p.namespaces)
		i := r.IntN(len(p.namespaces))
		if name, mistyped := strings.CutSuffix(p.namespaces[i], typo); mistyped {
			p.namespaces[i] = name
			return
		}
		p.namespaces[i] += typo
		d.mistyped = true
	})
}
