// Package overlay says which directories of the repository an Overlay or a ClusterOverlay builds for a
// cluster.
//
// Parse reads a path with variables; Path.For returns the directory that it means for a cluster, and
// Path.Patterns the directories that it may mean for any. In a path that ParseWild reads, * stands for
// any part of a name. Choose chooses among the paths of an overlay.
package overlay

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/variable"
)

// A Cluster has the values of variables.
type Cluster = variable.Cluster

// A Path is a path with variables.
type Path struct {
	// texts are the literal parts: one in front of each variable, and one at the end.
	texts     []string
	variables []variable.Variable
	// wild says that * stands for any part of a name.
	wild bool
}

// ParseWild reads a path in which * stands for any part of the name of a directory, as [Parse] does.
func ParseWild(text string) (Path, error) {
	p, err := Parse(text)
	if err == nil && slices.ContainsFunc(p.texts, func(text string) bool { return strings.Contains(text, "**") }) {
		return Path{}, fmt.Errorf("%q has **, and * stands for one name; write the path with a * for each level", text)
	}
	p.wild = true
	return p, err
}

// Parse reads a path. The message of the error says what is wrong with it and how to correct it.
func Parse(text string) (Path, error) {
	var p Path
	rest := strings.TrimSuffix(strings.TrimPrefix(text, "./"), "/")
	for {
		before, after, found := strings.Cut(rest, "${")
		p.texts = append(p.texts, before)
		if !found {
			break
		}
		inside, tail, closed := strings.Cut(after, "}")
		if !closed {
			return Path{}, fmt.Errorf("%q lacks the closing bracket of a variable; write %s", text, variable.KnownInPaths)
		}
		v, err := parseVariable(inside)
		if err != nil {
			return Path{}, err
		}
		p.variables = append(p.variables, v)
		rest = tail
	}
	if shape := strings.Join(p.texts, "x"); path.IsAbs(shape) || path.Clean(shape) != shape || shape == "." {
		return Path{}, fmt.Errorf("%q is not a directory of the repository; write a relative path such as clusters/${cluster.name}", text)
	}
	return p, nil
}

func parseVariable(inside string) (variable.Variable, error) {
	v, err := variable.Parse(inside, variable.KnownInPaths)
	switch {
	case err != nil:
		return v, err
	case v.Of == variable.Vars:
		return v, fmt.Errorf("%s is not known in a path; write %s", v.Text, variable.KnownInPaths)
	case v.HasDefault && faultOf(v.Fallback) != "":
		return v, fmt.Errorf("the default of %s %s; write one name", v.Text, faultOf(v.Fallback))
	}
	return v, nil
}

// faultOf says why a value cannot be part of a path; empty if it can. No value leads to another directory than
// one of those that a pattern matches.
func faultOf(value string) string {
	switch {
	case value == "":
		return "is empty"
	case value == ".", value == "..":
		return fmt.Sprintf("is %q", value)
	case strings.Contains(value, "/"):
		return fmt.Sprintf("is %q, which has a slash", value)
	}
	return ""
}

// Labels are the keys of the labels that the path uses.
func (p Path) Labels() []string {
	var keys []string
	for _, v := range p.variables {
		if v.Of == variable.Labels {
			keys = append(keys, v.Key)
		}
	}
	return keys
}

// Wildcards counts the names of directories that have a *.
func (p Path) Wildcards() (n int) {
	if !p.wild {
		return 0
	}
	for segment := range strings.SplitSeq(strings.Join(p.texts, "x"), "/") {
		if strings.Contains(segment, "*") {
			n++
		}
	}
	return n
}

// Contains reports whether a directory is one that the path may mean, or below one, if paths are relative to hub.
func (p Path) Contains(hub, dir string) bool {
	pattern := path.Join(escapes.Replace(hub), strings.Join(p.Patterns(), "/"))
	segments, want := strings.Split(dir, "/"), strings.Count(pattern, "/")+1
	if len(segments) < want {
		return false
	}
	_, ok := match(pattern, strings.Join(segments[:want], "/"))
	return ok
}

// HasVariables reports whether the path is not the same for all clusters.
func (p Path) HasVariables() bool { return len(p.variables) > 0 }

// For returns the path for a cluster. The message of the error says what the cluster lacks and how to correct that.
func (p Path) For(c Cluster) (string, error) {
	asIs := func(text string) string { return text }
	return p.expand(c, asIs, asIs)
}

// expand returns the path for a cluster, with its texts and the values of its variables in another form.
func (p Path) expand(c Cluster, text, value func(string) string) (string, error) {
	var b strings.Builder
	for i, part := range p.texts {
		b.WriteString(text(part))
		if i == len(p.variables) {
			break
		}
		of, err := valueOf(p.variables[i], c)
		if err != nil {
			return "", err
		}
		b.WriteString(value(of))
	}
	return b.String(), nil
}

// valueOf returns the value of a variable in a path.
func valueOf(v variable.Variable, c Cluster) (string, error) {
	value, err := v.Value(c)
	if err == nil && faultOf(value) != "" {
		err = fmt.Errorf("the %s of cluster %s %s, and cannot be part of a path; change it", v.What(), c.Name, faultOf(value))
	}
	return value, err
}

