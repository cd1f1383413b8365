package placement_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// bigFleet returns a fleet with 12 regions, 60 zones, a unique label for each cluster, and two
// properties with different values.
func bigFleet(n int) fleet {
	f := make(fleet, n)
	for i := range f {
		f[i] = placement.Cluster{
			Name: fmt.Sprintf("cluster-%05d", i),
			Labels: map[string]string{
				"region": fmt.Sprintf("r%d", i%12), "zone": fmt.Sprintf("z%d", i%60), "rack": fmt.Sprintf("k%d", i),
				"env": []string{"prod", "prod", "canary", "test"}[i%4], "tenth": fmt.Sprint(i % 10),
			},
			Properties: map[string]resource.Quantity{
				"nodes":               *resource.NewQuantity(int64(i*7%50), resource.DecimalSI),
				res + "available-cpu": *resource.NewMilliQuantity(int64(i*137%90000), resource.DecimalSI),
			},
		}
		if i%50 == 0 {
			f[i].Ineligible = "cluster is ill"
		}
		if i%20 == 0 {
			f[i].Taints = []api.Taint{{Key: "k", Value: "v", Effect: api.NoSchedule}}
		}
	}
	return f
}

// mixed returns policies of a typical fleet. Each selects about a hundred of a thousand
// clusters.
func mixed(i int) *api.PlacementPolicy {
	n := int32(100)
	switch i % 5 {
	case 0:
		return pickAll(require(fmt.Sprintf("tenth=%d", i%10)))
	case 1:
		p := policy(api.PickFixed)
		for j := range 100 {
			p.ClusterNames = append(p.ClusterNames, fmt.Sprintf("cluster-%05d", (i+j*7)%1000))
		}
		return p
	case 2:
		return pickN(n, require("env in (prod,canary); nodes Ge 10"), sortBy(100, "", "nodes", api.Descending),
			sortBy(50, "env=prod", res+"available-cpu", api.Ascending))
	case 3:
		return pickN(n, prefer(int32(i%100), "env=prod"), spreadHard("region", 1))
	}
	return pickN(n, require("env notin (test)"), spreadHard("region", 2), spreadSoft("zone", 1))
}

// BenchmarkScheduleAll schedules all placements from scratch; the goal for 1,000 clusters and
// 1,000 placements is 5 s on one core.
func BenchmarkScheduleAll(b *testing.B) {
	for _, size := range []struct{ clusters, placements int }{{250, 1000}, {500, 1000}, {1000, 250}, {1000, 500}, {1000, 1000}} {
		b.Run(fmt.Sprintf("clusters=%d/placements=%d", size.clusters, size.placements), func(b *testing.B) {
			f := bigFleet(size.clusters)
			requests := make([]placement.Request, size.placements)
			for i := range requests {
				requests[i] = placement.Request{Key: api.PlacementKey{Name: fmt.Sprintf("p%d", i)}, Policy: mixed(i), Clusters: f}
			}
			b.ReportAllocs()
			for b.Loop() {
				for _, r := range requests {
					placement.Schedule(r)
				}
			}
		})
	}
}

// BenchmarkScheduleOne schedules one placement, new and already scheduled; the goal is 20 ms.
func BenchmarkScheduleOne(b *testing.B) {
	f := bigFleet(1000)
	for i, name := range []string{"PickAll", "PickFixed", "PickN", "PickN,1 constraint", "PickN,2 constraints"} {
		r := placement.Request{Key: crp, Policy: mixed(i), Clusters: f}
		b.Run(name+"/new", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				placement.Schedule(r)
			}
		})
		r.Bindings = placement.Schedule(r).Bindings
		b.Run(name+"/settled", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				placement.Schedule(r)
			}
		})
	}
}

// BenchmarkSpread schedules one PickN with two spread constraints; the goal for 10,000 clusters
// is 500 ms. In the worst case every cluster is a domain of its own.
func BenchmarkSpread(b *testing.B) {
	for name, parts := range map[string][]part{
		"regions and zones": {spreadHard("region", 1), spreadSoft("zone", 1)},
		"regions and racks": {spreadHard("region", 1), spreadHard("rack", 1)},
	} {
		for _, size := range []struct {
			clusters int
			n        int32
		}{{1000, 100}, {3000, 100}, {10000, 100}, {10000, 1000}} {
			b.Run(fmt.Sprintf("%s/clusters=%d/n=%d", name, size.clusters, size.n), func(b *testing.B) {
				r := placement.Request{Key: crp, Policy: pickN(size.n, parts...), Clusters: bigFleet(size.clusters)}
				b.ReportAllocs()
				for b.Loop() {
					placement.Schedule(r)
				}
			})
		}
	}
}

// BenchmarkSelect selects the objects of a thousand placements from a repository; the goal is 1
// s.
func BenchmarkSelect(b *testing.B) {
	for _, size := range []int{2500, 5000, 10000} {
		hub := make([]*api.Object, 0, size)
		for i := range size / 10 {
			hub = append(hub, objects(fmt.Sprintf("Namespace n%d team=t%d\nDeployment n%d/d\nService n%d/s\nConfigMap n%d/a\nConfigMap n%d/b\n"+
				"Secret n%d/s\nClusterRole c%d team=t%d\nClusterRole e%d\nCustomResourceDefinition w%d.example.com", i, i%50, i, i, i, i, i, i, i%50, i, i))...)
		}
		b.Run(fmt.Sprintf("NewIndex/objects=%d", size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				placement.NewIndex(hub)
			}
		})
		b.Run(fmt.Sprintf("Select/placements=1000/objects=%d", size), func(b *testing.B) {
			x := placement.NewIndex(hub)
			terms := make([]placement.Terms, 1000)
			for i := range terms {
				text := []string{
					fmt.Sprintf("Namespace n%d; ClusterRole (team=t%d)", i%(size/10), i%50),
					fmt.Sprintf("Namespace (team=t%d)", i%50),
					fmt.Sprintf("Namespace n%d NamespaceWithResourceSelectors; ConfigMap; Secret s", i%(size/10)),
				}[i%3]
				terms[i] = placement.Terms{Key: crp, Scope: scope, Spec: &api.PlacementSpec{ResourceSelectors: selectors(text)}}
			}
			b.ReportAllocs()
			for b.Loop() {
				for _, t := range terms {
					placement.Select(t, x)
				}
			}
		})
	}
}
