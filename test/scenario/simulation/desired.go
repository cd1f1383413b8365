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
	// configMaps are the values of the ConfigMaps of each namespace, by name. Those of some namespaces are of other kinds;
	// see managedKinds. parts says that their manifests have parts that depend on the value.
	configMaps map[string]map[string]string
	parts      bool
	placements map[string]placementSpec
	overrides  map[api.ID]override
	unreadable bool
	// withoutTrailer says that the commit does not allow held deletions, mistyped that it has a
	// typo that has not been corrected.
	withoutTrailer, mistyped bool
	// staged is what it says about staged update runs; nil in other fleets.
	staged *stagedSpec
}

// A cluster is a MemberCluster.
type cluster struct {
	region  string
	tainted bool
	// context leads to the host of that name; empty for the one with the name of the member.
	context string
}

// A placementSpec is a ClusterResourcePlacement.
type placementSpec struct {
	namespaces               []string // that it selects
	clusterNames             []string // PickFixed, if there are any
	numberOfClusters         int      // PickN, if it is not negative
	region                   string   // only clusters of that region
	maxUnavailable, maxSurge string   // of the strategy; empty if not set
	unavailablePeriod        int      // unavailablePeriodSeconds
	reportDiff               bool     // ReportDiff
	abandon                  bool
	continueOnFailure        bool   // the failure policy
	invalid                  bool   // it selects objects that this fleet does not serve
	external                 bool   // it is rolled out by staged update runs
	strategy                 string // of a run for every content; empty for none
	queues                   bool   // newer content waits for the end of a run
}

// An override gives an object another value on clusters of a region.
type override struct{ value, region string }

func (d *desired) clone() *desired {
	out := &desired{
		clusters: maps.Clone(d.clusters), configMaps: make(map[string]map[string]string, len(d.configMaps)),
		placements: maps.Clone(d.placements), overrides: maps.Clone(d.overrides), parts: d.parts, staged: d.staged.clone(),
	}
	for name, values := range d.configMaps {
		out.configMaps[name] = maps.Clone(values)
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
	for _, space := range slices.Sorted(maps.Keys(d.configMaps)) {
		fmt.Fprintf(&b, "namespace %s\n", space)
		for _, name := range slices.Sorted(maps.Keys(d.configMaps[space])) {
			fmt.Fprintf(&b, "configmap %s/%s %s\n", space, name, d.configMaps[space][name])
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(d.overrides), api.ID.Compare) {
		fmt.Fprintf(&b, "override %s/%s to %s on %s\n", id.Namespace, id.Name, d.overrides[id].value, d.overrides[id].region)
	}
	if d.anyInvalid() {
		b.WriteString("widget lab/one\n")
	}
	for _, name := range slices.Sorted(maps.Keys(d.placements)) {
		fmt.Fprintf(&b, "place %s%s\n", name, d.placements[name].text())
	}
	b.WriteString(d.staged.text())
	return b.String()
}

// anyInvalid reports whether a placement selects objects that this fleet does not serve.
func (d *desired) anyInvalid() bool {
	for _, p := range d.placements {
		if p.invalid {
			return true
		}
	}
	return false
}

func (p placementSpec) text() string {
	var b strings.Builder
	say := func(yes bool, format string, args ...any) {
		if yes {
			fmt.Fprintf(&b, format, args...)
		}
	}
	say(true, " of %s", strings.Join(p.namespaces, ","))
	say(len(p.clusterNames) > 0, " on %s", strings.Join(p.clusterNames, ","))
	say(p.numberOfClusters >= 0, " pick %d", p.numberOfClusters)
	say(p.region != "", " near %s", p.region)
	say(p.maxUnavailable != "", " unavailable %s", p.maxUnavailable)
	say(p.maxSurge != "", " surge %s", p.maxSurge)
	say(p.unavailablePeriod != 60, " period %d", p.unavailablePeriod)
	say(p.reportDiff, " report")
	say(p.abandon, " abandon")
	say(p.continueOnFailure, " goes-on")
	say(p.invalid, " broken")
	say(p.external, " external")
	say(p.strategy != "", " staged %s", p.strategy)
	say(p.strategy != "" && p.queues, " queue")
	return b.String()
}

// files returns the files of the commit.
func (d *desired) files(t testing.TB) fstest.MapFS {
	out := hubs.Files(t, d.text())
	d.putManaged(out)
	d.putContexts(out)
	if d.unreadable {
		out["broken.yaml"] = &fstest.MapFile{Data: []byte("kind: [\n")}
	}
	return out
}

// content returns the objects of a placement on a cluster, by ID, with their values; nil if
// there is no such placement.
func (d *desired) content(name, on string) map[api.ID]string {
	p, ok := d.placements[name]
	if !ok {
		return nil
	}
	out := map[api.ID]string{}
	for _, space := range p.namespaces {
		values, ok := d.configMaps[space]
		if !ok {
			continue
		}
		out[namespaceID(space)] = ""
		for name, value := range values {
			id := objectID(space, name)
			if o, ok := d.overrides[id]; ok && o.region == d.clusters[on].region {
				value = o.value
			}
			out[id] = value
		}
	}
	return out
}

// unmatched returns the selected namespaces of a placement that the commit does not have.
func (d *desired) unmatched(name string) []string {
	return slices.DeleteFunc(slices.Clone(d.placements[name].namespaces), func(space string) bool {
		_, exists := d.configMaps[space]
		return exists
	})
}

func namespaceID(name string) api.ID { return api.ID{Kind: "Namespace", Name: name} }

func objectID(space, name string) api.ID {
	if k, managed := managedKinds[space]; managed {
		return api.ID{Group: k.Group, Kind: k.Kind, Namespace: space, Name: name}
	}
	return api.ID{Kind: "ConfigMap", Namespace: space, Name: name}
}

func title(id api.ID) string {
	return id.Kind + " " + strings.TrimPrefix(id.Namespace+"/"+id.Name, "/")
}

// The values of ConfigMaps begin with their health.
const (
	good    = "good"    // available at once
	slow    = "slow"    // after half a minute
	loose   = "loose"   // without a health check
	bad     = "bad"     // never available
	refused = "refused" // the API server refuses it
)

func kindOf(value string) string {
	kind, _, _ := strings.Cut(value, "-")
	return kind
}
