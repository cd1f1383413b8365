package status

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// events returns events about the changes of a member cluster. Its state before a restart is
// not known, so that its first state is not a change.
func (in clusterInput) events(old *clusterEntry, now time.Time) []Event {
	seen, foreign := in.seen, in.foreign
	if seen == nil || old == nil && !seen.Joined.IsZero() {
		return nil
	}
	was, wasForeign := &ledger.Cluster{}, ""
	if old != nil {
		was, wasForeign = cmp.Or(old.seen, was), old.foreign
	}
	var out []Event
	denied, joins := seen.Denied(), was.Joined.IsZero()
	switch {
	case seen.Joined.IsZero():
		if seen.Error != was.Error && denied == "" {
			out = append(out, warning(api.MemberClusterUnknown, never(seen)))
		}
	case joins:
		out = append(out, normal(api.MemberClusterJoined, "the cluster has answered, and belongs to the fleet"))
	case !was.Healthy && seen.Healthy:
		out = append(out, normal(api.MemberClusterHealthy, "the API server is ready again"))
	}
	if !seen.Joined.IsZero() && (joins || was.Healthy) && !seen.Healthy && denied == "" {
		out = append(out, warning(api.MemberClusterUnhealthy, healthy(seen).Message))
	}
	switch {
	case denied != "" && denied != was.Denied():
		out = append(out, warning(api.PermissionsMissing, denied))
	case denied == "" && was.Denied() != "" && seen.Healthy:
		out = append(out, normal(api.PermissionsGranted, "no permission is missing any more"))
	}
	if !seen.Restored.Equal(was.Restored) {
		out = append(out, warning(api.MemberClusterRestored, seen.Restored.Why+"; everything there is read again, and what differs is repaired"))
	}
	switch outdated := seen.Outdated(); {
	case outdated != "" && was.Unrenewed == "":
		out = append(out, warning(api.CredentialsUnusable, outdated))
	case outdated == "" && was.Unrenewed != "" && seen.Healthy:
		out = append(out, normal(api.CredentialsRenewed, "the current credentials are in use"))
	}
	switch {
	case foreign == wasForeign:
	case foreign != "":
		out = append(out, warning(in.foreignReason(), foreign))
	default:
		out = append(out, normal(api.MemberClusterJoined, "no other fleet or member holds the cluster any more"))
	}
	return aboutCluster(in.declared.Name, clusterUID(in.declared.Name, in.known), now, out)
}

// memberLeftEvents returns the event that a cluster is no longer declared.
func memberLeftEvents(name string, id types.UID, now time.Time) []Event {
	return aboutCluster(name, id, now, []Event{normal(api.MemberClusterLeft, "the cluster has left the fleet; what it holds stays there")})
}

// sourceEvents returns events about the changes of the repository.
func sourceEvents(was, is Source, now time.Time) []Event {
	var out []Event
	switch {
	case is.Git.Error == was.Git.Error:
	case is.Git.Error != "":
		out = append(out, warning(api.FetchFailed, "The repository cannot be read: "+is.Git.Error))
	default:
		out = append(out, normal(api.FetchSucceeded, "The repository can be read again"))
	}
	if is.InForce.Hash != was.InForce.Hash {
		e := normal(api.CommitInForce, commitText(is.InForce)+" is in force")
		e.Commit = is.InForce.Hash
		out = append(out, e)
	}
	if why := refusalText(is); why != "" && (is.Newest.Hash != was.Newest.Hash || why != refusalText(was)) {
		stays := "and no commit is in force yet"
		if is.InForce.Hash != "" {
			stays = "and the last good one stays in force"
		}
		e := warning(api.CommitRefused, commitText(is.Newest)+" is refused, "+stays+": "+why)
		e.Commit = is.Newest.Hash
		out = append(out, e)
	}
	return aboutRepository(now, out)
}

// refusalText is why the newest commit is not in force; empty if it is.
func refusalText(s Source) string { return cmp.Or(s.LoadError, s.Problems.Summary()) }

// commitText returns a commit's short hash and subject.
func commitText(c hub.Commit) string {
	const short = 12
	return fmt.Sprintf("Commit %s (%s)", c.Hash[:min(short, len(c.Hash))], cmp.Or(c.Subject, "no subject"))
}
