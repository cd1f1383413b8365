package forecast

import (
	"fmt"
	"strings"
)

// FewOf returns the first few names as a list.
func FewOf(names []string) string {
	const few = 5
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}
