// Package variable resolves variables in texts of the repository, such as ${cluster.name}, for a cluster.
//
// Parse reads one variable, and Split all of a text. No value is looked through for variables again.
package variable

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Cluster has the values of variables.
type Cluster struct {
	Name string
	// Labels and Properties are those of the MemberCluster; properties are its declared ones.
	Labels, Properties map[string]string
	// Vars are the values of the ClusterVars of the repository.
	Vars map[string]string
}

// What a variable stands for.
const (
	Name       = "name"
	Labels     = "labels"
	Properties = "properties"
	Vars       = "vars"
)

// A Variable stands for a value of the cluster.
type Variable struct {
	// Text is the variable as it is written.
	Text string
	// Of is Name, Labels, Properties or Vars; Key is that of the label, the property or the variable.
	Of, Key string
	// Fallback is the value if the cluster has none and HasDefault is set.
	Fallback   string
	HasDefault bool
}

// KnownInPaths describes the variables of a cluster, and Known those of manifests as well.
const (
	KnownInPaths = "${cluster.name}, ${cluster.labels.KEY} or ${cluster.properties.KEY}, " + defaults
	Known        = "${cluster.name}, ${cluster.labels.KEY}, ${cluster.properties.KEY} or ${vars.NAME}, " + defaults
	defaults     = "each with a default such as ${cluster.labels.KEY:-TEXT}"
)

// Parse reads what is between the brackets of a variable; known describes the variables that are allowed there. The message of
// the error says how to correct it.
func Parse(inside, known string) (Variable, error) {
	v := Variable{Text: "${" + inside + "}"}
	name, fallback, hasDefault := strings.Cut(inside, ":-")
	v.Fallback, v.HasDefault = fallback, hasDefault
	if key, is := strings.CutPrefix(name, "vars."); is && key != "" {
		v.Of, v.Key = Vars, key
		return v, nil
	}
	of, is := strings.CutPrefix(name, "cluster.")
	v.Of, v.Key, _ = strings.Cut(of, ".")
	valid := v.Of == Name && v.Key == "" || (v.Of == Labels || v.Of == Properties) && v.Key != ""
	if !is || !valid {
		return v, fmt.Errorf("%s is not known; write %s", v.Text, known)
	}
	return v, nil
}

// What describes what the variable stands for.
func (v Variable) What() string {
	switch v.Of {
	case Labels:
		return "label " + v.Key
	case Properties:
		return "declared property " + v.Key
	case Vars:
		return "variable " + v.Key
	}
	return "name"
}

// A Missing is a value that a cluster does not have.
type Missing struct {
	Cluster string
	// What says what the cluster lacks and how to correct that, such as "has no label zone; add it".
	What string
}

func (e *Missing) Error() string { return "cluster " + e.Cluster + " " + e.What }

// WithoutCluster returns an error without the name of the cluster if it is a *Missing, so that it is the same for all such clusters.
func WithoutCluster(err error) error {
	if missing, is := errors.AsType[*Missing](err); is {
		return errors.New("the cluster " + missing.What)
	}
	return err
}

// Value returns the value for a cluster. The error is a *Missing.
func (v Variable) Value(c Cluster) (string, error) {
	if v.Of == Name {
		return c.Name, nil
	}
	values, fix := c.Labels, "add it to its MemberCluster"
	switch v.Of {
	case Properties:
		values, fix = c.Properties, "add the annotation "+api.PropertyAnnotationPrefix+v.Key+" to its MemberCluster"
	case Vars:
		values, fix = c.Vars, "set it in a ClusterVars"
	}
	if value, there := values[v.Key]; there {
		return value, nil
	}
	if v.HasDefault {
		return v.Fallback, nil
	}
	if near := api.Closest(v.Key, slices.Sorted(maps.Keys(values))); near != "" {
		fix = api.DidYouMean(near) + " Otherwise " + fix
	}
	return "", &Missing{c.Name, fmt.Sprintf("has no %s; %s, or write a default such as %s:-TEXT}", v.What(), fix, strings.TrimSuffix(v.Text, "}"))}
}

// MostGrowth limits the values of all variables in one object, in bytes: a variable of ten bytes may stand for many thousand.
const MostGrowth = 1 << 20

// ErrTooLarge is the error about an object that exceeds MostGrowth.
var ErrTooLarge = fmt.Errorf("variables make it larger by more than %d KiB, and it would exceed what an API server accepts; use shorter values, or fewer", MostGrowth>>10)

// starts begin the variables in a text; whatever else looks like a variable is text.
var starts = []string{"${cluster.", "${vars."}

// Split returns the variables of a text, and the texts in front of each of them and after the last. $${cluster.name} is the text
// ${cluster.name}.
func Split(text string) (texts []string, variables []Variable, err error) {
	var before strings.Builder
	for text != "" {
		i := strings.Index(text, "${")
		if i < 0 {
			break
		}
		if !isStart(text[i:]) {
			before.WriteString(text[:i+2])
			text = text[i+2:]
			continue
		}
		end := strings.IndexByte(text[i:], '}')
		if end < 0 {
			return nil, nil, fmt.Errorf("a variable lacks its closing bracket; write %s", Known)
		}
		if i > 0 && text[i-1] == '$' {
			before.WriteString(text[:i-1] + text[i:i+end+1])
		} else {
			v, err := Parse(text[i+2:i+end], Known)
			if err != nil {
				return nil, nil, err
			}
			before.WriteString(text[:i])
			texts, variables = append(texts, before.String()), append(variables, v)
			before.Reset()
		}
		text = text[i+end+1:]
	}
	before.WriteString(text)
	return append(texts, before.String()), variables, nil
}

func isStart(text string) bool {
	for _, start := range starts {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	return false
}

// In reports whether a text may have variables.
func In(text string) bool {
	return strings.Contains(text, starts[0]) || strings.Contains(text, starts[1])
}
