package status

import (
	"time"

	"github.com/gitfleet/gitfleet/reconciler/status/updaterun"
)

// A Detail has what gitfleet reports of a placement beyond KubeFleet's status.
type Detail struct {
	Placement string   `json:"placement"`
	Origin    string   `json:"origin,omitempty"` // its position in the repository
	Warnings  []string `json:"warnings,omitempty"`
	Internal  string   `json:"internal,omitempty"`
	// Stopped is the cluster whose failed update stops the rollout; empty if it is not stopped.
	Stopped  string `json:"stopped,omitempty"`
	Proven   string `json:"proven,omitempty"` // the last commit whose content was available on every cluster
	Selected int    `json:"selected"`         // counts the objects it selects
	// Rollout is that of the newest content; nil before the first one, and if there was nothing to roll out.
	Rollout  *Rollout        `json:"rollout,omitempty"`
	Clusters []ClusterDetail `json:"clusters,omitempty"` // that it holds, by name
	// Absent are the clusters that would be chosen if they could be used, sorted by name. NoMembers says that the commit
	// declares no member clusters at all.
	Absent    []Absence `json:"absent,omitempty"`
	NoMembers bool      `json:"noMembers,omitempty"`
	// UpdateRun is its staged update run that is in force, or else the newest; nil if there is none.
	UpdateRun *updaterun.Run `json:"updateRun,omitempty"`
	// FailedContent is set if its newest content has failed in an update run, and was rolled back.
	FailedContent *updaterun.FailedContent `json:"failedContent,omitempty"`
	// Short is by how many clusters the selection falls short of the policy's numberOfClusters.
	Short int `json:"short,omitempty"`
}

// A Rollout is the state of the rollout of a placement's newest content.
type Rollout struct {
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished,omitzero"` // the content was available on every cluster; zero until then
	Updated  int       `json:"updated"`           // clusters that hold the newest content
	Target   int       `json:"target"`            // clusters that are wanted
	// Unavailable is the number of selected clusters that are not available, without the
	// suspended and unreachable ones that the rollout skips. MaxUnavailable is the maximum.
	Unavailable    int `json:"unavailable"`
	MaxUnavailable int `json:"maxUnavailable"`
}

// A ClusterDetail is one placement on one cluster.
type ClusterDetail struct {
	Cluster   string `json:"cluster"`
	Commit    string `json:"commit,omitempty"` // of the assigned content
	Applied   bool   `json:"applied"`          // the assigned content is applied
	Available bool   `json:"available"`
	Objects   int    `json:"objects"`
	// FailedObjects counts the objects that were refused or will not become available by
	// themselves.
	FailedObjects int `json:"failedObjects,omitempty"`
	// Behind is the number of commits that changed the content of the placement and that the
	// cluster does not have yet. BehindSince is when the first of them was seen, or could
	// come after a freeze or a window.
	Behind      int       `json:"behind,omitempty"`
	BehindSince time.Time `json:"behindSince,omitzero"`
	// Cause names the first object that is not applied, or else the first that is not available, and says why; empty if there
	// is none. Failure is the reason why the assigned content will not become available by itself; empty if it may. Both are
	// the same on all clusters where the reason is the same. Progressing says that the content is being applied or becoming
	// available.
	Cause       string `json:"cause,omitempty"`
	Failure     string `json:"failure,omitempty"`
	Progressing bool   `json:"progressing,omitempty"`
	// Waits is why the cluster does not get the newest content yet. Deferral is set if it waits for the end of a freeze or
	// the opening of a window. Their JSON fields, and that of BlockedDeletions, keep the names that their schema promises.
	Waits     string    `json:"held,omitempty"`
	Deferral  *Deferral `json:"hold,omitempty"`
	Suspended string    `json:"suspended,omitempty"` // why the placement writes nothing to the cluster; empty if it does
	Removing  bool      `json:"removing,omitempty"`  // the content is being removed
	// BlockedDeletions lists the objects that are deleted only once a commit with the trailer
	// Gitfleet-Allow-Delete allows it, each with the reason. Deleting counts those that such a
	// commit has allowed since.
	BlockedDeletions []string `json:"braked,omitempty"`
	DeletionErrors   []string `json:"deletionErrors,omitempty"` // objects whose deletion fails and is retried, and why
	Deleting         int      `json:"deleting,omitempty"`
	// Lingering are objects that have a deletion timestamp and still exist, since when, their finalizers,
	// and conditions that say why. Objects that are deleted once these are gone follow.
	Lingering []string `json:"lingering,omitempty"`
}

// A Deferral is a freeze or a closed window that new content waits for.
type Deferral struct {
	// Until is when new content may come; zero if that is not known.
	Until time.Time `json:"until,omitzero"`
	// Overdue says that it has waited for longer than the maxAge of the window.
	Overdue bool `json:"overdue,omitempty"`
}

// An Absence is a member cluster that a placement would choose if it could be used, with the reason why it
// cannot be.
type Absence struct {
	Cluster string `json:"cluster"`
	Reason  string `json:"reason"`
	// Refused says that the cluster cannot be used until a user acts; otherwise it can once it answers.
	Refused bool `json:"refused,omitempty"`
}
