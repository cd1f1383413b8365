package status

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/status/event"
	"github.com/gitfleet/gitfleet/reconciler/status/metadata"
)

// memberEvents are the events for what happens to a member cluster.
var memberEvents = map[ledger.MemberChange]func(clusterInput) Event{
	ledger.MemberUnanswered: func(in clusterInput) Event {
		return event.Warning(api.MemberClusterUnknown, unansweredMessage(in.seen))
	},
	ledger.MemberJoined: func(clusterInput) Event {
		return event.Normal(api.MemberClusterJoined, "the cluster has answered, and belongs to the fleet")
	},
	ledger.MemberReady: func(clusterInput) Event {
		return event.Normal(api.MemberClusterHealthy, "the API server is ready again")
	},
	ledger.MemberUnhealthy: func(in clusterInput) Event {
		return event.Warning(api.MemberClusterUnhealthy, healthy(in.seen).Message)
	},
	ledger.MemberForbidden: func(in clusterInput) Event { return event.Warning(api.PermissionsMissing, in.seen.Denied()) },
	ledger.MemberPermitted: func(clusterInput) Event {
		return event.Normal(api.PermissionsGranted, "no permission is missing any more")
	},
	ledger.MemberRestored: func(in clusterInput) Event {
		return event.Warning(api.MemberClusterRestored, in.seen.Restored.Why+"; everything there is read again, and what differs is repaired")
	},
	ledger.CredentialsUnusable: func(in clusterInput) Event { return event.Warning(api.CredentialsUnusable, in.seen.Outdated()) },
	ledger.CredentialsRenewed: func(clusterInput) Event {
		return event.Normal(api.CredentialsRenewed, "the current credentials are in use")
	},
	ledger.MemberRefused: func(in clusterInput) Event { return event.Warning(in.refusalReason(), in.refusal) },
	ledger.MemberAccepted: func(clusterInput) Event {
		return event.Normal(api.MemberClusterJoined, "no other fleet or member holds the cluster any more")
	},
}

// events returns events about the changes of a member cluster. Its state before a restart is
// not known, so that its first state is not a change.
func (in clusterInput) events(old *clusterEntry, now time.Time) []Event {
	if in.seen == nil || old == nil && !in.seen.Joined.IsZero() {
		return nil
	}
	var was ledger.MemberState
	if old != nil {
		was = old.state()
	}
	var out []Event
	for _, change := range in.state().Since(was) {
		out = append(out, memberEvents[change](in))
	}
	return event.AboutCluster(in.declared.Name, metadata.ClusterUID(in.declared.Name, in.known.Created), now, out)
}

func (in clusterInput) state() ledger.MemberState {
	return ledger.MemberState{Seen: in.seen, Refusal: in.refusal}
}

// memberLeftEvents returns the event that a cluster is no longer declared.
func memberLeftEvents(name string, id types.UID, now time.Time) []Event {
	return event.AboutCluster(name, id, now, []Event{event.Normal(api.MemberClusterLeft, "the cluster has left the fleet; what it holds stays there")})
}

// sourceEvents returns events about the changes of the repository.
func sourceEvents(was, is Source, now time.Time) []Event {
	var out []Event
	switch {
	case is.Git.Error == was.Git.Error:
	case is.Git.Error != "":
		out = append(out, event.Warning(api.FetchFailed, "The repository cannot be read: "+is.Git.Error))
	default:
		out = append(out, event.Normal(api.FetchSucceeded, "The repository can be read again"))
	}
	if is.InForce.Hash != was.InForce.Hash {
		e := event.Normal(api.CommitInForce, commitText(is.InForce)+" is in force")
		e.Commit = is.InForce.Hash
		out = append(out, e)
	}
	if why := refusalText(is); why != "" && (is.Newest.Hash != was.Newest.Hash || why != refusalText(was)) {
		stays := "and no commit is in force yet"
		if is.InForce.Hash != "" {
			stays = "and the last good one stays in force"
		}
		e := event.Warning(api.CommitRefused, commitText(is.Newest)+" is refused, "+stays+": "+why)
		e.Commit = is.Newest.Hash
		out = append(out, e)
	}
	return event.AboutRepository(now, out)
}

// refusalText is why the newest commit is not in force; empty if it is.
func refusalText(s Source) string { return cmp.Or(s.LoadError, s.Problems.Summary()) }

// commitText returns a commit's short hash and subject.
func commitText(c hub.Commit) string {
	const short = 12
	return fmt.Sprintf("Commit %s (%s)", c.Hash[:min(short, len(c.Hash))], cmp.Or(c.Subject, "no subject"))
}
