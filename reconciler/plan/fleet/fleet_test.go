package fleet

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// A cluster is eligible for new placements once it has answered, until it has been unreachable for
// longer than the grace period. The reason does not change as time passes.
func TestIneligibleReason(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	down := func(ago time.Duration) *ledger.Cluster {
		return &ledger.Cluster{Joined: now.Add(-time.Hour), Since: now.Add(-ago), LastSeen: now.Add(-ago)}
	}
	denied := protocol.ClusterSeen{Forbidden: []string{"list pods"}}
	for name, test := range map[string]struct {
		seen *ledger.Cluster
		want string    // what the reason contains; empty if it is eligible
		then time.Time // when that may change
	}{
		"unknown":                           {nil, "it has not answered yet", time.Time{}},
		"never joined":                      {&ledger.Cluster{}, "it has not answered yet", time.Time{}},
		"healthy":                           {&ledger.Cluster{ClusterSeen: protocol.ClusterSeen{Healthy: true}, Joined: now.Add(-time.Hour)}, "", time.Time{}},
		"healthy, some permissions missing": {&ledger.Cluster{ClusterSeen: protocol.ClusterSeen{Healthy: true, Forbidden: []string{"list pods"}}, Joined: now.Add(-time.Hour)}, "", time.Time{}},
		"down for a minute":                 {down(time.Minute), "", now.Add(4*time.Minute + time.Second)},
		"down for the whole grace period":   {down(UnreachableGrace), "", now.Add(time.Second)},
		"never joined, and denied":          {&ledger.Cluster{ClusterSeen: denied}, "permissions are missing: list pods: grant them to the user whose credentials gitfleet uses there", time.Time{}},
		"denied for longer than that":       {&ledger.Cluster{ClusterSeen: denied, Joined: now.Add(-time.Hour), Since: now.Add(-time.Hour)}, "permissions are missing: list pods: grant them to the user whose credentials gitfleet uses there", time.Time{}},
		"down for longer than that":         {down(UnreachableGrace + time.Second), "no recent heartbeat signals (last received at 2026-03-01T11:54:59Z)", time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, kind, then := ineligibleReason(test.seen, now)
			if (got == "") != (test.want == "") || !strings.HasSuffix(got, test.want) || !then.Equal(test.then) {
				t.Errorf("%q until %s", got, then)
			}
			if before, _, timed := strings.Cut(got, " (last received"); timed && kind != before || !timed && kind != "" {
				t.Errorf("%q is of the kind %q", got, kind)
			}
		})
	}
}

// Observed properties are valid for propertyMaxAge. After that they are unknown; declared ones
// stay.
func TestStaleProperties(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	declared := &hub.Cluster{MemberCluster: &api.MemberCluster{ObjectMeta: metav1.ObjectMeta{
		Name: "east", Annotations: map[string]string{api.PropertyAnnotationPrefix + "price": "3", api.PropertyAnnotationPrefix + "size": "9"},
	}}}
	for name, test := range map[string]struct {
		age   time.Duration
		stale bool
		nodes string
	}{
		"fresh":        {time.Minute, false, "5"},
		"at the limit": {propertyMaxAge, false, "5"},
		"too old":      {propertyMaxAge + time.Second, true, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			seen := &ledger.Cluster{Observed: now.Add(-test.age), ClusterSeen: protocol.ClusterSeen{
				Properties: map[string]string{"nodes": "5", "size": "1"}, Namespaces: []string{"web"},
			}}
			if Stale(seen, now) != test.stale || StaleFrom(seen).Before(now) != test.stale {
				t.Errorf("stale: %t, from %s", Stale(seen, now), StaleFrom(seen))
			}
			c := Cluster(declared, withoutStale(seen, now))
			nodes, price, size := c.Properties["nodes"], c.Properties["price"], c.Properties["size"]
			if nodes.String() != test.nodes || price.String() != "3" || size.String() != "9" {
				t.Errorf("properties: %v", c.Properties)
			}
			if (c.Namespaces == nil) != test.stale || !test.stale && !slices.Contains(c.Namespaces, "web") {
				t.Errorf("namespaces: %v", c.Namespaces)
			}
			if len(seen.Properties) != 2 || len(seen.Namespaces) != 1 {
				t.Error("the ledger is changed")
			}
		})
	}
	if Stale(nil, now) || withoutStale(nil, now) != nil {
		t.Error("a cluster that was never seen is stale")
	}
}

