package work

import (
	"fmt"
	"testing"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// BenchmarkFor renders a thousand placements for a hundred of a thousand clusters each. None,
// one tenth, or all of the placements have overrides.
func BenchmarkFor(b *testing.B) {
	clusters := make([]placement.Cluster, 1000)
	for i := range clusters {
		env := []string{"prod", "dev", "test"}[i%3]
		clusters[i] = placement.Cluster{Name: fmt.Sprintf("cluster-%04d", i), Labels: map[string]string{"env": env, "region": fmt.Sprint("r", i%7)}}
	}
	labelled := patching("by-label", map[string]string{"env": "prod"}, `"${MEMBER-CLUSTER-LABEL-KEY-region}"`)
	for _, bench := range []struct {
		name  string
		every int // every n-th placement has an override; 0 for none
		named bool
	}{{"no overrides", 0, false}, {"a tenth overridden by label", 10, false}, {"all overridden by label", 1, false}, {"a tenth overridden by name", 10, true}} {
		override := labelled
		if bench.named {
			override = patching("by-name", nil, `"${MEMBER-CLUSTER-NAME}"`)
		}
		fleet := func() []*Renderer {
			rs := make([]*Renderer, 1000)
			for i := range rs {
				var ros []*api.ResourceOverride
				if bench.every > 0 && i%bench.every == 0 {
					ros = append(ros, override)
				}
				rs[i] = NewRenderer(api.PlacementKey{Name: fmt.Sprint("p", i)}, benchObjects, nil, ros, scopes)
			}
			return rs
		}
		turn := func(rs []*Renderer) {
			for i, r := range rs {
				for j := range 100 {
					if _, err := r.For(clusters[(i*7+j*10)%len(clusters)]); err != nil {
						b.Fatal(err)
					}
				}
			}
		}
		b.Run(bench.name+"/first turn", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				turn(fleet())
			}
		})
		b.Run(bench.name+"/next turn", func(b *testing.B) {
			rs := fleet()
			turn(rs)
			b.ReportAllocs()
			for b.Loop() {
				turn(rs)
			}
		})
	}
}

var benchObjects = objects(panics{}, app)

// panics is a fataler for values that are created before any test runs.
type panics struct{}

func (panics) Helper()                      {}
func (panics) Fatal(args ...any)            { panic(fmt.Sprint(args...)) }
func (panics) Fatalf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }
