package plan

import (
	"fmt"
	"runtime"
	"testing"
	"testing/fstest"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// large returns a fleet of many clusters in groups of a hundred, with placements of mixed
// policies on a hundred clusters each.
func large(b testing.TB, clusters, placements int) Input {
	b.Helper()
	files := fstest.MapFS{}
	for i := range clusters {
		name := fmt.Sprintf("c%04d", i)
		files["clusters/"+name+".yaml"] = &fstest.MapFile{Data: fmt.Appendf(nil,
			"{apiVersion: cluster.kubernetes-fleet.io/v1beta1, kind: MemberCluster, metadata: {name: %s, labels: {group: g%d, zone: z%d}}, spec: {identity: {kind: User, name: fleet}}}\n", name, i/100, i%5)}
	}
	for i := range placements {
		name := fmt.Sprintf("p%04d", i)
		text := fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}\n", name)
		for k := range 5 {
			text += fmt.Sprintf("---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: cm-%d, namespace: %s}, data: {value: a}}\n", k, name)
		}
		text += fmt.Sprintf("---\n{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacement, metadata: {name: %s}, spec: {resourceSelectors: [{group: \"\", version: v1, kind: Namespace, name: %s}], policy: %s}}\n",
			name, name, policy(i, clusters))
		files["placements/"+name+".yaml"] = &fstest.MapFile{Data: []byte(text)}
	}
	head, err := hub.NewLoader(hub.Options{}).Load(hub.Commit{Hash: "head", Time: noon}, files)
	if err != nil {
		b.Fatal(err)
	}
	l := ledger.New()
	for _, c := range head.Clusters {
		l.Fold(protocol.ClusterSeen{Cluster: c.Name, At: noon, Healthy: true, Namespaces: []string{"default"}, Properties: map[string]string{
			"kubernetes-fleet.io/node-count": "3", "resources.kubernetes-fleet.io/total-cpu": "12", "resources.kubernetes-fleet.io/total-memory": "48Gi",
			"resources.kubernetes-fleet.io/allocatable-cpu": "11", "resources.kubernetes-fleet.io/available-cpu": "7500m", "resources.kubernetes-fleet.io/available-memory": "20Gi",
		}})
	}
	return Input{InForce: head, Past: map[string]*hub.Snapshot{"head": head}, Ledger: l, Now: noon, Memo: NewMemo(), ShortDecisions: true}
}

func policy(i, clusters int) string {
	group := fmt.Sprintf("g%d", i%max(clusters/100, 1))
	switch i % 3 {
	case 0:
		return fmt.Sprintf("{placementType: PickAll, affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: [{labelSelector: {matchLabels: {group: %s}}}]}}}}", group)
	case 1:
		return "{placementType: PickN, numberOfClusters: 100, topologySpreadConstraints: [{topologyKey: zone, maxSkew: 2, whenUnsatisfiable: DoNotSchedule}]}"
	}
	return fmt.Sprintf("{placementType: PickN, numberOfClusters: 100, affinity: {clusterAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 50, preference: {labelSelector: {matchLabels: {group: %s}}}}]}}}", group)
}

// settle plans until everything is applied and the plan does not change any more.
func settle(b testing.TB, in *Input) {
	b.Helper()
	for range 20 {
		p := Resolve(*in)
		p.UpdateLedger(in.Ledger)
		in.Now = in.Now.Add(time.Second)
		for cluster, works := range p.Works {
			for _, w := range works {
				in.Ledger.Fold(report(cluster, w, in.Now))
			}
		}
		changed := false
		for pl := range p.Placements.Values() {
			changed = changed || pl.RecordChanged || len(pl.Changed)+len(pl.Unbind) > 0
		}
		if !changed {
			Resolve(*in)
			return
		}
	}
	b.Fatal("the fleet does not settle")
}

// BenchmarkResolveAll plans a thousand clusters and a thousand placements, with only the
// ledger.
func BenchmarkResolveAll(b *testing.B) {
	for _, n := range []int{250, 500, 1000} {
		b.Run(fmt.Sprintf("clusters=%d/placements=%d", n, n), func(b *testing.B) {
			in := large(b, n, n)
			settle(b, &in)
			b.ReportAllocs()
			for b.Loop() {
				in.Memo = NewMemo()
				Resolve(in)
			}
		})
	}
}

// BenchmarkResolveOneReport plans after one member has reported something new about one
// placement.
func BenchmarkResolveOneReport(b *testing.B) {
	in := large(b, 1000, 1000)
	settle(b, &in)
	key := api.PlacementKey{Name: "p0000"}
	cluster := in.Ledger.Placement(key).Entries()[0].Binding.Cluster
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		in.Now = in.Now.Add(time.Millisecond)
		p := Resolve(in)
		w := p.Works[cluster][0]
		o := report(cluster, w, in.Now)
		o.Untrackable = i % 2
		in.Ledger.Fold(o)
	}
}