// A change of a cluster affects all placements, those whose policies use properties, ResourcePlacements, or only those that hold
// the cluster.
func TestMembersUpdate(t *testing.T) {
	seen := func(name string, change func(*protocol.ClusterSeen)) protocol.ClusterSeen {
		o := protocol.ClusterSeen{Cluster: name, At: noon.Add(time.Minute), Healthy: true, Properties: map[string]string{"size": "1"}, Namespaces: []string{"web"}}
		change(&o)
		return o
	}
	member := func(name string, change ...func(*api.MemberCluster)) *hub.Cluster {
		c := &api.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, change := range change {
			change(c)
		}
		return &hub.Cluster{MemberCluster: c}
	}
	eu := func(c *api.MemberCluster) { c.Labels = map[string]string{"region": "eu"} }
	tainted := func(c *api.MemberCluster) { c.Spec.Taints = []api.Taint{{Key: "name", Value: "east"}} }
	base := []*hub.Cluster{member("east"), member("west")}
	for name, test := range map[string]struct {
		declared []*hub.Cluster
		seen     func(*protocol.ClusterSeen) // of east; nil for no probe
		after    time.Duration
		versions string // those that change
		changed  string
	}{
		"nothing":              {base, nil, time.Minute, "", ""},
		"the same probe":       {base, func(*protocol.ClusterSeen) {}, time.Minute, "", ""},
		"a property":           {base, func(o *protocol.ClusterSeen) { o.Properties = map[string]string{"size": "2"} }, time.Minute, "properties", ""},
		"a property's form":    {base, func(o *protocol.ClusterSeen) { o.Properties = map[string]string{"size": "1000m"} }, time.Minute, "", ""},
		"a malformed property": {base, func(o *protocol.ClusterSeen) { o.Properties = map[string]string{"size": "large"} }, time.Minute, "properties", ""},
		"a namespace":          {base, func(o *protocol.ClusterSeen) { o.Namespaces = []string{"api", "web"} }, time.Minute, "namespaces", ""},
		"an outage":            {base, func(o *protocol.ClusterSeen) { o.Healthy, o.Error = false, "no answer" }, time.Minute, "", "east"},
		"a long outage":        {base, func(o *protocol.ClusterSeen) { o.Healthy, o.Error = false, "no answer" }, time.Hour, "other properties namespaces", "east"},
		"a label":              {[]*hub.Cluster{member("east", eu), base[1]}, nil, time.Minute, "other", ""},
		"a taint":              {[]*hub.Cluster{member("east", tainted), base[1]}, nil, time.Minute, "other", ""},
		"another commit":       {[]*hub.Cluster{member("east"), member("west")}, nil, time.Minute, "", ""},
		"a new cluster":        {[]*hub.Cluster{base[0], member("north"), base[1]}, nil, time.Minute, "other properties namespaces", "east west"},
		"a removed cluster":    {base[:1], nil, time.Minute, "other properties namespaces", "east"},
		"stale properties":     {base, nil, time.Hour, "properties namespaces", ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := ledger.New()
			for _, c := range []string{"east", "west"} {
				o := seen(c, func(*protocol.ClusterSeen) {})
				o.At = noon
				l.Fold(o)
			}
			var m Members
			m.Update(Input{Declared: base, Ledger: l, Now: noon})
			was := m
			if test.seen != nil {
				l.Fold(seen("east", test.seen))
			}
			m.Update(Input{Declared: test.declared, Ledger: l, Now: noon.Add(test.after)})
			var versions []string
			for _, v := range []struct {
				of       string
				was, now uint64
			}{{"other", was.Version, m.Version}, {"properties", was.PropertiesVersion, m.PropertiesVersion}, {"namespaces", was.NamespacesVersion, m.NamespacesVersion}} {
				if v.was != v.now {
					versions = append(versions, v.of)
				}
			}
			if got := strings.Join(versions, " "); got != test.versions {
				t.Errorf("the versions %q change, want %q", got, test.versions)
			}
			if got := strings.Join(m.Changed, " "); got != test.changed {
				t.Errorf("the clusters %q have changed, want %q", got, test.changed)
			}
			if same := ledger.Identical(m.List, was.List); same != (test.versions == "") {
				t.Errorf("the list is the same: %t", same)
			}
			if len(was.List) != 2 || was.List[0].Properties["size"] != resource.MustParse("1") {
				t.Errorf("the earlier list has become %v", was.List)
			}
		})
	}
}

