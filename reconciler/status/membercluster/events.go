package membercluster

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/status/event"
	"github.com/gitfleet/gitfleet/reconciler/status/metadata"
)

// changeEvents are the events for what happens to a member cluster.
var changeEvents = map[ledger.MemberChange]func(Input) event.Event{
	ledger.MemberUnanswered: func(in Input) event.Event {
		return event.Warning(api.MemberClusterUnknown, unansweredMessage(in.Seen))
	},
	ledger.MemberJoined: func(Input) event.Event {
		return event.Normal(api.MemberClusterJoined, "the cluster has answered, and belongs to the fleet")
	},
	ledger.MemberReady: func(Input) event.Event {
		return event.Normal(api.MemberClusterHealthy, "the API server is ready again")
	},
	ledger.MemberUnhealthy: func(in Input) event.Event {
		return event.Warning(api.MemberClusterUnhealthy, healthy(in.Seen).Message)
	},
	ledger.MemberForbidden: func(in Input) event.Event { return event.Warning(api.PermissionsMissing, in.Seen.Denied()) },
	ledger.MemberPermitted: func(Input) event.Event {
		return event.Normal(api.PermissionsGranted, "no permission is missing any more")
	},
	ledger.MemberRestored: func(in Input) event.Event {
		return event.Warning(api.MemberClusterRestored, in.Seen.Restored.Why+"; everything there is read again, and what differs is repaired")
	},
	ledger.CredentialsUnusable: func(in Input) event.Event { return event.Warning(api.CredentialsUnusable, in.Seen.Outdated()) },
	ledger.CredentialsRenewed: func(Input) event.Event {
		return event.Normal(api.CredentialsRenewed, "the current credentials are in use")
	},
	ledger.MemberRefused: func(in Input) event.Event { return event.Warning(in.refusalReason(), in.Refusal) },
	ledger.MemberAccepted: func(Input) event.Event {
		return event.Normal(api.MemberClusterJoined, "no other fleet or member claims the cluster any more")
	},
}

// Events returns events about the changes of a member cluster since an earlier report; nil if there is none. Its state before a
// restart is not known, so that its first state is not a change.
func (in Input) Events(old *Input, now time.Time) []event.Event {
	if in.Seen == nil || old == nil && !in.Seen.Joined.IsZero() {
		return nil
	}
	var was ledger.MemberState
	if old != nil {
		was = old.state()
	}
	var out []event.Event
	for _, change := range in.state().Since(was) {
		out = append(out, changeEvents[change](in))
	}
	return event.AboutCluster(in.Declared.Name, metadata.ClusterUID(in.Declared.Name, in.Known.Created), now, out)
}

func (in Input) state() ledger.MemberState {
	return ledger.MemberState{Seen: in.Seen, Refusal: in.Refusal}
}

// LeftEvents returns the event that a cluster is no longer declared.
func LeftEvents(name string, id types.UID, now time.Time) []event.Event {
	return event.AboutCluster(name, id, now, []event.Event{event.Normal(api.MemberClusterLeft, "the cluster has left the fleet; what it holds stays there")})
}
