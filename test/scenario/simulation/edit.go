package simulation

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Names of what there may be. There are few of each, so that things meet.
var (
	clusterNames = []string{"a", "b", "c", "d", "e", "f"}
	spaceNames   = []string{"web", "shop", "docks"}
	objectNames  = []string{"one", "two", "three"}
	placeNames   = []string{"p", "q", "r", "s"}
	regions      = []string{"eu", "us"}
	shares       = []string{"", "0", "1", "1", "2", "50%", "100%"}
	surges       = []string{"", "", "0", "1", "100%"}
)

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// begin returns the first commit of a life.
func begin(r *rand.Rand) *desired {
	d := &desired{clusters: map[string]cluster{}, spaces: map[string]map[string]string{}, places: map[string]place{}, overrides: map[api.ID]override{}}
	for _, name := range clusterNames[:1+r.IntN(len(clusterNames))] {
		d.clusters[name] = cluster{region: pick(r, regions)}
	}
	for _, name := range spaceNames[:1+r.IntN(len(spaceNames))] {
		d.spaces[name] = map[string]string{"one": "good-0"}
	}
	for _, name := range placeNames[:1+r.IntN(3)] {
		d.places[name] = d.newPlace(r)
	}
	return d
}

func (d *desired) newPlace(r *rand.Rand) place {
	p := place{of: []string{pick(r, spaceNames)}, pick: -1, period: 60}
	if r.IntN(3) == 0 {
		p.of = spaceNames[:2]
	}
	p.choose(r)
	p.roll(r)
	p.goesOn = r.IntN(5) == 0
	p.abandon = r.IntN(8) == 0
	return p
}

// choose changes the policy of a placement.
func (p *place) choose(r *rand.Rand) {
	p.on, p.pick, p.near = nil, -1, ""
	switch r.IntN(6) {
	case 0:
		p.on = clusterNames[:1+r.IntN(3)]
	case 1:
		p.on = clusterNames[r.IntN(3) : 3+r.IntN(3)]
	case 2, 3:
		p.pick = r.IntN(4)
	}
	if len(p.on) == 0 && r.IntN(4) == 0 {
		p.near = pick(r, regions)
	}
}

// roll changes the strategy of a placement.
func (p *place) roll(r *rand.Rand) {
	p.unavailable, p.surge = pick(r, shares), pick(r, surges)
	if p.unavailable == "0" && p.surge == "0" {
		p.surge = "1" // or it is refused
	}
	p.period = pick(r, []int{60, 60, 0, 20})
}

// An edit is one change of a commit.
type edit struct {
	weight int
	what   func(d *desired, r *rand.Rand) string
}

var edits = []edit{
	{10, editValue}, {4, editObject}, {3, editSpace}, {4, editPlace}, {2, editRemoved}, {2, editRenamed},
	{3, editPolicy}, {4, editStrategy}, {3, editOf}, {3, editOverride}, {3, editCluster}, {2, editLabels}, {1, editMode}, {3, editTypo},
}