// Members that are updated after each change are those that are computed from the ledger alone, whatever happens.
func TestMembersAreThoseFromScratch(t *testing.T) {
	var declared []*hub.Cluster
	for _, name := range []string{"east", "north", "west"} {
		declared = append(declared, &hub.Cluster{MemberCluster: &api.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}})
	}
	rapid.Check(t, func(t *rapid.T) {
		l, now := ledger.New(), noon
		var m Members
		in := Input{Declared: declared, Ledger: l}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			name := rapid.SampledFrom([]string{"east", "north", "west"}).Draw(t, "cluster")
			cordon := ledger.Subject{Cluster: name, Effect: ledger.Cordons}
			switch rapid.SampledFrom([]string{"seen", "seen", "seen", "cordon", "uncordon", "forget", "commit", "rebase", "undo", "nothing"}).Draw(t, "step") {
			case "seen":
				o := protocol.ClusterSeen{Cluster: name, At: now, Healthy: rapid.Bool().Draw(t, "healthy"), UID: rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "UID")}
				if o.Healthy {
					o.Properties = map[string]string{"size": rapid.SampledFrom([]string{"1", "2"}).Draw(t, "size")}
				}
				l.Fold(o)
			case "cordon":
				l.Suspend(ledger.Suspension{Subject: cordon, Until: now.Add(rapid.SampledFrom([]time.Duration{time.Minute, time.Hour}).Draw(t, "for"))})
			case "uncordon":
				l.Resume(cordon, now)
			case "forget":
				l.ForgetCluster(name)
			case "commit":
				in.Declared = slices.Clone(declared[:rapid.IntRange(1, 3).Draw(t, "members")])
			case "rebase":
				l.Rebase(now)
			case "undo":
				undo := l.Checkpoint()
				l.ForgetCluster(name)
				m.Update(in)
				undo()
			}
			now = now.Add(rapid.SampledFrom([]time.Duration{0, time.Second, UnreachableGrace, propertyMaxAge}).Draw(t, "then"))
			in.Now = now
			var scratch Members
			wake, want := m.Update(in), scratch.Update(in)
			if !wake.Equal(want) || !slices.Equal(m.sources, scratch.sources) || !slices.Equal(m.Left, scratch.Left) {
				t.Fatalf("%+v without %v until %s, want %+v without %v until %s", m.sources, m.Left, wake, scratch.sources, scratch.Left, want)
			}
			for i := range scratch.List {
				if diffClusters(&m.List[i], &scratch.List[i]) != (clusterDifference{}) {
					t.Fatalf("%+v, want %+v", m.List[i], scratch.List[i])
				}
			}
		}
	})
}

// Every field of a cluster that the scheduler uses is compared, properties and namespaces apart from the others.
func TestDiffClusters(t *testing.T) {
	changes := map[string]struct {
		change func(*placement.Cluster)
		want   clusterDifference
	}{
		"Name":   {func(c *placement.Cluster) { c.Name = "west" }, clusterDifference{other: true}},
		"Labels": {func(c *placement.Cluster) { c.Labels = map[string]string{"region": "eu"} }, clusterDifference{other: true}},
		"Taints": {func(c *placement.Cluster) { c.Taints = []api.Taint{{Key: "gpu"}} }, clusterDifference{other: true}},
		"Properties": {func(c *placement.Cluster) {
			c.Properties = map[string]resource.Quantity{"size": resource.MustParse("1")}
		}, clusterDifference{properties: true}},
		"Malformed":         {func(c *placement.Cluster) { c.Malformed = map[string]string{"size": "large"} }, clusterDifference{properties: true}},
		"Namespaces":        {func(c *placement.Cluster) { c.Namespaces = []string{} }, clusterDifference{namespaces: true}},
		"NamespacesUnknown": {func(c *placement.Cluster) { c.NamespacesUnknown = true }, clusterDifference{namespaces: true}},
		"Ineligible":        {func(c *placement.Cluster) { c.Ineligible = "no recent heartbeat" }, clusterDifference{other: true}},
		"IneligibleKind":    {func(c *placement.Cluster) { c.IneligibleKind = "no recent heartbeat" }, clusterDifference{other: true}},
	}
	for i := range reflect.TypeFor[placement.Cluster]().NumField() {
		name := reflect.TypeFor[placement.Cluster]().Field(i).Name
		test, known := changes[name]
		if !known {
			t.Errorf("%s is not compared", name)
			continue
		}
		var a, b placement.Cluster
		test.change(&a)
		if got := diffClusters(&a, &b); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
		if diffClusters(&a, &a) != (clusterDifference{}) {
			t.Errorf("%s differs from itself", name)
		}
	}
}
