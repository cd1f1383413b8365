package work

import (
	"fmt"
	"strings"

	"github.com/gitfleet/gitfleet/placement"
)

// The variables of a patch's value.
const (
	nameVariable  = "${MEMBER-CLUSTER-NAME}"
	labelVariable = "${MEMBER-CLUSTER-LABEL-KEY-"
)

// hasVariables reports whether a value may differ between clusters.
func hasVariables(value string) bool {
	return strings.Contains(value, nameVariable) || strings.Contains(value, labelVariable)
}

// expandVariables replaces the cluster's name, and then its labels one after another until none
// is left. Nothing is escaped, since names and label values have no characters that are special
// in JSON. Text that only looks like a variable is kept.
func expandVariables(value string, c placement.Cluster) (string, error) {
	value = strings.ReplaceAll(value, nameVariable, c.Name)
	var out strings.Builder
	for rest := value; ; {
		before, after, found := strings.Cut(rest, labelVariable)
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		key, tail, closed := strings.Cut(after, "}")
		// A bracket after a quote belongs to the JSON around the variable.
		if !closed || strings.ContainsAny(key, `"\\`) {
			return "", unclosedError{value}
		}
		label, ok := c.Labels[key]
		if !ok {
			return "", fmt.Errorf("label key %s not found on cluster %s", key, c.Name)
		}
		out.WriteString(label)
		rest = tail
	}
}

// An unclosedError quotes a whole value, which may come from a Secret.
type unclosedError struct{ value string }

func (e unclosedError) Error() string {
	return fmt.Sprintf("input %s is missing the closing bracket `}`", e.value)
}
