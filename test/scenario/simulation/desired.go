package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gitfleet/gitfleet/placement/api"
	hubs "github.com/gitfleet/gitfleet/test/world"
)

// A desired is the content of a commit as the simulation understands it, independent of the
// product. It is immutable once it was pushed.
type desired struct {
	clusters map[string]cluster
	// spaces are the values of the ConfigMaps of each namespace, by name.
	spaces     map[string]map[string]string
	places     map[string]place
	overrides  map[api.ID]override
	unreadable bool
	// silent says that the commit does not allow deletions that would be held, mistyped that it
	// has a typo that has not been corrected.
	silent, mistyped bool
}

// A cluster is a MemberCluster.
type cluster struct {
	region  string
	tainted bool
}

// A place is a ClusterResourcePlacement.
type place struct {
	of                 []string // namespaces
	on                 []string // PickFixed, if there are any
	pick               int      // PickN, if it is not negative
	near               string   // only clusters of that region
	unavailable, surge string   // of the strategy; empty if not given
	period             int      // in seconds
	report             bool     // ReportDiff
	abandon            bool
	goesOn             bool // whatever fails
	invalid            bool // it cannot be carried out in this fleet
}

// An override gives an object another value on clusters of a region.
type override struct{ value, region string }

func (d *desired) clone() *desired {
	out := &desired{
		clusters: maps.Clone(d.clusters), spaces: make(map[string]map[string]string, len(d.spaces)),
		places: maps.Clone(d.places), overrides: maps.Clone(d.overrides),
	}
	for name, values := range d.spaces {
		out.spaces[name] = maps.Clone(values)
	}
	return out
}

// text returns the commit in the format of package test/world, sorted.
func (d *desired) text() string {
	var b strings.Builder
	b.WriteString("clusters")
	for _, name := range slices.Sorted(maps.Keys(d.clusters)) {
		c := d.clusters[name]
		fmt.Fprintf(&b, " %s/region=%s", name, c.region)
		if c.tainted {
			b.WriteString("!")
		}
	}
	b.WriteString("\n")
	for _, space := range slices.Sorted(maps.Keys(d.spaces)) {
		fmt.Fprintf(&b, "namespace %s\n", space)
		for _, name := range slices.Sorted(maps.Keys(d.spaces[space])) {
			fmt.Fprintf(&b, "configmap %s/%s %s\n", space, name, d.spaces[space][name])
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(d.overrides), api.ID.Compare) {
		fmt.Fprintf(&b, "override %s/%s to %s on %s\n", id.Namespace, id.Name, d.overrides[id].value, d.overrides[id].region)
	}
	if d.anyInvalid() {
		b.WriteString("widget lab/one\n")
	}
	for _, name := range slices.Sorted(maps.Keys(d.places)) {
		fmt.Fprintf(&b, "place %s%s\n", name, d.places[name].text())
	}
	return b.String()
}

// anyInvalid reports whether a placement selects objects that this fleet cannot have.
func (d *desired) anyInvalid() bool {
	for _, p := range d.places {
		if p.invalid {
			return true
		}
	}
	return false
}

func (p place) text() string {
	var b strings.Builder
	say := func(yes bool, format string, args ...any) {
		if yes {
			fmt.Fprintf(&b, format, args...)
		}
	}
	say(true, " of %s", strings.Join(p.of, ","))
	say(len(p.on) > 0, " on %s", strings.Join(p.on, ","))
	say(p.pick >= 0, " pick %d", p.pick)
	say(p.near != "", " near %s", p.near)
	say(p.unavailable != "", " unavailable %s", p.unavailable)
	say(p.surge != "", " surge %s", p.surge)
	say(p.period != 60, " period %d", p.period)
	say(p.report, " report")
	say(p.abandon, " abandon")
	say(p.goesOn, " goes-on")
	say(p.invalid, " broken")
	return b.String()
}

// files are those of the commit.
func (d *desired) files(t testing.TB) fstest.MapFS {
	out := hubs.Files(t, d.text())
	if d.unreadable {
		out["broken.yaml"] = &fstest.MapFile{Data: []byte("kind: [\n")}
	}
	return out
}

// gives returns the objects that a placement gives a cluster, by ID, with their values; nil if
// there is no such placement.
func (d *desired) gives(name, on string) map[api.ID]string {
	p, ok := d.places[name]
	if !ok {
		return nil
	}
	out := map[api.ID]string{}
	for _, space := range p.of {
		values, ok := d.spaces[space]
		if !ok {
			continue
		}
		out[namespaceID(space)] = ""
		for name, value := range values {
			id := configMapID(space, name)
			if o, ok := d.overrides[id]; ok && o.region == d.clusters[on].region {
				value = o.value
			}
			out[id] = value
		}
	}
	return out
}

// unmatched returns the namespaces that a placement names and the commit does not have.
func (d *desired) unmatched(name string) []string {
	return slices.DeleteFunc(slices.Clone(d.places[name].of), func(space string) bool {
		_, exists := d.spaces[space]
		return exists
	})
}

func namespaceID(name string) api.ID { return api.ID{Kind: "Namespace", Name: name} }

func configMapID(space, name string) api.ID {
	return api.ID{Kind: "ConfigMap", Namespace: space, Name: name}
}

func title(id api.ID) string {
	return id.Kind + " " + strings.TrimPrefix(id.Namespace+"/"+id.Name, "/")
}

// Values of ConfigMaps begin with how the object turns out.
const (
	good    = "good"    // available at once
	slow    = "slow"    // after half a minute
	loose   = "loose"   // nobody can tell
	bad     = "bad"     // never available
	refused = "refused" // the API server does not take it
)

func kindOf(value string) string {
	kind, _, _ := strings.Cut(value, "-")
	return kind
}
