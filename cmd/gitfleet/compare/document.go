package compare

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member"
)

// diffVersion identifies the schema of a diff in JSON. Fields of a version are never removed;
// new ones may be added.
const diffVersion = "gitfleet.dev/diff/v1"

// A diffDocument lists what a sync would change.
type diffDocument struct {
	APIVersion string `json:"apiVersion"`
	Commit     string `json:"commit,omitempty"`
	// Notes say what could not be determined although it may matter.
	Notes []string `json:"notes"`
	// Problems prevent placements from doing what their specs say.
	Problems []string      `json:"problems"`
	Clusters []diffCluster `json:"clusters"`
}

// A diffCluster has the changes on one member, or the reason why they are not known.
type diffCluster struct {
	Name    string       `json:"name"`
	Error   string       `json:"error,omitempty"`
	Changes []diffChange `json:"changes"`
}

// A diffChange is the change of one object.
type diffChange struct {
	// Effect is add, change, recreate, delete, release, differ, fail, unknown or alter.
	Effect    string `json:"effect"`
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Placement string `json:"placement"`
	// Origin is the position of the object in the repository.
	Origin    string `json:"origin,omitempty"`
	TakesOver bool   `json:"takesOver,omitempty"`
	// Suspended is the reason why the object is not written now; Effect is then "differ".
	Suspended string `json:"suspended,omitempty"`
	Message   string `json:"message,omitempty"`
	// Object is the whole object if it would be added. Fields are the changed fields of an
	// existing one.
	Object map[string]any   `json:"object,omitempty"`
	Fields []api.Difference `json:"fields,omitempty"`
}

// incomplete reports whether anything could not be determined.
func (d *diffDocument) incomplete() bool {
	return slices.ContainsFunc(d.Clusters, func(c diffCluster) bool { return c.Error != "" })
}

// differs reports whether there is a difference. Fields that a cluster alters at each apply do
// not count, since the next apply would have the same result.
func (d *diffDocument) differs() bool {
	return len(d.Problems) > 0 || slices.ContainsFunc(d.Clusters, func(c diffCluster) bool {
		return slices.ContainsFunc(c.Changes, func(x diffChange) bool { return x.Effect != string(member.Alters) })
	})
}

// text formats the document. Clusters with the same changes are grouped.
func (d *diffDocument) text() string {
	var b strings.Builder
	for _, n := range d.Notes {
		fmt.Fprintf(&b, "note: %s\n", harmlessLines(n, ""))
	}
	for _, p := range d.Problems {
		fmt.Fprintf(&b, "! %s\n", harmlessLines(p, ""))
	}
	for i, g := range output.GroupBy(d.Clusters, func(c diffCluster) string { return c.text() }) {
		if i > 0 || b.Len() > 0 {
			b.WriteString("\n")
		}
		var names []string
		for _, c := range g.Items {
			names = append(names, c.Name)
		}
		fmt.Fprintf(&b, "%s: %s", strings.Join(names, ", "), g.Key)
	}
	return b.String()
}

func (c *diffCluster) text() string {
	if c.Error != "" {
		return "cannot be compared: " + harmlessLines(c.Error, "") + "\n"
	}
	if len(c.Changes) == 0 {
		return "no difference\n"
	}
	var b strings.Builder
	b.WriteString(c.count() + "\n")
	for i := range c.Changes {
		c.Changes[i].write(&b)
	}
	return b.String()
}

// effects are the effects with their marks and nouns, in the order of the counts.
var effects = []struct {
	effect     member.Effect
	mark, verb string
}{
	{member.Adds, "+", "to add"}, {member.Changes, "~", "to change"}, {member.Recreates, "-/+", "to recreate"},
	{member.Deletes, "-", "to delete"},
	{member.Releases, "o", "to release"}, {member.Differs, "?", "to leave as it is"}, {member.Fails, "!", "to fail"},
	{member.Unknown, "?", "that cannot be compared"}, {member.Alters, "*", "altered by the cluster at each apply"},
}

func (c *diffCluster) count() string {
	n := map[string]int{}
	for _, x := range c.Changes {
		n[x.Effect]++
	}
	var parts []string
	for _, e := range effects {
		if n[string(e.effect)] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[string(e.effect)], e.verb))
		}
	}
	return strings.Join(parts, ", ")
}

func (c *diffChange) write(b *strings.Builder) {
	mark := ""
	for _, e := range effects {
		if string(e.effect) == c.Effect {
			mark = e.mark
		}
	}
	id := api.ID{Group: c.Group, Kind: c.Kind, Namespace: c.Namespace, Name: c.Name}
	fmt.Fprintf(b, "  %s %s  (%s)\n", mark, id, strings.TrimSuffix(c.Placement+", "+c.Origin, ", "))
	if c.TakesOver {
		b.WriteString("      it exists already, and would be taken over\n")
	}
	if c.Suspended != "" {
		fmt.Fprintf(b, "      %s\n", output.Sanitize(c.Suspended))
	}
	if c.Message != "" {
		fmt.Fprintf(b, "      %s\n", harmlessLines(c.Message, "      "))
	}
	if c.Object != nil {
		text, err := yaml.Marshal(c.Object)
		if err != nil {
			text = []byte(err.Error())
		}
		for line := range strings.Lines(string(text)) {
			b.WriteString("      + " + line)
		}
	}
	for _, f := range c.Fields {
		output.WriteDifference(b, "      ", f)
	}
}

// harmlessLines removes control characters from a text of several lines, and indents all lines
// but the first.
func harmlessLines(text, indent string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = output.Sanitize(line)
	}
	return strings.Join(lines, "\n"+indent)
}