// BenchmarkResolveOneProbe plans after a probe of one cluster that changes nothing that a
// placement depends on.
func BenchmarkResolveOneProbe(b *testing.B) {
	in := large(b, 1000, 1000)
	settle(b, &in)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		in.Now = in.Now.Add(time.Millisecond)
		Resolve(in)
		in.Ledger.Fold(protocol.ClusterSeen{Cluster: "c0007", At: in.Now, Healthy: true, Properties: map[string]string{
			"resources.kubernetes-fleet.io/available-cpu": fmt.Sprint(i),
		}})
	}
}

// BenchmarkResolveOneLabel plans after a label of one cluster has changed, which affects every
// placement.
func BenchmarkResolveOneLabel(b *testing.B) {
	in := large(b, 1000, 1000)
	settle(b, &in)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		head := *in.InForce
		head.Clusters = append([]*hub.Cluster{}, head.Clusters...)
		one := *head.Clusters[7].MemberCluster
		one.Labels = map[string]string{"group": "g0", "zone": "z2", "turn": fmt.Sprint(i)}
		head.Clusters[7] = &hub.Cluster{MemberCluster: &one, Origin: head.Clusters[7].Origin}
		in.InForce = &head
		in.Now = in.Now.Add(time.Millisecond)
		Resolve(in)
	}
}

// BenchmarkResolveConflict plans a fleet in which two placements want the same hundred objects
// on each of a thousand clusters, after one member has reported something new.
func BenchmarkResolveConflict(b *testing.B) {
	files := fstest.MapFS{}
	text := "{apiVersion: v1, kind: Namespace, metadata: {name: web}}\n"
	for i := range 99 {
		text += fmt.Sprintf("---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: cm-%d, namespace: web}, data: {value: a}}\n", i)
	}
	for _, name := range []string{"one", "two"} {
		text += "---\n{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacement, metadata: {name: " + name + "}, spec: {resourceSelectors: [{group: \"\", version: v1, kind: Namespace, name: web}]}}\n"
	}
	files["web.yaml"] = &fstest.MapFile{Data: []byte(text)}
	l := ledger.New()
	for i := range 1000 {
		name := fmt.Sprintf("c%04d", i)
		files[name+".yaml"] = &fstest.MapFile{Data: fmt.Appendf(nil,
			"{apiVersion: cluster.kubernetes-fleet.io/v1beta1, kind: MemberCluster, metadata: {name: %s}, spec: {identity: {kind: User, name: fleet}}}\n", name)}
		l.Fold(protocol.ClusterSeen{Cluster: name, At: noon, Healthy: true, Properties: map[string]string{}})
	}
	head, err := hub.NewLoader(hub.Options{}).Load(hub.Commit{Hash: "head", Time: noon}, files)
	if err != nil {
		b.Fatal(err)
	}
	in := Input{InForce: head, Past: map[string]*hub.Snapshot{"head": head}, Ledger: l, Now: noon, Memo: NewMemo(), ShortDecisions: true}
	settle(b, &in)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		in.Now = in.Now.Add(time.Millisecond)
		p := Resolve(in)
		o := report("c0000", p.Works["c0000"][0], in.Now)
		o.Untrackable = i % 2
		in.Ledger.Fold(o)
	}
}

// The memory that a turn allocates after one report depends on the reported placement, and
// hardly on the number of others: a list of all takes one pointer for each.
func TestAReportAllocatesOnlyForItsPlacement(t *testing.T) {
	few, many := bytesOfOneReport(t, 30), bytesOfOneReport(t, 300)
	if limit := few + 270*16 + few/10; many > limit {
		t.Errorf("a turn of 300 placements allocates %d bytes, of 30 %d; want at most %d", many, few, limit)
	}
}

// A turn after a report about one cluster allocates little for each of the other clusters of the placement: no plan of them,
// and no work.
func TestAReportAllocatesLittleForOtherClusters(t *testing.T) {
	const others = 99 // of p0000
	if each := bytesOfOneReport(t, 1) / others; each > 700 {
		t.Errorf("a turn allocates %d bytes for each cluster without news, want at most 700", each)
	}
}

// bytesOfOneReport returns the smallest number of bytes that one of several turns allocates.
func bytesOfOneReport(t *testing.T, placements int) uint64 {
	in := large(t, 100, placements)
	settle(t, &in)
	cluster := in.Ledger.Placement(api.PlacementKey{Name: "p0000"}).Entries()[0].Binding.Cluster
	least := ^uint64(0)
	for i := range 10 {
		in.Now = in.Now.Add(time.Millisecond)
		o := report(cluster, Resolve(in).Works[cluster][0], in.Now)
		o.Untrackable = (i + 1) % 2 // every report has news
		in.Ledger.Fold(o)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		Resolve(in)
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}
