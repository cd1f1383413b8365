package hub

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"testing"
	"time"
)

// overlayFleet has 1,000 kustomizations: 250 apps, each with a base and an overlay for each of three environments. Without
// clusters the overlays are built as the roots of the hub that they are; otherwise a ClusterOverlay for each app has
// them built for these clusters.
func overlayFleet(clusters int) map[string]string {
	files := map[string]string{}
	envs := []string{"dev", "prod", "staging"}
	for i := range 250 {
		app := fmt.Sprintf("apps/app-%03d", i)
		files[app+"/base/kustomization.yaml"] = "resources: [deployment.yaml, service.yaml]\n"
		files[app+"/base/deployment.yaml"] = manifest(i, 0)
		files[app+"/base/service.yaml"] = fmt.Sprintf("{apiVersion: v1, kind: Service, metadata: {name: app}, spec: {selector: {app.kubernetes.io/name: object-%05d}, ports: [{port: 80}]}}\n", i)
		for _, env := range envs {
			files[app+"/overlays/"+env+"/kustomization.yaml"] = fmt.Sprintf("resources: [../../base]\nnamespace: app-%03d-%s\npatches:\n- target: {kind: Deployment}\n  patch: '[{\"op\": \"replace\", \"path\": \"/spec/replicas\", \"value\": %d}]'\n", i, env, len(env))
		}
		if clusters > 0 {
			files[fmt.Sprintf("fleet/app-%03d.yaml", i)] = fmt.Sprintf("{apiVersion: gitfleet.dev/v1alpha1, kind: ClusterOverlay, metadata: {name: app-%03d}, spec: {path: 'apps/app-%03d/overlays/${cluster.labels.env}'}}\n", i, i)
		}
	}
	for i := range clusters {
		files[fmt.Sprintf("fleet/cluster-%02d.yaml", i)] = fmt.Sprintf("{apiVersion: cluster.kubernetes-fleet.io/v1beta1, kind: MemberCluster, metadata: {name: c%d, labels: {env: %s}}}\n", i, envs[i%3])
	}
	return files
}

// BenchmarkOverlays loads a fleet with overlays for 30 clusters, and the same kustomizations as roots of the hub, in turn, so that
// other load on the machine affects both alike; and commits that change one overlay.
func BenchmarkOverlays(b *testing.B) {
	fleet := overlayFleet(30)
	b.Run("cold", func(b *testing.B) {
		overlays, roots := newMemoryTree(fleet), newMemoryTree(overlayFleet(0))
		times := map[*memoryTree][]time.Duration{}
		for b.Loop() {
			for range 3 {
				for _, tree := range []*memoryTree{overlays, roots} {
					runtime.GC()
					start := time.Now()
					s, err := NewLoader(Options{}).Load(Commit{}, tree)
					if err != nil {
						b.Fatal(err)
					}
					times[tree] = append(times[tree], time.Since(start))
					if len(s.Warnings.Failures()) > 0 {
						b.Fatal(s.Warnings.Failures()[0])
					}
				}
			}
		}
		for name, tree := range map[string]*memoryTree{"overlays-ns": overlays, "roots-ns": roots} {
			slices.Sort(times[tree])
			b.ReportMetric(float64(times[tree][len(times[tree])/2]), name)
		}
	})
	b.Run("change", func(b *testing.B) {
		changed := maps.Clone(fleet)
		changed["apps/app-100/overlays/prod/kustomization.yaml"] += "commonAnnotations: {a: b}\n"
		trees := []*memoryTree{newMemoryTree(fleet), newMemoryTree(changed)}
		l := NewLoader(Options{})
		if _, err := l.Load(Commit{}, trees[1]); err != nil {
			b.Fatal(err)
		}
		for i := 0; b.Loop(); i++ {
			for key := range l.cache { // the overlay has to be built each time
				if key.build && key.path == "apps/app-100/overlays/prod/kustomization.yaml" {
					delete(l.cache, key)
				}
			}
			if _, err := l.Load(Commit{}, trees[i%2]); err != nil {
				b.Fatal(err)
			}
		}
	})
}
