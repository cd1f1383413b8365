package placement

// A class is the state of a placement on a cluster at the start of a scheduling cycle; scaleDown
// changes that of the surplus.
type class int

const (
	free         class = iota // without a binding
	unscheduled               // its content is being removed
	reconsidered              // selected by an earlier policy
	bound                     // selected by the current policy
)

// A clusterState is one cluster in one scheduling cycle.
type clusterState struct {
	*Cluster
	index int
	class class
	old   *Binding // the binding at the start; nil if there was none
	// current is the binding at the end: old if it did not change, nil if there is none.
	current *Binding

	objection string // why a filter refuses it; not evaluated for bound clusters
	affinity  int32
	spread    int32
	forbidden int  // index of the violated spread constraint, or -1
	chosen    bool // in this cycle
	// reason replaces the reason of the binding, or is the reason of a cluster without one.
	reason string
}

// candidate reports whether the cluster may be chosen in this cycle.
func (m *clusterState) candidate() bool { return m.class != bound && m.objection == "" }

func (m *clusterState) selected() bool { return m.current != nil && !m.current.Unscheduled }
