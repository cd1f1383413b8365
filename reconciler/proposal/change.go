package proposal

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/proposal/edit"
	"github.com/gitfleet/gitfleet/reconciler/proposal/rollback"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A change is one distinct change of an object: the same fields have the same values on one or more
// clusters.
type change struct {
	// hash identifies the change, also across restarts.
	hash string
	id   api.ID
	// object is the object as Git wants it on the first of the clusters, and source the line of the first changed field
	// in Git, or else of the object. They are zero if they are not known.
	object map[string]any
	source api.Origin
	// link is the address of source on the forge; empty if it is not known.
	link string
	// reason is the reason why no edit of the files can express the change; nil if one can.
	// partial says that an edit could if all clusters that get the object had the change: the
	// other clusters may report the same change a moment later.
	reason  error
	partial bool
	// files are the files that the edit changes, and paths the fields of the object.
	files []edit.FileChange
	paths []api.Difference
	// deleted says that the object is gone from the clusters.
	deleted bool
	// addition says that something was added beside what the manifest sets.
	addition bool
	// drifts are the drifts of the change, by cluster.
	drifts []*status.Drift
	// override names the override that the edit changes; empty if the edit is for all clusters.
	// In that case others are the clusters that have the object as it is in Git.
	override string
	others   []string
	// holders is the number of clusters that get the object; zero if it is not known.
	holders int
	// target is the change for an [edit.Editor], and memo identifies it with the clusters that have it and that do not.
	target edit.Target
	memo   string
	// rollback is set if the change undoes content that has failed. It has neither an object nor drifts.
	rollback *rollback.Offer
	// putsBack are the other held changes of the object that the commit of this one puts back, by hash.
	putsBack []*change
}

// A notOffered is a change that is not offered, and why.
type notOffered struct {
	change  *change
	state   State
	message string
	// undecided says that the change may be offered later.
	undecided bool
}

// clusters returns the clusters that have the change.
func (c *change) clusters() []string {
	var out []string
	for _, d := range c.drifts {
		out = append(out, d.Cluster)
	}
	return out
}

// first returns when the change was first seen on any cluster.
func (c *change) first() time.Time {
	if c.rollback != nil {
		return c.rollback.Failed.At
	}
	return slices.MinFunc(c.drifts, func(a, b *status.Drift) int { return a.Since.Compare(b.Since) }).Since
}

// shortName is the beginning of the name of a change, which is enough for commands.
func (c *change) shortName() string { return c.hash[:min(len(c.hash), 8)] }

// A State is the state of the decision about a held change.
type State string

// The states of a held change.
const (
	// Waiting: there is no pull request or issue yet.
	Waiting State = "waiting"
	// Open: the pull request or issue is open.
	Open State = "open"
	// Merged: the pull request is merged, and its commit is not in force on the clusters yet.
	Merged State = "merged"
	// Closed: the pull request was closed without being merged, or the issue was closed. The
	// change is reverted.
	Closed State = "closed"
	// OnHold: the closed pull request or issue has the label that keeps the object as it is.
	OnHold State = "on-hold"
	// Expired: gitfleet has closed the pull request or issue, since nobody decided about it. The object stays as it is.
	Expired State = "expired"
	// Reported: the change is only reported, as its drift mode says.
	Reported State = "reported"
	// Inexpressible: no edit of the files in Git can express the change, and it cannot be
	// offered as an issue. It is reverted, once it has lasted for MinAge if other clusters may
	// have the same change.
	Inexpressible State = "inexpressible"
	// Unsettled: the commit in force already has the change, or not enough is known about it
	// yet.
	Unsettled State = "unsettled"
)

// newChange returns the change of a drift, without drifts. A deletion has no fields. A change that is
// only reported is not the same as an equal one that is offered.
func newChange(fleet string, d *status.Drift) *change {
	c := &change{id: d.ID(), paths: d.Paths, deleted: d.Deleted, addition: d.Addition}
	fields := make([]any, 0, 2*len(d.Paths)+1)
	for _, p := range d.Paths {
		fields = append(fields, p.PatchDetail, p.MemberJSON)
	}
	if d.Digest != "" {
		fields = append(fields, d.Digest)
	}
	values := []any{fleet, c.id, fields}
	if driftRule(d).Mode == api.DriftReport {
		values = append(values, d.Rule)
	}
	if d.Addition {
		values = append(values, "addition")
	}
	c.hash = hashOf(values...)
	return c
}

// driftRule returns the rule by which a drift is held; the zero rule if it is not valid.
func driftRule(d *status.Drift) api.DriftRule {
	rule, _ := api.ParseDriftRule(d.Rule)
	return rule
}

// hashOf returns a hash of values that can be encoded as JSON.
func hashOf(values ...any) string {
	text, _ := json.Marshal(values) // strings and lists of strings can always be encoded
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
