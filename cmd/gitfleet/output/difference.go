package output

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

// WriteDifference writes one field, with the live value as removed and the value in Git as
// added.
func WriteDifference(b *strings.Builder, indent string, d api.Difference) {
	fmt.Fprintf(b, "%s%s", indent, Sanitize(d.Path))
	if len(d.By) > 0 {
		fmt.Fprintf(b, "  (by %s)", Sanitize(Managers(d.By)))
	}
	b.WriteString("\n")
	writeValue(b, indent+"  - ", d.ValueInMember)
	writeValue(b, indent+"  + ", d.ValueInHub)
}

// WriteChange writes one field as a change of Git: the value in Git is removed, and that of the
// member is added.
func WriteChange(b *strings.Builder, indent string, d api.Difference) {
	fmt.Fprintf(b, "%s%s\n", indent, Sanitize(d.Path))
	writeValue(b, indent+"  - ", d.ValueInHub)
	writeValue(b, indent+"  + ", d.ValueInMember)
}

// writeValue writes the lines of a value after a mark; none if there is no value.
func writeValue(b *strings.Builder, mark, value string) {
	if value == "" {
		return
	}
	for _, line := range strings.Split(strings.TrimSuffix(value, "\n"), "\n") {
		fmt.Fprintf(b, "%s%s\n", mark, Sanitize(line))
	}
}

// Managers returns the names of field managers, without duplicates.
func Managers(by []api.Actor) string {
	var out []string
	for _, a := range by {
		if !slices.Contains(out, a.Manager) {
			out = append(out, a.Manager)
		}
	}
	return cmp.Or(strings.Join(out, ","), "-")
}
