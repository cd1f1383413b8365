package placement

import (
	"fmt"
	"strings"
)

// unreadable names the properties that the policy looks at and whose value on
// the cluster is no quantity. KubeFleet gives up on the whole placement there;
// here they are unknown, and the decision says so.
func (c *cycle) unreadable(m *Cluster) string {
	if len(m.Malformed) == 0 {
		return ""
	}
	var b strings.Builder
	for _, name := range c.looked {
		if value, bad := m.Malformed[name]; bad {
			fmt.Fprintf(&b, "; property %q is unknown, because its value %q is not a quantity", name, value)
		}
	}
	return b.String()
}

// noteProperties tells of properties that nobody reports, or only badly.
func (c *cycle) noteProperties() {
	c.looked = c.properties()
	for _, name := range c.looked {
		known, bad := 0, []string(nil)
		for _, m := range c.fleet {
			if _, ok := m.Properties[name]; ok {
				known++
			}
			if value, ok := m.Malformed[name]; ok {
				bad = append(bad, fmt.Sprintf("%s (%q)", m.Name, value))
			}
		}
		switch {
		case len(bad) > 0:
			c.note(fmt.Sprintf("property %q is not a quantity on %d cluster(s) and counts as unknown there: %s", name, len(bad), some(bad)))
		case known == 0 && len(c.fleet) > 0:
			c.note(fmt.Sprintf("no cluster reports property %q", name))
		}
	}
}

// some lists the first few.
func some(list []string) string {
	const few = 5
	if len(list) <= few {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:few], ", "), len(list)-few)
}
