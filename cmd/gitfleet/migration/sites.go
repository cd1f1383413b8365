package migration

import (
	"cmp"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A site is a kustomization that no other one refers to, in a directory that is named after a cluster, an environment or both.
type site struct {
	dir string
	// form is the directory with variables, by segment.
	form []string
	// name is the cluster, or else value is the one of the label key of the clusters that get it.
	name, key, value string
}

// A siteFinder finds the sites of a repository.
type siteFinder struct {
	finder *finder
	// nested are the names of directories that are clusters, with the names of the directories between that of overlays or the
	// environment and them.
	nested map[string][]string
	// byName are the directories that have one for each cluster.
	byName map[string]bool
	sites  []site
	// others are the kustomizations that no other one refers to and that are named after nothing, and unusedBases those named after bases.
	others, unusedBases []string
}

var baseDirectory = regexp.MustCompile(`^(?i)(.*-)?bases?(-.*)?$`)

// zone is the label of clusters for directories above theirs that are no environments.
const zone = "zone"

// parts splits a directory at the segment that varies: what is in front of it, and what is from there on.
func parts(dir string) (front, rest []string) {
	segments := strings.Split(dir, "/")
	i := variableSegment(segments)
	if i < 0 {
		return segments, nil
	}
	return segments[:i], segments[i:]
}

// isCalled reports whether the last segment has a name of a kind.
func isCalled(segments []string, kind *regexp.Regexp) bool {
	return len(segments) > 0 && kind.MatchString(segments[len(segments)-1])
}

// directoriesOfClusters finds the directories that have one for each cluster: they are called so, and a cluster can have every name in them.
func directoriesOfClusters(dirs []string) map[string]bool {
	all := map[string]bool{}
	for _, dir := range dirs {
		front, rest := parts(dir)
		key := strings.Join(front, "/")
		if before, known := all[key]; len(rest) > 0 {
			all[key] = isCalled(front, clusterDirectory) && nameOf(rest[0]) == rest[0] && (before || !known)
		}
	}
	return all
}

// nestedClusters finds the names of directories that are probably clusters: at the end of a directory, below the same environment or zone
// in several apps. It returns the directories between in most of them.
func nestedClusters(dirs []string) map[string][]string {
	type context struct{ name, within string }
	apps := map[context]map[string]bool{}
	for _, dir := range dirs {
		front, rest := parts(dir)
		last := len(rest) - 1
		if last < 1 || isCalled(front, clusterDirectory) {
			continue
		}
		name := rest[last]
		if nameOf(name) != name || environment.MatchString(name) || baseDirectory.MatchString(name) {
			continue
		}
		c := context{name, strings.Join(rest[:last], "/")}
		if apps[c] == nil {
			apps[c] = map[string]bool{}
		}
		apps[c][strings.Join(front, "/")] = true
	}
	found, most := map[string][]string{}, map[string]int{}
	for _, c := range slices.SortedFunc(maps.Keys(apps), func(x, y context) int {
		return cmp.Or(strings.Compare(x.name, y.name), strings.Compare(x.within, y.within))
	}) {
		if n := len(apps[c]); n > 1 && n > most[c.name] {
			found[c.name], most[c.name] = strings.Split(c.within, "/"), n
		}
	}
	return found
}

// labelsWithin returns the labels of a cluster that the names of the directories above its own stand for, by their positions.
func labelsWithin(within []string) []string {
	keys, used := make([]string, len(within)), map[string]bool{}
	for i, name := range within {
		key := zone
		if environment.MatchString(name) {
			key = "env"
		}
		if !used[key] {
			keys[i], used[key] = key, true
		}
	}
	return keys
}

// find finds the sites, and adds the clusters that they name.
func (f *siteFinder) find() {
	var dirs []string
	for _, dir := range slices.Sorted(maps.Keys(f.finder.kustomizations)) {
		if !f.finder.kustomizations[dir] && dir != "." {
			dirs = append(dirs, dir)
		}
	}
	f.nested, f.byName = nestedClusters(dirs), directoriesOfClusters(dirs)
	for _, name := range slices.Sorted(maps.Keys(f.nested)) {
		for i, key := range labelsWithin(f.nested[name]) {
			if key != "" {
				f.finder.cluster(name).labels[key] = f.nested[name][i]
			}
		}
	}
	for _, dir := range dirs {
		if s, is := f.siteOf(dir); is {
			f.sites = append(f.sites, s)
		}
	}
	if len(f.unusedBases) > 0 {
		f.finder.leave("bases that no kustomization refers to: %s", few(f.unusedBases))
	}
	for _, s := range f.sites {
		if s.name != "" {
			f.finder.cluster(s.name)
		}
	}
	for _, s := range f.sites {
		if s.key == "env" && !slices.ContainsFunc(slices.Collect(maps.Values(f.finder.clusters)), func(c *cluster) bool { return c.labels["env"] == s.value }) {
			f.finder.cluster(nameOf(s.value)).labels["env"] = s.value
		}
	}
}

// siteOf returns the site of a directory, if it is one.
func (f *siteFinder) siteOf(dir string) (s site, is bool) {
	front, rest := parts(dir)
	first := len(front)
	s = site{dir: dir, form: strings.Split(dir, "/")}
	at := len(s.form) - 1
	for at >= 0 && f.nested[s.form[at]] == nil {
		at--
	}
	switch {
	case len(rest) > 0 && f.byName[strings.Join(front, "/")]:
		s.name, s.form[first] = rest[0], "${cluster.name}"
	case baseDirectory.MatchString(s.form[len(s.form)-1]) && len(f.nested) > 0:
		f.unusedBases = append(f.unusedBases, dir)
		return s, false
	case at >= 0:
		s.name = s.form[at]
		f.setForm(s, min(first, at), at)
	case len(rest) == 0:
		f.others = append(f.others, dir)
		return s, false
	default:
		s.key, s.value = "env", rest[0]
		if f.isZone(s.value) {
			s.key = zone
		}
		s.form[first] = "${cluster.labels." + s.key + "}"
	}
	return s, true
}

// isZone reports whether a name is that of the zone of a cluster.
func (f *siteFinder) isZone(name string) bool {
	for _, c := range f.finder.clusters {
		if c.labels[zone] == name {
			return true
		}
	}
	return false
}

// setForm sets the form of a directory that is named after a cluster, with segments from first on that are named after its labels.
func (f *siteFinder) setForm(s site, first, at int) {
	c := f.finder.cluster(s.name)
	for i, key := range labelsWithin(s.form[first:at]) {
		if value := s.form[first+i]; key != "" && c.labels[key] == value {
			s.form[first+i] = "${cluster.labels." + key + "}"
		}
	}
	s.form[at] = "${cluster.name}"
}

// wanted returns the directories that each cluster is meant to get.
func (f *siteFinder) wanted() map[string]map[string]bool {
	all := map[string]map[string]bool{}
	for name, c := range f.finder.clusters {
		all[name] = map[string]bool{}
		for _, s := range f.sites {
			if s.name == name || s.name == "" && c.labels[s.key] == s.value {
				all[name][s.dir] = true
			}
		}
	}
	return all
}

// defaulted returns the form of a directory as text. A label that some cluster lacks has a default, since one that is missing is an
// error.
func defaulted(form []string, clusters map[string]*cluster) string {
	text := path.Join(form...)
	for _, key := range []string{"env", zone} {
		for _, c := range clusters {
			if c.labels[key] == "" {
				text = strings.ReplaceAll(text, "${cluster.labels."+key+"}", "${cluster.labels."+key+":-none}")
			}
		}
	}
	return text
}
