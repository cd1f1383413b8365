package migration

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

const (
	fluxKustomizations = "kustomize.toolkit.fluxcd.io"
	fluxReleases       = "helm.toolkit.fluxcd.io"
)

// findFlux finds the Kustomizations of Flux, and the clusters that have them.
func (f *finder) findFlux() error {
	f.merges = true // there may be hundreds
	roots := f.fluxRoots()
	releases := 0
	for _, d := range f.documents {
		if d.is(fluxReleases, "HelmRelease") {
			releases++
		}
	}
	for _, c := range slices.Sorted(maps.Keys(roots)) {
		f.cluster(c)
		f.follow(c, roots[c], map[string]bool{})
	}
	f.writeChanges()
	f.substitutions.resolve()
	f.vars = f.substitutions.text()
	f.leaveFields()
	if releases > 0 {
		f.leave("HelmReleases (%d): not rendered; each is placed as it is, for clusters on which Flux's helm-controller runs", releases)
	}
	return nil
}

// fluxRoots are the directories from which Flux reads each cluster: those that the Kustomization flux-system names, or else
// those below a directory called clusters, or else those of all Kustomizations as one cluster.
func (f *finder) fluxRoots() map[string]string {
	roots := map[string]string{}
	for _, d := range f.documents {
		if d.is(fluxKustomizations, "Kustomization") && d.text("metadata", "name") == "flux-system" {
			dir := path.Clean(d.text("spec", "path"))
			roots[nameOf(path.Base(dir))] = dir
		}
	}
	if len(roots) > 0 {
		return roots
	}
	for _, d := range f.documents {
		segments := strings.Split(path.Dir(d.file), "/")
		i := slices.IndexFunc(segments, clusterDirectory.MatchString)
		if !d.is(fluxKustomizations, "Kustomization") {
			continue
		}
		if i >= 0 && i+1 < len(segments) {
			roots[nameOf(segments[i+1])] = path.Join(segments[:i+2]...)
		}
	}
	if len(roots) == 0 {
		return map[string]string{onlyCluster: "."}
	}
	return roots
}

// follow adds what the Kustomizations in a directory deploy, and follows those that lead to others.
func (f *finder) follow(cluster, dir string, seen map[string]bool) {
	if seen[dir] {
		return
	}
	seen[dir] = true
	for _, d := range f.documents {
		if !d.is(fluxKustomizations, "Kustomization") || !within(dir, d.file) || d.text("metadata", "name") == "flux-system" {
			continue
		}
		name := d.text("metadata", "name")
		target := f.fluxPath(d)
		if target == "" {
			f.leave("Kustomization %s (%s): its source is another repository", name, d.file)
			continue
		}
		if nested := f.hasFlux(target); nested && target != dir {
			f.follow(cluster, target, seen)
			if _, is := f.kustomizations[target]; !is && target != "." {
				f.leave("Kustomization %s (%s): what %s has beside Kustomizations, such as Namespaces; write a ClusterOverlay for it", name, d.file, target)
				continue
			}
		}
		namespace := d.text("spec", "targetNamespace")
		if namespace == api.Namespace {
			f.note("targetNamespace "+namespace, name)
			continue
		}
		for _, field := range fluxFields {
			if at(d.value, "spec", field.key) != nil && !field.taken {
				f.note(field.key, name)
			}
		}
		f.add(nameOf(name), cluster, target)
		u := f.units[nameOf(name)]
		if u == nil || u.dirs[cluster] != target {
			continue
		}
		u.namespace = cmp.Or(u.namespace, namespace)
		f.addChanges(d, u.name, cluster, target)
		f.substitutions.add(d, u.name, cluster, dir, target)
	}
}

// hasFlux reports whether there are Kustomizations of Flux in a directory.
func (f *finder) hasFlux(dir string) bool {
	return slices.ContainsFunc(f.documents, func(d document) bool { return d.is(fluxKustomizations, "Kustomization") && within(dir, d.file) })
}

// fluxPath is the directory of a Kustomization. The path of an artifact is relative to a directory that often has its name.
func (f *finder) fluxPath(d document) string {
	dir := path.Clean(strings.TrimPrefix(d.text("spec", "path"), "/"))
	for _, candidate := range []string{dir, path.Join(d.text("spec", "sourceRef", "name"), dir)} {
		if f.has(candidate) {
			return candidate
		}
	}
	return ""
}

// fluxFields are the fields of a Kustomization that have no effect here, and why. Those that are taken have none only in some cases.
var fluxFields = []struct {
	key, why string
	taken    bool
}{
	{"dependsOn", "the order of objects follows their kinds, and of clusters their rollout", false},
	{"patches", "its path has no kustomization that one with patches, images and the like could refer to; add one", true},
	{"patchesStrategicMerge", "write them as patches", false},
	{"patchesJson6902", "write them as patches", false},
	{"decryption", "give its keys to the daemon, as decryption.keyFile", false},
	{"suspend", "it is placed although Flux does not apply it", false},
}

// leaveFields says which fields of the Kustomizations have no effect here.
func (f *finder) leaveFields() {
	leave := func(field, why string) {
		switch names := f.unused[field]; len(names) {
		case 0:
		case 1:
			f.leave("spec.%s of Kustomization %s: %s", field, names[0], why)
		default:
			f.leave("spec.%s of Kustomizations %s: %s", field, few(names), why)
		}
	}
	for _, field := range slices.Sorted(maps.Keys(f.unused)) {
		if strings.HasPrefix(field, "targetNamespace ") {
			leave(field, "nothing can be placed in it")
		}
	}
	for _, field := range fluxFields {
		leave(field.key, field.why)
	}
}
