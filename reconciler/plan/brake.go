package plan

import (
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// AllowTrailer in a commit's message releases deletions that the brake holds:
// those of the placements it names, as crp/NAME, rp/NAMESPACE/NAME or NAME,
// separated by commas, or of all for "*".
const AllowTrailer = "Gitfleet-Allow-Delete"

// Allows reports whether the message of a commit allows what the commit deletes of a
// placement.
func Allows(message string, key api.PlacementKey) bool {
	for _, name := range allowed(message) {
		if name == "*" || name == key.String() || name == strings.TrimPrefix(key.String(), "crp/") || name == strings.TrimPrefix(key.String(), "rp/") {
			return true
		}
	}
	return false
}

// allowed lists what the trailers of a message name. As in Git, trailers are
// the lines of the last paragraph.
func allowed(message string) []string {
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

// Empties says why a snapshot must not come into force: it has nothing of what
// was there before. Such a commit is a mistake far more often than a wish, and
// is taken at its word only with the trailer "*". The answer is empty if it may.
func Empties(head *hub.Snapshot, l *ledger.Ledger) string {
	for _, name := range allowed(head.Commit.Message) {
		if name == "*" {
			return ""
		}
	}
	const mend = "; if that is meant, say so with the trailer \"" + AllowTrailer + ": *\" in the message of a commit"
	switch {
	case len(l.Clusters()) > 0 && len(head.Clusters) == 0:
		return "the commit has no MemberCluster left, and would leave every cluster" + mend
	case len(l.Placements()) > 0 && len(head.Placements) == 0:
		return "the commit has no placement left, and would remove everything from every cluster" + mend
	}
	return ""
}