// change applies one to three edits, and describes them.
func (d *desired) change(r *rand.Rand) string {
	total := 0
	for _, e := range edits {
		total += e.weight
	}
	said := ""
	for range 1 + r.IntN(3)/2 + r.IntN(8)/7 {
		n := r.IntN(total)
		for _, e := range edits {
			if n -= e.weight; n < 0 {
				if what := e.what(d, r); what != "" {
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
	if len(d.spaces) == 0 {
		return editSpace(d, r)
	}
	space := pick(r, keys(d.spaces))
	if len(d.spaces[space]) == 0 {
		return editObject(d, r)
	}
	name := pick(r, keys(d.spaces[space]))
	d.spaces[space][name] = newValue(r)
	return fmt.Sprintf("%s/%s is %s", space, name, d.spaces[space][name])
}

func editObject(d *desired, r *rand.Rand) string {
	if len(d.spaces) == 0 {
		return editSpace(d, r)
	}
	space, name := pick(r, keys(d.spaces)), pick(r, objectNames)
	if _, ok := d.spaces[space][name]; ok {
		delete(d.spaces[space], name)
		delete(d.overrides, configMapID(space, name))
		return fmt.Sprintf("%s/%s goes", space, name)
	}
	d.spaces[space][name] = newValue(r)
	return fmt.Sprintf("%s/%s comes as %s", space, name, d.spaces[space][name])
}

func editSpace(d *desired, r *rand.Rand) string {
	name := pick(r, spaceNames)
	if _, ok := d.spaces[name]; !ok {
		d.spaces[name] = map[string]string{"one": newValue(r)}
		return "namespace " + name + " comes"
	}
	for id := range d.overrides {
		if id.Namespace == name {
			delete(d.overrides, id)
		}
	}
	delete(d.spaces, name)
	return "namespace " + name + " goes"
}

func editPlace(d *desired, r *rand.Rand) string {
	name := pick(r, placeNames)
	d.places[name] = d.newPlace(r)
	return "placement " + name + d.places[name].text()
}

func editRemoved(d *desired, r *rand.Rand) string {
	if len(d.places) < 2 {
		return ""
	}
	name := pick(r, keys(d.places))
	delete(d.places, name)
	return "placement " + name + " goes"
}

func editRenamed(d *desired, r *rand.Rand) string {
	if len(d.places) == 0 {
		return ""
	}
	from, to := pick(r, keys(d.places)), pick(r, placeNames)
	p := d.places[from]
	delete(d.places, from)
	d.places[to] = p
	return "placement " + from + " is now " + to
}

// place changes one of the placements.
func (d *desired) place(r *rand.Rand, change func(p *place)) string {
	if len(d.places) == 0 {
		return editPlace(d, r)
	}
	name := pick(r, keys(d.places))
	p := d.places[name]
	change(&p)
	d.places[name] = p
	return "placement " + name + p.text()
}

func editPolicy(d *desired, r *rand.Rand) string {
	return d.place(r, func(p *place) {
		if p.pick >= 0 && r.IntN(2) == 0 {
			p.pick = r.IntN(5)
			return
		}
		p.choose(r)
	})
}

func editStrategy(d *desired, r *rand.Rand) string {
	return d.place(r, func(p *place) {
		p.roll(r)
		p.goesOn = r.IntN(4) == 0
	})
}

func editOf(d *desired, r *rand.Rand) string {
	return d.place(r, func(p *place) {
		p.of = slices.Clone(spaceNames)
		r.Shuffle(len(p.of), func(i, j int) { p.of[i], p.of[j] = p.of[j], p.of[i] })
		p.of = p.of[:1+r.IntN(2)]
	})
}

func editMode(d *desired, r *rand.Rand) string {
	return d.place(r, func(p *place) {
		switch r.IntN(3) {
		case 0:
			p.report = !p.report
		case 1:
			p.invalid = !p.invalid
		case 2:
			p.abandon = !p.abandon
		}
	})
}

func editOverride(d *desired, r *rand.Rand) string {
	if len(d.spaces) == 0 {
		return ""
	}
	space := pick(r, keys(d.spaces))
	if len(d.spaces[space]) == 0 {
		return ""
	}
	id := configMapID(space, pick(r, keys(d.spaces[space])))
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
	d.clusters[name] = cluster{region: pick(r, regions), tainted: r.IntN(3) == 0}
	return fmt.Sprintf("cluster %s is %+v", name, d.clusters[name])
}

// typo is the suffix of a mistyped name.
const typo = "x"

// editTypo adds a typo to the namespace of a selector, or corrects one.
func editTypo(d *desired, r *rand.Rand) string {
	return d.place(r, func(p *place) {
		p.of = slices.Clone(p.of)
		i := r.IntN(len(p.of))
		if name, mistyped := strings.CutSuffix(p.of[i], typo); mistyped {
			p.of[i] = name
			return
		}
		p.of[i] += typo
		d.mistyped = true
	})
}
