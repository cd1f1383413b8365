package ledger

import "cmp"

// A MemberState is what is known of a member cluster at one moment.
type MemberState struct {
	Seen    *Cluster // nil before the first probe
	Refusal string   // why nothing is written to the cluster; see Ledger.Refusal
}

// MemberStateOf returns what a ledger knows of a member cluster.
func MemberStateOf(l *Ledger, name string) MemberState {
	return MemberState{Seen: l.Cluster(name), Refusal: l.Refusal(name)}
}

// A MemberChange is something that has happened to a member cluster. The history and the events for kubectl are written from
// the same changes.
type MemberChange string

// The changes.
const (
	MemberUnanswered    MemberChange = "unanswered" // it has never answered; the error has changed
	MemberJoined        MemberChange = "joined"     // it has answered for the first time
	MemberReady         MemberChange = "ready"      // it answers again
	MemberUnhealthy     MemberChange = "unhealthy"  // it does not answer any more, or is not ready
	MemberForbidden     MemberChange = "forbidden"  // permissions are missing, or others than before
	MemberPermitted     MemberChange = "permitted"  // no permission is missing any more
	MemberRestored      MemberChange = "restored"   // it was restored to an earlier state
	CredentialsUnusable MemberChange = "credentialsUnusable"
	CredentialsRenewed  MemberChange = "credentialsRenewed"
	MemberRefused       MemberChange = "refused"  // another fleet or another member has claimed it
	MemberAccepted      MemberChange = "accepted" // none does any more
)

// Since returns what has happened to a member cluster since an earlier state, in the order in which the changes are reported.
func (is MemberState) Since(was MemberState) (changes []MemberChange) {
	if is.Seen == nil {
		return nil
	}
	add := func(c MemberChange, happened bool) {
		if happened {
			changes = append(changes, c)
		}
	}
	now, before := is.Seen, cmp.Or(was.Seen, &Cluster{})
	denied, deniedBefore := now.Denied(), before.Denied()
	member, joins := !now.Joined.IsZero(), before.Joined.IsZero()
	add(MemberRestored, !now.Restored.Equal(before.Restored))
	add(MemberUnanswered, !member && denied == "" && (was.Seen == nil || now.Error != before.Error))
	add(MemberJoined, member && joins)
	add(MemberReady, member && !joins && now.Healthy && !before.Healthy)
	// While permissions are missing, a cluster is not healthy either; then only they are reported.
	add(MemberUnhealthy, member && denied == "" && !now.Healthy && (joins || before.Healthy || deniedBefore != ""))
	add(MemberForbidden, denied != "" && denied != deniedBefore)
	add(MemberPermitted, denied == "" && deniedBefore != "" && now.Healthy)
	add(CredentialsUnusable, now.Unrenewed != "" && before.Unrenewed == "")
	add(CredentialsRenewed, now.Unrenewed == "" && before.Unrenewed != "" && now.Healthy)
	add(MemberRefused, is.Refusal != "" && is.Refusal != was.Refusal)
	add(MemberAccepted, is.Refusal == "" && was.Refusal != "")
	return changes
}