// escapes escapes what has a meaning in patterns, and escapesWild that which has one beside *.
var (
	escapes     = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)
	escapesWild = strings.NewReplacer(`\`, `\\`, `?`, `\?`, `[`, `\[`)
)

func (p Path) escape(text string) string {
	if p.wild {
		return escapesWild.Replace(text)
	}
	return escapes.Replace(text)
}

// Patterns returns the segments of the path as patterns of [Match], which match the names of directories that it
// may mean for some cluster. A segment ".." comes first, if there is one.
func (p Path) Patterns() []string {
	texts := make([]string, len(p.texts))
	for i, text := range p.texts {
		texts[i] = p.escape(text)
	}
	return strings.Split(strings.Join(texts, "?*"), "/")
}

// Match reports whether a name matches a pattern, which is one of [path.Match], except that no * at the beginning matches a dot.
func Match(pattern, name string) bool {
	if strings.HasPrefix(pattern, "*") && strings.HasPrefix(name, ".") {
		return false
	}
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// patternFor returns the pattern of the directories that the path means for a cluster.
func (p Path) patternFor(c Cluster) (string, error) {
	return p.expand(c, p.escape, escapes.Replace)
}

// match matches a directory with a pattern, and returns the names in the place of segments with wildcards.
func match(pattern, dir string) (names string, ok bool) {
	for {
		segment, restOfPattern, more := strings.Cut(pattern, "/")
		name, rest, deeper := strings.Cut(dir, "/")
		switch {
		case more != deeper:
			return "", false
		case segment == name && !strings.ContainsAny(segment, `*\`):
		case !Match(segment, name):
			return "", false
		case strings.Contains(strings.ReplaceAll(segment, `\*`, ""), "*"):
			names += name + "/"
		}
		if !more {
			return names, true
		}
		pattern, dir = restOfPattern, rest
	}
}

// Choose returns the directories that an overlay builds for a cluster, sorted: of each part the first of its paths that exists, or with
// wildcards the first for each of the names in their place. There are none if none exists and the overlay ignores that. all are
// the directories that exist, which matters for wildcards only.
func Choose(spec *api.OverlaySpec, hub string, c Cluster, exists func(dir string) bool, all []string) ([]string, error) {
	paths, err := ParseAll(spec)
	if err != nil {
		return nil, err
	}
	return paths.Choose(hub, c, exists, all)
}

// BuildsFor returns the keys of the builds that an overlay has for a cluster.
func BuildsFor(o *api.BuiltOverlay, c Cluster) ([]string, error) {
	dirs, err := Choose(&o.Spec, o.Hub, c, o.Has, o.Dirs)
	for i, dir := range dirs {
		key, known := o.BuildFor(dir, c.Name)
		if !known {
			return nil, fmt.Errorf("the commit has no MemberCluster %s, so that the variables in %s have no values for it", c.Name, dir)
		}
		dirs[i] = key
	}
	return dirs, err
}

// Paths are the parsed paths of an overlay, with which [Paths.Choose] chooses for many clusters.
type Paths struct {
	parts   [][]Path
	missing api.WhenMissing
}

// ParseAll reads the paths of an overlay.
func ParseAll(spec *api.OverlaySpec) (Paths, error) {
	all := Paths{missing: spec.WhenMissing}
	for _, part := range spec.AllParts() {
		var paths []Path
		for _, text := range part.All() {
			p, err := ParseWild(text)
			if err != nil {
				return Paths{}, err
			}
			paths = append(paths, p)
		}
		all.parts = append(all.parts, paths)
	}
	return all, nil
}

// Choose returns the directories for a cluster, as the function [Choose] does.
func (p Paths) Choose(hub string, c Cluster, exists func(dir string) bool, all []string) ([]string, error) {
	var chosen, tried []string
	for _, paths := range p.parts {
		choose := chooseFirst
		if slices.ContainsFunc(paths, func(p Path) bool { return p.Wildcards() > 0 }) {
			choose = chooseAll
		}
		dirs, without, err := choose(paths, hub, c, exists, all)
		if err != nil {
			return nil, err
		}
		chosen, tried = append(chosen, dirs...), append(tried, without...)
	}
	if len(chosen) == 0 {
		return nil, p.none(c, tried)
	}
	slices.Sort(chosen)
	return slices.Compact(chosen), nil
}

// chooseFirst chooses the first directory that exists, and returns those that were tried.
func chooseFirst(paths []Path, hub string, c Cluster, exists func(dir string) bool, _ []string) (chosen, tried []string, err error) {
	for _, one := range paths {
		relative, err := one.For(c)
		if err != nil {
			return nil, nil, err
		}
		dir := path.Join(hub, relative)
		if exists(dir) {
			return []string{dir}, nil, nil
		}
		tried = append(tried, dir)
	}
	return nil, tried, nil
}

// chooseAll chooses among all directories that exist, for paths with wildcards, and returns the paths.
func chooseAll(paths []Path, hub string, c Cluster, _ func(dir string) bool, all []string) (dirs, tried []string, err error) {
	chosen := map[string]string{} // by the names in the place of wildcards
	for _, one := range paths {
		pattern, err := one.patternFor(c)
		if err != nil {
			return nil, nil, err
		}
		pattern = path.Join(escapes.Replace(hub), pattern)
		for _, dir := range all {
			if names, ok := match(pattern, dir); ok && chosen[names] == "" {
				chosen[names] = dir
			}
		}
		relative, _ := one.For(c) // has the same variables
		tried = append(tried, path.Join(hub, relative))
	}
	return slices.Sorted(maps.Values(chosen)), tried, nil
}

// none returns the error about a cluster for which none of the paths exists; nil if that is ignored.
func (p Paths) none(c Cluster, tried []string) error {
	if p.missing == api.WhenMissingIgnore {
		return nil
	}
	return fmt.Errorf("for cluster %s the commit has no directory %s; add it, or write whenMissing: %s if the cluster is to get nothing",
		c.Name, strings.Join(tried, " and no directory "), api.WhenMissingIgnore)
}
