// Package fulfilment decides whether a placement has its newest content, applied and available, on every cluster that its
// policy asks for.
//
// It is the one rule of gitfleet wait, sync --wait and status, of the end of a rollout in the metrics, and of the
// statuses of commits. What is not there does not count as done: a cluster that the policy asks for and that cannot be
// used is missing, and one that does not answer is not known to have what it last had. A placement whose policy asks for
// no cluster is fulfilled. Everything is a value, so that the daemon and its clients decide alike.
package fulfilment

// A Degree says how far something is fulfilled, the best first.
type Degree int

// The degrees.
const (
	Fulfilled   Degree = iota
	Progressing        // not yet, and it continues by itself
	Unknown            // it depends on a cluster that does not answer, and continues once that does
	Failed             // something was refused, or will not become available; it is retried
	Blocked            // nothing more happens until a user acts
)

// A Usability says whether a member cluster can be used.
type Usability int

// The states of a member.
const (
	Usable     Usability = iota
	Unanswered           // it does not answer
	Refused              // it cannot be used until a user acts: permissions are missing, or another fleet holds it
)

// A Reason is what keeps a placement on a cluster from being fulfilled; empty if nothing does.
type Reason string

// The reasons.
const (
	Suspended        Reason = "suspended"       // nothing is written there
	DeletionsBlocked Reason = "deletionsHeld"   // until a commit allows them
	DeletionRefused  Reason = "deletionRefused" // by the cluster
	ContentFailed    Reason = "failed"          // the content was refused, or will not become available
	Deleting         Reason = "deleting"        // what a commit has allowed to delete
	Waiting          Reason = "waiting"         // for its update
	Removing         Reason = "removing"        // the placement leaves the cluster
	Lingering        Reason = "lingering"       // what was deleted is not gone
	Incomplete       Reason = "incomplete"      // not everything is applied, or available, yet
	Unconfirmed      Reason = "unconfirmed"     // the cluster had it, and cannot be used now
)

// A Cluster is a placement on one cluster.
type Cluster struct {
	Usability Usability
	// Done says that what was assigned is there, as far as the cluster was last seen.
	Done                                                                               bool
	Suspended, DeletionsBlocked, Undeleted, Failed, Deleting, Waits, Removing, Lingers bool
	// Stopped says that the rollout, for which a cluster may wait, is stopped.
	Stopped bool
}

// rules are read from the top; the first that applies decides. Degrees of Progressing are those of a cluster that can be
// used.
var rules = []struct {
	when func(Cluster) bool
	Reason
	Degree
}{
	{func(c Cluster) bool { return c.Suspended && (c.Waits || !c.Done || c.Removing) }, Suspended, Blocked},
	{func(c Cluster) bool { return c.DeletionsBlocked }, DeletionsBlocked, Blocked},
	{func(c Cluster) bool { return c.Undeleted }, DeletionRefused, Failed},
	{func(c Cluster) bool { return c.Failed }, ContentFailed, Failed},
	{func(c Cluster) bool { return c.Deleting }, Deleting, Progressing},
	{func(c Cluster) bool { return c.Waits && c.Stopped }, Waiting, Blocked},
	{func(c Cluster) bool { return c.Waits }, Waiting, Progressing},
	{func(c Cluster) bool { return c.Removing }, Removing, Progressing},
	{func(c Cluster) bool { return c.Lingers }, Lingering, Progressing},
	{func(c Cluster) bool { return !c.Done }, Incomplete, Progressing},
	{func(c Cluster) bool { return c.Usability != Usable }, Unconfirmed, Progressing},
}

// Of returns how far a placement is fulfilled on a cluster, and the reason why it is not.
func (c Cluster) Of() (Degree, Reason) {
	for _, r := range rules {
		if !r.when(c) {
			continue
		}
		switch {
		case c.Usability == Refused:
			return Blocked, r.Reason
		case c.Usability == Unanswered && r.Degree == Progressing:
			return Unknown, r.Reason
		}
		return r.Degree, r.Reason
	}
	return Fulfilled, ""
}

// A Placement is the state of a placement beside that on its clusters.
type Placement struct {
	// Undecided says that nothing is decided yet, and Unscheduled that it is not scheduled as its policy asks for.
	Undecided, Unscheduled bool
	// Short is by how many clusters the selection falls short of the policy's numberOfClusters.
	Short int
	// Absent are the members that the policy asks for and that cannot be chosen.
	Absent []Usability
	// NoMembers says that the commit declares no member clusters at all.
	NoMembers bool
	// Clusters are the degrees on the clusters that it holds.
	Clusters []Degree
}

// Of returns how far a placement is fulfilled: the degrees of all that is missing.
func (p Placement) Of() Tally {
	var t Tally
	for _, d := range p.Clusters {
		t.Add(d)
	}
	mayCome := 0
	for _, usability := range p.Absent {
		if usability != Refused {
			mayCome++
		}
	}
	// Too few are left to come: those that do change nothing.
	never := p.Unscheduled && mayCome < max(1, p.Short)
	for _, usability := range p.Absent {
		if usability == Refused || never {
			t.Add(Blocked)
		} else {
			t.Add(Unknown)
		}
	}
	switch {
	case p.Undecided:
		t.Add(Progressing)
	case p.NoMembers, never && len(p.Absent) == 0:
		t.Add(Blocked)
	}
	return t
}

// A Tally counts what is not fulfilled, by degree. The zero Tally is fulfilled.
type Tally struct{ Progressing, Unknown, Failed, Blocked int }

// Add adds something of a degree.
func (t *Tally) Add(d Degree) {
	switch d {
	case Progressing:
		t.Progressing++
	case Unknown:
		t.Unknown++
	case Failed:
		t.Failed++
	case Blocked:
		t.Blocked++
	}
}

// Merge adds what another tally counts.
func (t *Tally) Merge(of Tally) {
	t.Progressing += of.Progressing
	t.Unknown += of.Unknown
	t.Failed += of.Failed
	t.Blocked += of.Blocked
}

// Fulfilled reports whether nothing is missing.
func (t Tally) Fulfilled() bool { return t == Tally{} }

// Continues reports whether something may still become fulfilled by itself.
func (t Tally) Continues() bool { return t.Progressing+t.Unknown > 0 }

// NeedsAttention reports whether something is missing for another reason than that it is in progress.
func (t Tally) NeedsAttention() bool { return t.Unknown+t.Failed+t.Blocked > 0 }
