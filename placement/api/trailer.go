package api

import "strings"

// AllowTrailer in a commit message releases the held deletions of the placements it names, as crp/NAME,
// rp/NAMESPACE/NAME or NAME, separated by commas, or of all placements for "*".
const AllowTrailer = "Gitfleet-Allow-Delete"

// AllowedDeletions lists the values of AllowTrailer in a message. As in Git, trailers are lines of the
// last paragraph.
func AllowedDeletions(message string) []string {
	message = strings.TrimSpace(strings.ReplaceAll(message, "\r\n", "\n"))
	if at := strings.LastIndex(message, "\n\n"); at >= 0 {
		message = message[at+2:]
	}
	var names []string
	for line := range strings.Lines(message) {
		key, value, ok := strings.Cut(line, ":")
		if !ok || !strings.EqualFold(strings.TrimSpace(key), AllowTrailer) {
			continue
		}
		for name := range strings.SplitSeq(value, ",") {
			names = append(names, strings.TrimSpace(name))
		}
	}
	return names
}
