package fulfilment

import "testing"

// The first rule that applies decides; a cluster that does not answer, or cannot be used, changes what comes of it.
func TestCluster(t *testing.T) {
	for name, test := range map[string]struct {
		of   Cluster
		want Degree
		why  Reason
	}{
		"done":                            {Cluster{Done: true}, Fulfilled, ""},
		"nothing seen":                    {Cluster{}, Progressing, Incomplete},
		"waits":                           {Cluster{Done: true, Waits: true}, Progressing, Waiting},
		"waits for a stopped rollout":     {Cluster{Done: true, Waits: true, Stopped: true}, Blocked, Waiting},
		"done in a stopped rollout":       {Cluster{Done: true, Stopped: true}, Fulfilled, ""},
		"failed":                          {Cluster{Failed: true}, Failed, ContentFailed},
		"failed after it was available":   {Cluster{Done: false, Failed: true}, Failed, ContentFailed},
		"suspended and done":              {Cluster{Done: true, Suspended: true}, Fulfilled, ""},
		"suspended before its update":     {Cluster{Done: true, Suspended: true, Waits: true}, Blocked, Suspended},
		"suspended and not available":     {Cluster{Suspended: true}, Blocked, Suspended},
		"suspended while it is removed":   {Cluster{Done: true, Suspended: true, Removing: true}, Blocked, Suspended},
		"deletions held":                  {Cluster{Done: true, DeletionsBlocked: true}, Blocked, DeletionsBlocked},
		"deletion refused":                {Cluster{Done: true, Undeleted: true}, Failed, DeletionRefused},
		"deletion allowed":                {Cluster{Done: true, Deleting: true}, Progressing, Deleting},
		"removing":                        {Cluster{Removing: true, Lingers: true}, Progressing, Removing},
		"deleted and not gone":            {Cluster{Done: true, Lingers: true}, Progressing, Lingering},
		"gone for weeks":                  {Cluster{Done: true, Usability: Unanswered}, Unknown, Unconfirmed},
		"gone during its update":          {Cluster{Usability: Unanswered}, Unknown, Incomplete},
		"gone before its update":          {Cluster{Done: true, Waits: true, Usability: Unanswered}, Unknown, Waiting},
		"gone in a stopped rollout":       {Cluster{Waits: true, Stopped: true, Usability: Unanswered}, Blocked, Waiting},
		"gone and to be removed":          {Cluster{Removing: true, Usability: Unanswered}, Unknown, Removing},
		"suspended and gone":              {Cluster{Done: true, Suspended: true, Usability: Unanswered}, Unknown, Unconfirmed},
		"held by another fleet":           {Cluster{Done: true, Usability: Refused}, Blocked, Unconfirmed},
		"without permissions, and waits":  {Cluster{Waits: true, Usability: Refused}, Blocked, Waiting},
		"without permissions, and failed": {Cluster{Failed: true, Usability: Refused}, Blocked, ContentFailed},
	} {
		t.Run(name, func(t *testing.T) {
			if got, why := test.of.Of(); got != test.want || why != test.why {
				t.Errorf("%d %q, want %d %q", got, why, test.want, test.why)
			}
		})
	}
}

// No empty set is a success by itself: only a placement whose policy asks for no cluster is fulfilled on none.
func TestPlacement(t *testing.T) {
	for name, test := range map[string]struct {
		of                              Placement
		fulfilled, continues, attention bool
	}{
		"on all clusters":                     {Placement{Clusters: []Degree{Fulfilled, Fulfilled}}, true, false, false},
		"its policy asks for none":            {Placement{}, true, false, false},
		"no members at all":                   {Placement{NoMembers: true}, false, false, true},
		"no member has answered":              {Placement{Absent: []Usability{Unanswered, Unanswered}}, false, true, true},
		"one of three has not answered":       {Placement{Absent: []Usability{Unanswered}, Clusters: []Degree{Fulfilled, Fulfilled}}, false, true, true},
		"all held by another fleet":           {Placement{Absent: []Usability{Refused, Refused}}, false, false, true},
		"one held, one not connected":         {Placement{Absent: []Usability{Refused, Unanswered}}, false, true, true},
		"lacks a namespace everywhere":        {Placement{Absent: []Usability{Usable}}, false, true, true},
		"three of five":                       {Placement{Unscheduled: true, Clusters: []Degree{Fulfilled, Fulfilled, Fulfilled}}, false, false, true},
		"three of five, and one may come":     {Placement{Unscheduled: true, Absent: []Usability{Unanswered}, Clusters: []Degree{Fulfilled}}, false, true, true},
		"three of five, and both may come":    {Placement{Unscheduled: true, Short: 2, Absent: []Usability{Unanswered, Unanswered}, Clusters: []Degree{Fulfilled}}, false, true, true},
		"three of five, and only one may":     {Placement{Unscheduled: true, Short: 2, Absent: []Usability{Unanswered}, Clusters: []Degree{Fulfilled}}, false, false, true},
		"three of five, and one of two may":   {Placement{Unscheduled: true, Short: 2, Absent: []Usability{Unanswered, Refused}, Clusters: []Degree{Fulfilled}}, false, false, true},
		"the same while one is under way":     {Placement{Unscheduled: true, Short: 2, Absent: []Usability{Unanswered}, Clusters: []Degree{Progressing}}, false, true, true},
		"three of five, and one may not":      {Placement{Unscheduled: true, Absent: []Usability{Refused}, Clusters: []Degree{Fulfilled}}, false, false, true},
		"not decided yet":                     {Placement{Undecided: true}, false, true, false},
		"under way":                           {Placement{Clusters: []Degree{Fulfilled, Progressing}}, false, true, false},
		"one failed":                          {Placement{Clusters: []Degree{Fulfilled, Failed}}, false, false, true},
		"one suspended, another is under way": {Placement{Clusters: []Degree{Blocked, Progressing}}, false, true, true},
		"every member unreachable":            {Placement{Clusters: []Degree{Unknown, Unknown}}, false, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			var got Tally
			got.Merge(test.of.Of())
			if got.Fulfilled() != test.fulfilled || got.Continues() != test.continues || got.NeedsAttention() != test.attention {
				t.Errorf("fulfilled %t, continues %t, needs attention %t: %+v", got.Fulfilled(), got.Continues(), got.NeedsAttention(), got)
			}
		})
	}
}
