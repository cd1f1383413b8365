package migration

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A directory is left out only if no cluster loses objects with it.
func TestNestedDirectoriesAreLeftOutIfNoClusterNeedsThem(t *testing.T) {
	for what, test := range map[string]struct {
		builds   map[string]string // names of objects by directory
		clusters map[string]string // directories by cluster
		twice    map[string]string // clusters by directory
		needed   []string
	}{
		"all objects":           {map[string]string{"a": "x y", "a/b": "x"}, map[string]string{"paris": "a a/b", "oslo": "a a/b"}, map[string]string{"a/b": "[oslo paris]"}, []string{"a"}},
		"some objects":          {map[string]string{"a": "x y", "a/b": "x z"}, map[string]string{"paris": "a a/b"}, map[string]string{"a/b": "[paris]"}, []string{"a", "a/b"}},
		"no objects":            {map[string]string{"a": "x y", "a/b": "z"}, map[string]string{"paris": "a a/b"}, map[string]string{}, []string{"a", "a/b"}},
		"one cluster gets only": {map[string]string{"a": "x y", "a/b": "x"}, map[string]string{"paris": "a a/b", "oslo": "a/b"}, map[string]string{"a/b": "[paris]"}, []string{"a", "a/b"}},
		"more below":            {map[string]string{"a": "x y", "a/b": "x", "a/b/c": "z"}, map[string]string{"paris": "a a/b a/b/c"}, map[string]string{"a/b": "[paris]"}, []string{"a", "a/b", "a/b/c"}},
		"nothing below":         {map[string]string{"a": "x y", "a/b": "x", "a/b/c": ""}, map[string]string{"paris": "a a/b a/b/c"}, map[string]string{"a/b": "[paris]"}, []string{"a"}},
		"in one further above":  {map[string]string{"a": "x y", "a/b": "x z", "a/b/c": "y"}, map[string]string{"paris": "a a/b a/b/c"}, map[string]string{"a/b": "[paris]", "a/b/c": "[paris]"}, []string{"a", "a/b"}},
	} {
		o := &api.BuiltOverlay{Builds: map[string]*api.OverlayBuild{}}
		for dir, names := range test.builds {
			b := &api.OverlayBuild{}
			for _, name := range strings.Fields(names) {
				b.Objects = append(b.Objects, &api.Object{ID: api.ID{Kind: "ConfigMap", Name: name}})
			}
			o.Builds[dir] = b
		}
		n := newNesting(o)
		for _, c := range slices.Sorted(maps.Keys(test.clusters)) {
			n.add(c, strings.Fields(test.clusters[c]))
		}
		twice := map[string]string{}
		for dir, clusters := range n.twice {
			twice[dir] = fmt.Sprint(clusters)
		}
		if needed := slices.Sorted(maps.Keys(n.needed)); !maps.Equal(twice, test.twice) || !slices.Equal(needed, test.needed) {
			t.Errorf("%s: twice %v, want %v; needed %v, want %v", what, twice, test.twice, needed, test.needed)
		}
	}
}

// A repository with more directories that are left out than one overlay may have gets further ones.
func TestOverlaysHaveAsMuchAsTheyMay(t *testing.T) {
	for name, test := range map[string]struct {
		unused int
		parts  []int
	}{
		"none":       {0, []int{20}},
		"exceptions": {45, []int{11, 9}},
	} {
		files, referred := fstest.MapFS{}, "resources:\n"
		addForms := func(app string) {
			for k := range 20 {
				dir := fmt.Sprintf("%s/overlays/prod/part-%02d", app, k)
				write(files, dir+"/kustomization.yaml", "resources: [a.yaml]\n")
				write(files, dir+"/a.yaml", fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s-%d, namespace: shop}}\n", app, k))
				if app != "web" {
					referred += "- ../" + dir + "\n"
				}
			}
		}
		addForms("web")
		for i := range test.unused {
			addForms(fmt.Sprintf("app-%02d", i))
		}
		if test.unused > 0 {
			write(files, "all/kustomization.yaml", referred)
		}
		p, err := Find(files, Kustomize)
		if err != nil {
			t.Fatal(err)
		}
		s, err := hub.NewLoader(hub.Options{Bases: func(string, string) (fs.FS, error) { return remote, nil }}).Load(hub.Commit{}, p.With(files))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range s.Warnings {
			if w.Severity == problem.Failure {
				t.Error(w)
			}
		}
		var parts []int
		objects := 0
		for _, o := range s.Objects {
			if o.Overlay != nil {
				parts = append(parts, len(o.Overlay.Spec.Parts))
				objects += objectsFor(o.Overlay, s.Clusters[0])
			}
		}
		if !slices.Equal(parts, test.parts) || objects != 20 || len(s.Clusters) != 1 {
			t.Errorf("%s: overlays with %v parts and %d objects for the cluster, want %v and 20", name, parts, objects, test.parts)
		}
	}
}

// What an earlier overlay builds for a cluster is left out, unless another cluster gets it from this one only.
func TestOverlaysBuildNothingTwice(t *testing.T) {
	f := &wildcards{finder: &finder{clusters: map[string]*cluster{"paris": {name: "paris"}, "oslo": {name: "oslo"}}}, exist: []string{"a/x", "b/paris"}}
	u := &unit{name: "apps-2", parts: [][]string{{"*/x"}, {"*/${cluster.name}"}}}
	f.leaveOutRepeated(u, map[string]map[string]bool{"paris": {"a/x": true, "b/paris": true}})
	if got := fmt.Sprint(u.except); got != "[b/paris]" || len(f.finder.left) != 1 || !strings.HasPrefix(f.finder.left[0], "a/x: ") {
		t.Errorf("left out %s; said %q", got, f.finder.left)
	}
}

// So does one with more forms of directories.
func TestOverlaysHaveAsManyPathsAsTheyMay(t *testing.T) {
	f := &wildcards{finder: &finder{units: map[string]*unit{}}}
	var groups []*wildGroup
	for i := range 300 {
		groups = append(groups, &wildGroup{paths: []wildPath{{form: []string{fmt.Sprintf("app-%03d", i), "prod"}}}})
	}
	if units := f.split(groups); len(units) != 2 || pathsIn(units[0].parts) != 256 || pathsIn(units[1].parts) != 44 {
		t.Errorf("%d overlays, with %d paths in the first", len(units), pathsIn(units[0].parts))
	}
}
