package drift

import (
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

// By returns the names of actors, for a log line or message.
func By(actors []api.Actor) string {
	if len(actors) == 0 {
		return "unknown"
	}
	var names []string
	for _, a := range actors {
		names = append(names, a.String())
	}
	return strings.Join(names, ", ")
}

// Paths returns the paths of differences for a log line, without values.
func Paths(list []api.Difference) string {
	var paths []string
	for _, d := range list {
		paths = append(paths, d.Path)
	}
	return strings.Join(paths, " ")
}
