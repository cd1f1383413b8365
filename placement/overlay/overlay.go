// Package overlay says which directory of the repository an Overlay or a ClusterOverlay builds for a
// cluster.
//
// Parse reads a path with variables; Path.For returns the directory that it means for a cluster, and
// Path.Patterns the directories that it may mean for any. Choose chooses among the paths of an
// overlay.
package overlay

import (
	"fmt"
	"path"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Cluster has the values of variables.
type Cluster struct {
	Name string
	// Labels and Properties are those of the MemberCluster; properties are its declared ones.
	Labels, Properties map[string]string
}

// A Path is a path with variables.
type Path struct {
	// texts are the literal parts: one in front of each variable, and one at the end.
	texts     []string
	variables []variable
}

// A variable stands for a value of the cluster.
type variable struct {
	// text is the variable as it is written.
	text string
	// of is name, labels or properties; key is that of the label or property.
	of, key    string
	fallback   string
	hasDefault bool
}

const known = "${cluster.name}, ${cluster.labels.KEY} or ${cluster.properties.KEY}, each with a default such as ${cluster.labels.KEY:-TEXT}"

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
			return Path{}, fmt.Errorf("%q lacks the closing bracket of a variable; write %s", text, known)
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

func parseVariable(inside string) (variable, error) {
	v := variable{text: "${" + inside + "}"}
	name, fallback, hasDefault := strings.Cut(inside, ":-")
	v.fallback, v.hasDefault = fallback, hasDefault
	if hasDefault && faultOf(fallback) != "" {
		return v, fmt.Errorf("the default of %s %s; write one name", v.text, faultOf(fallback))
	}
	of, is := strings.CutPrefix(name, "cluster.")
	v.of, v.key, _ = strings.Cut(of, ".")
	valid := v.of == "name" && v.key == "" || (v.of == "labels" || v.of == "properties") && v.key != ""
	if !is || !valid {
		return v, fmt.Errorf("%s is not known; write %s", v.text, known)
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
		if v.of == "labels" {
			keys = append(keys, v.key)
		}
	}
	return keys
}

// HasVariables reports whether the path is not the same for all clusters.
func (p Path) HasVariables() bool { return len(p.variables) > 0 }

// For returns the path for a cluster. The message of the error says what the cluster lacks and how to correct that.
func (p Path) For(c Cluster) (string, error) {
	var b strings.Builder
	for i, text := range p.texts {
		b.WriteString(text)
		if i == len(p.variables) {
			break
		}
		value, err := p.variables[i].value(c)
		if err != nil {
			return "", err
		}
		b.WriteString(value)
	}
	return b.String(), nil
}

func (v variable) value(c Cluster) (string, error) {
	value, there := c.Name, true
	what := "name"
	switch v.of {
	case "labels":
		value, there = c.Labels[v.key]
		what = "label " + v.key
	case "properties":
		value, there = c.Properties[v.key]
		what = "declared property " + v.key
	}
	switch {
	case !there && v.hasDefault:
		return v.fallback, nil
	case !there && v.of == "properties":
		return "", fmt.Errorf("cluster %s has no %s; add the annotation %s%s to its MemberCluster, or write a default such as ${cluster.properties.%s:-TEXT}",
			c.Name, what, api.PropertyAnnotationPrefix, v.key, v.key)
	case !there:
		return "", fmt.Errorf("cluster %s has no %s; add it to its MemberCluster, or write a default such as ${cluster.labels.%s:-TEXT}", c.Name, what, v.key)
	case faultOf(value) != "":
		return "", fmt.Errorf("the %s of cluster %s %s, and cannot be part of a path; change it", what, c.Name, faultOf(value))
	}
	return value, nil
}

// wildcards escapes what has a meaning in patterns.
var wildcards = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// Patterns returns the segments of the path as patterns of path.Match, which match the names of directories that it
// may mean for some cluster. A segment ".." comes first, if there is one.
func (p Path) Patterns() []string {
	texts := make([]string, len(p.texts))
	for i, text := range p.texts {
		texts[i] = wildcards.Replace(text)
	}
	return strings.Split(strings.Join(texts, "?*"), "/")
}

// Choose returns the directory that an overlay builds for a cluster: the first of its paths that exists. It is empty
// if none exists and the overlay ignores that.
func Choose(spec *api.OverlaySpec, hub string, c Cluster, exists func(dir string) bool) (string, error) {
	var tried []string
	for _, text := range spec.All() {
		p, err := Parse(text)
		if err != nil {
			return "", err
		}
		relative, err := p.For(c)
		if err != nil {
			return "", err
		}
		dir := path.Join(hub, relative)
		if exists(dir) {
			return dir, nil
		}
		tried = append(tried, dir)
	}
	if spec.WhenMissing == api.WhenMissingIgnore {
		return "", nil
	}
	return "", fmt.Errorf("for cluster %s the commit has no directory %s; add it, or write whenMissing: %s if the cluster is to get nothing",
		c.Name, strings.Join(tried, " and no directory "), api.WhenMissingIgnore)
}
