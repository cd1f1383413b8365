package migration

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A unit is what is deployed under one name: a directory for each cluster that gets it.
type unit struct {
	name      string
	namespace string
	dirs      map[string]string
	// path is the path of its overlay, if it is known already, or parts and except are those of one with wildcards.
	path   string
	parts  [][]string
	except []string
	// inReserved are reserved namespaces that objects are in.
	inReserved []string
}

// reserved are the reserved namespaces that the overlay has to list.
func (u *unit) reserved() []string {
	return slices.DeleteFunc(append(slices.Clone(u.inReserved), u.namespace), func(name string) bool { return !api.ReservedNamespace(name) || name == api.Namespace })
}

// A cluster is a cluster for which the repository has manifests.
type cluster struct {
	name   string
	labels map[string]string
}

// A finder collects what a repository deploys.
type finder struct {
	files fs.FS
	// kustomizations are the directories with a kustomization, and whether another one refers to it.
	kustomizations map[string]bool
	documents      []document
	// namespaces are those that kustomizations set.
	namespaces []string
	clusters   map[string]*cluster
	units      map[string]*unit
	left       []string
	// charts has the clusters that get a chart, by the name of the chart and its spec as YAML.
	charts map[string]map[string]map[string]bool
	// apart are what has placements of its own, and changed says that something was found that an earlier proposal does not have.
	apart   map[envelope]bool
	changed bool
	// merges says that units share overlays, except those that are alone, and merged are the units of overlays that have several, by
	// the name of the overlay.
	merges bool
	alone  map[string]bool
	merged map[string][]*unit
	// bases are the directories that kustomizations refer to, by their own.
	bases map[string][]string
	// changes are fields of kustomizations that change what a directory builds, by unit and cluster, and added the files with them.
	changes map[string]map[string]map[string]any
	added   map[string]string
	// unused are the fields of Kustomizations of Flux that have no effect, by the names of these.
	unused map[string][]string
	// substitutions are those of Kustomizations of Flux, and vars the text of the ClusterVars with their values.
	substitutions *substitutions
	vars          string
}

// An envelope is an overlay or a chart.
type envelope struct{ kind, name string }

// A selection is what a placement selects: envelopes for some clusters, whose names are joined. apart are those that others do not
// wait for.
type selection struct {
	clusters string
	apart    bool
}

func (s selection) compare(o selection) int {
	switch {
	case s.apart == o.apart:
		return strings.Compare(s.clusters, o.clusters)
	case s.apart:
		return 1
	}
	return -1
}

// A document is one of a YAML file.
type document struct {
	file  string
	value map[string]any
}

// text returns a field of a document; empty if it has none.
func (d document) text(keys ...string) string { return textAt(d.value, keys...) }

// is reports whether a document has a kind of a group.
func (d document) is(group, kind string) bool {
	return d.text("kind") == kind && strings.HasPrefix(d.text("apiVersion"), group+"/")
}

func textAt(value any, keys ...string) string {
	text, _ := at(value, keys...).(string)
	return text
}

func at(value any, keys ...string) any {
	for _, key := range keys {
		fields, _ := value.(map[string]any)
		value = fields[key]
	}
	return value
}

// leave records what is not taken.
func (f *finder) leave(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(f.left, text) {
		f.left = append(f.left, text)
	}
}

func (f *finder) leftText() string {
	if len(f.left) == 0 {
		return ""
	}
	return "; not taken: " + strings.Join(f.left, "; ")
}

func (f *finder) cluster(name string) *cluster {
	c := f.clusters[name]
	if c == nil {
		c = &cluster{name, map[string]string{}}
		f.clusters[name] = c
	}
	return c
}

func (f *finder) unit(name string) *unit {
	u := f.units[name]
	if u == nil {
		u = &unit{name: name, dirs: map[string]string{}}
		f.units[name] = u
	}
	return u
}

// add adds a directory that a cluster gets.
func (f *finder) add(name, cluster, dir string) {
	switch {
	case f.hasChart(dir):
		f.leave("%s: %s is a Helm chart; write a ClusterHelmChart for it", name, dir)
		return
	case dir == ".":
		f.leave("%s: its path is the root of the repository, which cannot be an overlay; move what it deploys to a directory", name)
		return
	case !f.has(dir):
		f.leave("%s: the repository has no manifests in %s", name, dir)
		return
	}
	f.cluster(cluster)
	f.unit(name).dirs[cluster] = dir
}

// directory returns the first name that the repository does not have.
func (f *finder) directory() string {
	for n := 1; ; n++ {
		name := "fleet"
		if n > 1 {
			name = fmt.Sprintf("fleet-%d", n)
		}
		if _, err := fs.Stat(f.files, name); err != nil {
			return name
		}
	}
}

// has reports whether a directory has a kustomization or manifests.
func (f *finder) has(dir string) bool {
	if _, is := f.kustomizations[dir]; is {
		return true
	}
	return slices.ContainsFunc(f.documents, func(d document) bool { return within(dir, d.file) })
}

// note records that a field of a Kustomization has no effect.
func (f *finder) note(field, name string) {
	if !slices.Contains(f.unused[field], name) {
		f.unused[field] = append(f.unused[field], name)
	}
}

// few names some of them.
func few(names []string) string {
	if len(names) <= 4 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), len(names)-3)
}

func within(dir, file string) bool { return dir == "." || strings.HasPrefix(file, dir+"/") }

// hasChart reports whether a directory is a Helm chart.
func (f *finder) hasChart(dir string) bool {
	_, err := fs.Stat(f.files, path.Join(dir, "Chart.yaml"))
	return err == nil
}

// substitutions are the values that Flux substitutes in what Kustomizations build.
type substitutions struct {
	finder *finder
	// values are those of the variables by unit and cluster.
	values map[string]map[string]map[string]string
	// named are the variables in what a unit builds, and required those of them that occur without a default.
	named, required map[string]map[string]bool
	// secret are the units with values that are not known here.
	secret map[string]bool
	// inline are the values that are written into the overlay of a unit, and shared those in the ClusterVars, by cluster.
	inline, shared map[string]map[string]string
}
