// Package migration looks at a repository that was written for another tool, and proposes the files that make a fleet of it.
//
// Find does so for Flux, Argo CD and plain kustomizations; none of the repository's own files is part of a Proposal.
package migration

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/overlay"
)

// The tools whose repositories are understood.
const (
	Flux      = "flux"
	ArgoCD    = "argocd"
	Kustomize = "kustomize"
)

// Tools lists the tools.
func Tools() []string { return []string{ArgoCD, Flux, Kustomize} }

// A Proposal is what makes a fleet of a repository.
type Proposal struct {
	// Files are the texts of new files by their names.
	Files map[string]string
	// Clusters are the names of the clusters that were found, sorted.
	Clusters []string
	// Left is what is not taken, and why, in the order in which it was found.
	Left []string

	finder *finder
}

// Apart returns the proposal with placements of their own for the overlays and charts that cannot be built in a snapshot of it, so
// that the others do not wait for them, and without the directories of overlays with wildcards that cannot be, and reports whether there
// are any.
func (p *Proposal) Apart(s *hub.Snapshot) (*Proposal, bool, error) {
	p.finder.apart, p.finder.alone = map[envelope]bool{}, map[string]bool{}
	for _, o := range s.Objects {
		if o.Overlay == nil {
			continue
		}
		if u := p.finder.units[o.ID.Name]; u != nil && u.parts != nil && o.ID.Kind == overlayKind {
			p.leaveOutNested(u, o.Overlay, s)
			p.leaveOutFailed(u, o.Overlay, s)
			continue
		}
		if units := p.finder.merged[o.ID.Name]; units != nil && o.ID.Kind == overlayKind {
			p.setApart(units, o.Overlay)
			continue
		}
		for _, c := range s.Clusters {
			if fails(o.Overlay, c) {
				p.finder.apart[envelope{o.ID.Kind, o.ID.Name}] = true
			}
		}
	}
	if len(p.finder.apart) == 0 && !p.finder.changed {
		return p, false, nil
	}
	apart, err := p.finder.propose()
	return apart, true, err
}

// fails reports whether what an overlay or a chart has for a cluster cannot be built.
func fails(o *api.BuiltOverlay, c *hub.Cluster) bool {
	keys := []string{o.Chart[c.Name].Build}
	if o.Chart == nil {
		keys, _ = overlay.BuildsFor(o, overlay.Cluster{Name: c.Name, Labels: c.Labels})
	}
	return o.Chart[c.Name].Err != "" || slices.ContainsFunc(keys, func(key string) bool { return o.Builds[key] != nil && o.Builds[key].Err != "" })
}

// A cluster is one that the repository has something for.
type cluster struct {
	name   string
	labels map[string]string
}

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

// Find finds what a repository deploys with a tool. The error says what is missing for a proposal.
func Find(files fs.FS, tool string) (*Proposal, error) {
	f := &finder{
		files: files, clusters: map[string]*cluster{}, units: map[string]*unit{}, unused: map[string][]string{}, charts: map[string]map[string]map[string]bool{},
		bases: map[string][]string{}, changes: map[string]map[string]map[string]any{}, added: map[string]string{},
	}
	f.substitutions = newSubstitutions(f)
	if err := f.read(); err != nil {
		return nil, err
	}
	find := map[string]func() error{Flux: f.findFlux, ArgoCD: f.findArgo, Kustomize: f.findKustomize}[tool]
	if find == nil {
		return nil, fmt.Errorf("--from %s: not known; use %s", tool, strings.Join(Tools(), ", "))
	}
	if err := find(); err != nil {
		return nil, err
	}
	if len(f.units) == 0 && len(f.charts) == 0 {
		return nil, fmt.Errorf("nothing was found that could be deployed%s", f.leftText())
	}
	return f.propose()
}

func (f *finder) leftText() string {
	if len(f.left) == 0 {
		return ""
	}
	return "; not taken: " + strings.Join(f.left, "; ")
}

// leave records what is not taken.
func (f *finder) leave(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(f.left, text) {
		f.left = append(f.left, text)
	}
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

var kustomizationNames = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// read reads the YAML files of the repository.
func (f *finder) read() error {
	f.kustomizations = map[string]bool{}
	referred := map[string]bool{}
	err := fs.WalkDir(f.files, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if name != "." && strings.HasPrefix(entry.Name(), ".") {
				return fs.SkipDir
			}
			return nil
		case !entry.Type().IsRegular():
			return nil
		case slices.Contains(kustomizationNames, entry.Name()):
			return f.readKustomization(name, referred)
		case path.Ext(name) == ".yaml" || path.Ext(name) == ".yml":
			return f.readDocuments(name)
		}
		return nil
	})
	for dir := range f.kustomizations {
		f.kustomizations[dir] = referred[dir]
	}
	return err
}

func (f *finder) readKustomization(name string, referred map[string]bool) error {
	text, err := fs.ReadFile(f.files, name)
	if err != nil {
		return err
	}
	var k struct {
		Kind, Namespace              string
		Resources, Bases, Components []string
	}
	_ = yaml.Unmarshal(text, &k) // what is wrong with it is reported when it is built
	f.namespaces = append(f.namespaces, k.Namespace)
	dir := path.Dir(name)
	if k.Kind == "Component" {
		referred[dir] = true
	}
	f.kustomizations[dir] = false
	for _, r := range slices.Concat(k.Resources, k.Bases, k.Components) {
		referred[path.Join(dir, r)] = true
		f.bases[dir] = append(f.bases[dir], path.Join(dir, r))
	}
	return nil
}

