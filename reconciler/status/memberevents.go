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
	was := &ledger.Cluster{}
	if old != nil && old.seen != nil {
		was = old.seen
	}
	var out []Event
	denied := seen.Denied()
	switch {
	case seen.Joined.IsZero():
		if seen.Error != was.Error && denied == "" {
			out = append(out, warning(api.MemberClusterUnknown, never(seen)))
		}
	case was.Joined.IsZero():
		out = append(out, normal(api.MemberClusterJoined, "the cluster has answered, and belongs to the fleet"))
		if !seen.Healthy && denied == "" {
			out = append(out, warning(api.MemberClusterUnhealthy, healthy(seen).Message))
		}
	case was.Healthy && !seen.Healthy && denied != "":
	case was.Healthy && !seen.Healthy:
		out = append(out, warning(api.MemberClusterUnhealthy, healthy(seen).Message))
	case !was.Healthy && seen.Healthy:
		out = append(out, normal(api.MemberClusterHealthy, "the API server is ready again"))
	}
	switch {
	case denied != "" && denied != was.Denied():
		out = append(out, warning(api.PermissionsMissing, denied))
	case denied == "" && was.Denied() != "" && seen.Healthy:
		out = append(out, normal(api.PermissionsGranted, "no permission is missing any more"))
	}
	switch {
	case foreign != "" && (old == nil || old.foreign != foreign):
		out = append(out, warning(api.MemberClusterForeign, foreign))
	case foreign == "" && old != nil && old.foreign != "":
		out = append(out, normal(api.MemberClusterJoined, "no other fleet holds the cluster any more"))
	}
	return aboutCluster(in.declared.Name, clusterUID(in.declared.Name, in.known), now, out)
}

// memberLeftEvents returns the event that a cluster is no longer declared.
func memberLeftEvents(name string, id types.UID, now time.Time) []Event {
	return aboutCluster(name, id, now, []Event{
		normal(api.MemberClusterLeft, "the cluster has left the fleet; what it holds stays there"),
	})
}

func aboutCluster(name string, id types.UID, now time.Time, events []Event) []Event {
	return about(api.ClusterGroup, "MemberCluster", "", name, id, now, events)
}

// sourceEvents returns events about the changes of the repository.
func sourceEvents(was, is Source, now time.Time) []Event {
	var out []Event
	add := func(e Event, c hub.Commit) {
		e.Commit = c.Hash
		out = append(out, e)
	}
	switch {
	case is.Git.Error == was.Git.Error:
	case is.Git.Error != "":
		add(warning(api.FetchFailed, "The repository cannot be read: "+is.Git.Error), hub.Commit{})
	default:
		add(normal(api.FetchSucceeded, "The repository can be read again"), hub.Commit{})
	}
	if is.InForce.Hash != was.InForce.Hash {
		add(normal(api.CommitInForce, commitText(is.InForce)+" is in force"), is.InForce)
	}
	if why := refusalText(is); why != "" && (is.Newest.Hash != was.Newest.Hash || why != refusalText(was)) {
		stays := "and no commit is in force yet"
		if is.InForce.Hash != "" {
			stays = "and the last good one stays in force"
		}
		add(warning(api.CommitRefused, commitText(is.Newest)+" is refused, "+stays+": "+why), is.Newest)
	}
	return aboutRepository(now, out)
}

func aboutRepository(now time.Time, events []Event) []Event {
	return about(RepositoryGroup, RepositoryKind, "", RepositoryName, UID(time.Time{}, RepositoryKind, RepositoryName), now, events)
}

// refusalText is why the newest commit is not in force; empty if it is.
func refusalText(s Source) string {
	return cmp.Or(s.LoadError, s.Problems.Summary())
}

// commitText returns a commit's short hash and subject.
func commitText(c hub.Commit) string {
	const short = 12
	return fmt.Sprintf("Commit %s (%s)", c.Hash[:min(short, len(c.Hash))], cmp.Or(c.Subject, "no subject"))
}
