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