// maxFile is the size of a file above which it is no manifest that a person has written.
const maxFile = 1 << 20

func (f *finder) readDocuments(name string) error {
	if info, err := fs.Stat(f.files, name); err != nil || info.Size() > maxFile {
		return err
	}
	text, err := fs.ReadFile(f.files, name)
	if err != nil {
		return err
	}
	for part := range strings.SplitSeq("\n"+string(text), "\n---") {
		var value map[string]any
		if yaml.Unmarshal([]byte(part), &value) == nil && value != nil {
			f.documents = append(f.documents, document{name, value})
		}
	}
	return nil
}

// text returns a field of a document; empty if it has none.
func (d document) text(keys ...string) string { return textAt(d.value, keys...) }

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

// is reports whether a document has a kind of a group.
func (d document) is(group, kind string) bool {
	return d.text("kind") == kind && strings.HasPrefix(d.text("apiVersion"), group+"/")
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

// propose writes the files.
func (f *finder) propose() (*Proposal, error) {
	for _, name := range []string{".gitfleet.yaml", ".gitfleetignore"} {
		if _, err := fs.Stat(f.files, name); err == nil {
			return nil, fmt.Errorf("the repository has %s already, so it is one for gitfleet; init --from is for one that is not", name)
		}
	}
	selected := map[selection][]envelope{} // by placement
	overlays := f.overlayTexts(selected)
	charts := f.chartTexts(selected)
	if len(selected) == 0 {
		return nil, fmt.Errorf("nothing was found that could be deployed%s", f.leftText())
	}
	dir := f.directory()
	p := &Proposal{finder: f, Clusters: slices.Sorted(maps.Keys(f.clusters)), Left: f.left, Files: map[string]string{
		".gitfleet.yaml":         "# Only this directory is the hub; the rest is read where an overlay builds it.\nroots:\n- " + dir + "\n",
		dir + "/clusters.yaml":   f.membersText(),
		dir + "/placements.yaml": strings.TrimPrefix(f.placements(selected), "---\n"),
	}}
	maps.Copy(p.Files, f.added)
	for name, text := range map[string]string{"/overlays.yaml": overlays, "/charts.yaml": charts, "/vars.yaml": f.vars} {
		if text != "" {
			p.Files[dir+name] = strings.TrimPrefix(text, "---\n")
		}
	}
	return p, nil
}

// partText returns the fields with the paths of an overlay, or of a part of one.
func partText(paths []string) string {
	var quoted []string
	for _, text := range paths {
		if strings.HasPrefix(text, "*") { // which YAML takes for an alias
			text = fmt.Sprintf("%q", text)
		}
		quoted = append(quoted, text)
	}
	if len(quoted) == 1 {
		return "path: " + quoted[0]
	}
	return "paths:\n- " + strings.Join(quoted, "\n- ")
}

// membersText is a list of the MemberClusters.
func (f *finder) membersText() string {
	text := "apiVersion: cluster.kubernetes-fleet.io/v1beta1\nkind: MemberClusterList\nitems:\n"
	for _, name := range slices.Sorted(maps.Keys(f.clusters)) {
		text += "- metadata:\n    name: " + name + "\n"
		if labels := f.clusters[name].labels; len(labels) > 0 {
			text += "    labels:\n"
			for _, key := range slices.Sorted(maps.Keys(labels)) {
				text += fmt.Sprintf("      %s: %q\n", key, labels[key])
			}
		}
		text += "  spec:\n    identity: {kind: User, name: gitfleet}\n"
	}
	return text
}

// placements are one for all clusters, and one for each other set of clusters, and the same for what is apart.
func (f *finder) placements(selected map[selection][]envelope) string {
	all := strings.Join(slices.Sorted(maps.Keys(f.clusters)), ",")
	var b strings.Builder
	for _, key := range slices.SortedFunc(maps.Keys(selected), selection.compare) {
		name, policy := "all-clusters", "    placementType: PickAll\n"
		if key.clusters != all {
			name = "only-" + strings.ReplaceAll(key.clusters, ",", "-")
			policy = "    placementType: PickFixed\n    clusterNames: [" + strings.ReplaceAll(key.clusters, ",", ", ") + "]\n"
		}
		if key.apart {
			name += "-to-correct"
		}
		if len(name) > 63 {
			name = fmt.Sprintf("only-%d-clusters-%s", strings.Count(key.clusters, ",")+1, selected[key][0].name)
		}
		fmt.Fprintf(&b, "---\napiVersion: placement.kubernetes-fleet.io/v1\nkind: ClusterResourcePlacement\nmetadata:\n  name: %s\n", name)
		b.WriteString("spec:\n  resourceSelectors:\n")
		for _, e := range selected[key] {
			fmt.Fprintf(&b, "  - {group: gitfleet.dev, version: v1alpha1, kind: %s, name: %s}\n", e.kind, e.name)
		}
		b.WriteString("  policy:\n" + policy + "  strategy:\n    applyStrategy:\n      whenToTakeOver: IfNoDiff # what is there and differs is reported, not changed\n")
	}
	return b.String()
}
