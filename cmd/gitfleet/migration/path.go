package migration

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub/validation"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/overlay"
)

// partsOf returns the path of an overlay that means the directories of a unit, paths of which the first that exists does, or parts that
// have such paths, and whether it means none for some clusters. It adds the labels that these need to the clusters.
func (f *finder) partsOf(u *unit) (parts [][]string, partial, ok bool) {
	if u.parts != nil {
		return u.parts, true, true
	}
	if text, partial, ok := f.pathOf(u); ok {
		return [][]string{{text}}, partial, true
	}
	texts := f.alternatives(u)
	if texts == nil {
		f.leave("%s: the directories of its clusters have no common form (%s); write an overlay for each", u.name, strings.Join(slices.Sorted(maps.Values(u.dirs)), ", "))
	}
	return [][]string{texts}, false, texts != nil
}

// alternatives returns paths of which the first that exists is the directory of each cluster of a unit, those for a single cluster first;
// none if there are no such paths.
func (f *finder) alternatives(u *unit) []string {
	envs := map[string]string{}
	for c, dir := range u.dirs {
		segments := strings.Split(dir, "/")
		if i := slices.IndexFunc(segments, environment.MatchString); i >= 0 {
			envs[c] = segments[i]
		}
	}
	key := ""
	if len(envs) > 0 {
		key = f.label(u.name, envs)
	}
	var texts []string
	for _, c := range slices.Sorted(maps.Keys(u.dirs)) {
		text, _ := replaced(u.dirs[c], c, "${cluster.name}")
		if envs[c] != "" {
			text, _ = replaced(text, envs[c], "${cluster.labels."+key+":-none}")
		}
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	slices.SortStableFunc(texts, func(x, y string) int {
		named := func(text string) int { return strings.Count(text, "${cluster.name}")*2 + strings.Count(text, "${") }
		return cmp.Or(named(y)-named(x), strings.Compare(x, y))
	})
	spec := &api.OverlaySpec{Paths: texts}
	for c, want := range u.dirs {
		got, err := overlay.Choose(spec, ".", overlay.Cluster{Name: c, Labels: f.clusters[c].labels}, f.has, nil)
		if err != nil || len(texts) > validation.MostAlternatives || got[0] != want {
			return nil
		}
	}
	return texts
}

// pathOf returns the one path of an overlay that means the directories of a unit, if there is one, and whether it means none for some
// clusters.
func (f *finder) pathOf(u *unit) (text string, partial, ok bool) {
	partial = len(u.dirs) < len(f.clusters)
	if u.path != "" {
		return u.path, partial, true
	}
	names := slices.Sorted(maps.Keys(u.dirs))
	if first := u.dirs[names[0]]; !slices.ContainsFunc(names, func(c string) bool { return u.dirs[c] != first }) {
		if len(names) == 1 && len(f.clusters) > 1 { // it may be one of several directories that are named after the clusters
			if byName, is := replaced(first, names[0], "${cluster.name}"); is {
				return byName, partial, true
			}
		}
		return first, false, true
	}
	dirs, byName := map[string]string{}, true
	for _, c := range names {
		var is bool
		dirs[c], is = replaced(u.dirs[c], c, "${cluster.name}")
		byName = byName && is
	}
	if !byName {
		dirs = u.dirs
	} else if first := dirs[names[0]]; !slices.ContainsFunc(names, func(c string) bool { return dirs[c] != first }) {
		return first, partial, true
	}
	i, values := differing(dirs)
	if i < 0 {
		return "", false, false
	}
	key := f.label(u.name, values)
	segments := strings.Split(dirs[names[0]], "/")
	segments[i] = "${cluster.labels." + key + "}"
	if partial { // a label that is missing is an error
		segments[i] = "${cluster.labels." + key + ":-none}"
	}
	return strings.Join(segments, "/"), partial, true
}

// replaced replaces a segment of a path.
func replaced(dir, segment, by string) (string, bool) {
	segments := strings.Split(dir, "/")
	i := slices.Index(segments, segment)
	if i < 0 {
		return dir, false
	}
	segments[i] = by
	return strings.Join(segments, "/"), true
}

// differing returns the one segment in which directories differ, and its values by cluster; -1 if there is no such segment.
func differing(dirs map[string]string) (int, map[string]string) {
	at := -1
	var first []string
	for _, dir := range dirs {
		segments := strings.Split(dir, "/")
		if first == nil {
			first = segments
		}
		if len(segments) != len(first) {
			return -1, nil
		}
		for i := range segments {
			if segments[i] != first[i] {
				if at >= 0 && at != i {
					return -1, nil
				}
				at = i
			}
		}
	}
	values := map[string]string{}
	for c, dir := range dirs {
		values[c] = strings.Split(dir, "/")[max(at, 0)]
	}
	return at, values
}

// label sets a label of clusters that has these values: env, or one that is named after the unit if env has others.
func (f *finder) label(name string, values map[string]string) string {
	for _, key := range []string{"env", name} {
		fits := true
		for c, value := range values {
			is, there := f.cluster(c).labels[key]
			fits = fits && (!there || is == value)
		}
		if fits {
			for c, value := range values {
				f.cluster(c).labels[key] = value
			}
			return key
		}
	}
	return name
}

var (
	clusterDirectory     = regexp.MustCompile(`^(?i)clusters?$`)
	environmentDirectory = regexp.MustCompile(`^(?i)(overlays?|envs?|environments?|stages?)$`)
	environment          = regexp.MustCompile(`^(?i)(dev|develop|development|test|testing|qa|uat|int|integration|stage|staging|preprod|pre-production|prod|production|live|sandbox)$`)
	notName              = regexp.MustCompile(`[^a-z0-9]+`)
)

// nameOf derives the name of an object from a path.
func nameOf(text string) string {
	return strings.Trim(notName.ReplaceAllString(strings.ToLower(text), "-"), "-")
}

// variableText matches a variable in a path.
var variableText = regexp.MustCompile(`\$\{[^}]*\}`)

// onlyCluster is the name of the cluster of a repository that names none.
const onlyCluster = "main"

// variableSegment returns the segment of a directory that names a cluster or an environment; -1 if none does.
func variableSegment(segments []string) int {
	for i := 1; i < len(segments); i++ {
		if clusterDirectory.MatchString(segments[i-1]) || environmentDirectory.MatchString(segments[i-1]) {
			return i
		}
	}
	for i := len(segments) - 1; i >= 0; i-- {
		if environment.MatchString(segments[i]) {
			return i
		}
	}
	return -1
}
