package placement

import (
	"fmt"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

// SetProperty sets a property, replacing its previous value. A value that is not a quantity
// makes it Malformed. The cluster's Properties must not be nil.
func (c *Cluster) SetProperty(name, value string) {
	q, err := api.ParseQuantity(value)
	if err == nil {
		c.Properties[name] = q
		delete(c.Malformed, name)
		return
	}
	if c.Malformed == nil {
		c.Malformed = map[string]string{}
	}
	c.Malformed[name] = value
	delete(c.Properties, name)
}

// unreadable lists the properties that the policy uses and whose value on the cluster is not a
// quantity. In KubeFleet the whole placement fails in that case; here they count as unknown,
// and the decision says so.
func (c *cycle) unreadable(m *Cluster) string {
	if len(m.Malformed) == 0 {
		return ""
	}
	var all []string
	for _, name := range c.rules.usedProperties {
		if value, bad := m.Malformed[name]; bad {
			all = append(all, fmt.Sprintf("property %q is unknown, because its value %q is not a quantity", name, value))
		}
	}
	return strings.Join(all, "; ")
}

// noteProperties adds notes about properties that no cluster reports, or only with invalid
// values.
func (c *cycle) noteProperties() {
	for _, name := range c.rules.usedProperties {
		known, bad := 0, []string(nil)
		for _, m := range c.members {
			if _, ok := m.Properties[name]; ok {
				known++
			}
			if value, ok := m.Malformed[name]; ok {
				bad = append(bad, fmt.Sprintf("%s (%q)", m.Name, value))
			}
		}
		switch {
		case len(bad) > 0:
			c.rules.addNote(fmt.Sprintf("property %q is not a quantity on %d cluster(s) and counts as unknown there: %s", name, len(bad), firstFew(bad)))
		case known == 0 && len(c.members) > 0:
			c.rules.addNote(fmt.Sprintf("no cluster reports property %q", name))
		}
	}
}

// firstFew lists the first few names.
func firstFew(list []string) string {
	const few = 5
	if len(list) <= few {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:few], ", "), len(list)-few)
}
