package plan

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/rollout"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// The states of an object in a report.
var (
	applyFailed  = protocol.ObjectState{ID: configMap("a"), Applied: protocol.Verdict{Cause: "forbidden"}}
	applyPending = protocol.ObjectState{ID: configMap("a"), Pending: true, Applied: protocol.Verdict{Cause: "the kind does not exist yet"}}
	notReady     = protocol.ObjectState{ID: configMap("a"), Applied: protocol.Verdict{OK: true}, Available: protocol.Verdict{Cause: "0 of 1 replicas available"}}
	crashed      = protocol.ObjectState{ID: configMap("b"), Applied: protocol.Verdict{OK: true}, Available: protocol.Verdict{Cause: "0 of 1 replicas available"}, Failure: "the image cannot be pulled"}
	suspended    = protocol.ObjectState{ID: configMap("c"), Applied: protocol.Verdict{Reason: api.Suspended, Cause: "suspended by alice"}}
)

var (
	revisionOne = placement.Revision{Commit: "v1", Hash: "1"}
	revisionTwo = placement.Revision{Commit: "v2", Hash: "2"}
)

// ledgerWith returns a ledger in which a placement is bound to the healthy cluster east, and whose
// member has sent some reports about it.
func ledgerWith(b placement.Binding, reports ...protocol.WorkSeen) (*ledger.Ledger, *ledger.Entry) {
	l, key := ledger.New(), api.PlacementKey{Name: "web"}
	l.Fold(protocol.ClusterSeen{Cluster: "east", At: noon.Add(-time.Hour), Healthy: true})
	l.SetPlacement(key, ledger.Placement{})
	b.Cluster = "east"
	l.Bind(key, b)
	for _, o := range reports {
		o.Cluster, o.Placement = "east", key
		l.Fold(o)
	}
	return l, l.Placement(key).Entry("east")
}

// The health of a cluster in the rollout follows from the member's last report about the assigned
// revision.
func TestRolloutHealth(t *testing.T) {
	assigned := noon.Add(-10 * time.Minute)
	reported := noon.Add(-time.Minute)
	seen := func(states ...protocol.ObjectState) protocol.WorkSeen {
		return protocol.WorkSeen{At: reported, WorkState: protocol.WorkState{Revision: revisionTwo, Done: true, Total: 3, Exceptions: states}}
	}
	with := func(o protocol.WorkSeen, change func(*protocol.WorkSeen)) protocol.WorkSeen {
		change(&o)
		return o
	}
	compared := func(o *protocol.WorkSeen) { o.Compared = true }
	yields := func(passing bool) func(*OnCluster) {
		return func(c *OnCluster) {
			c.change(func(in *Circumstances) {
				in.Deviation.Yields = []ledger.Yield{{ID: configMap("d"), To: api.PlacementKey{Name: "shop"}, Passing: passing}}
			})
		}
	}
	refused := func(c *OnCluster) {
		c.Content.Refused = []work.Refused{{Manifest: manifestsOf("x")[0], Cause: "generateName is not supported"}}
	}
	for name, test := range map[string]struct {
		report  protocol.WorkSeen // none if its revision is zero
		reports bool              // the strategy is ReportDiff
		change  func(*OnCluster)
		want    rollout.Seen
	}{
		"no report":                           {want: rollout.Seen{}},
		"a report about another revision":     {report: with(seen(), func(o *protocol.WorkSeen) { o.Revision = revisionOne })},
		"a report from before the assignment": {report: with(seen(), func(o *protocol.WorkSeen) { o.At = assigned.Add(-time.Second) })},
		"applying":                            {report: with(seen(), func(o *protocol.WorkSeen) { o.Done = false }), want: rollout.Seen{Hash: "2", Health: rollout.Unknown, Since: reported}},
		"available":                           {report: seen(), want: rollout.Seen{Hash: "2", Health: rollout.Available, Since: reported, UpSince: reported}},
		"untracked":                           {report: with(seen(), func(o *protocol.WorkSeen) { o.Untrackable = 1 }), want: rollout.Seen{Hash: "2", Health: rollout.Untracked, Since: reported, UpSince: reported}},
		"not available yet":                   {report: seen(notReady), want: rollout.Seen{Hash: "2", Health: rollout.Unavailable, Since: reported, DownSince: reported}},
		"not applied yet, and retried":        {report: seen(applyPending), want: rollout.Seen{Hash: "2", Health: rollout.Unavailable, Since: reported, DownSince: reported}},
		"it will not become available":        {report: seen(notReady, crashed), want: rollout.Seen{Hash: "2", Health: rollout.Unavailable, Since: reported, DownSince: reported, Failure: "ConfigMap/web/b: the image cannot be pulled"}},
		"an object is refused":                {report: seen(applyFailed, crashed), want: rollout.Seen{Hash: "2", Health: rollout.Failed, Since: reported, DownSince: reported, Failure: "ConfigMap/web/a: forbidden"}},
		"suspended objects do not count": {report: seen(suspended), change: func(c *OnCluster) {
			c.Circumstances = &Circumstances{suspendedObjects: []work.SuspendedObject{{ID: suspended.ID}}}
		}, want: rollout.Seen{Hash: "2", Health: rollout.Available, Since: reported, Partial: true}},
		"their suspension has ended":                      {report: seen(suspended), want: rollout.Seen{Hash: "2", Health: rollout.Unknown, Since: reported, Partial: true}},
		"the whole placement is suspended":                {report: seen(suspended), change: func(c *OnCluster) { c.Circumstances = &Circumstances{Suspended: "suspended by alice"} }, want: rollout.Seen{Hash: "2", Health: rollout.Available, Since: reported, Partial: true}},
		"left to another placement":                       {report: seen(), change: yields(false), want: rollout.Seen{Hash: "2", Health: rollout.Failed, Since: reported, DownSince: reported, Failure: "ConfigMap/web/d: the placement crp/shop has it on this cluster"}},
		"passing from another placement":                  {report: seen(), change: yields(true), want: rollout.Seen{Hash: "2", Health: rollout.Available, Since: reported, UpSince: reported}},
		"an object that no cluster can apply":             {report: seen(), change: refused, want: rollout.Seen{Hash: "2", Health: rollout.Failed, Since: reported, DownSince: reported, Failure: "ConfigMap/web/x: generateName is not supported"}},
		"it is in newer content":                          {report: seen(), change: func(c *OnCluster) { refused(c); c.SetLatest(revisionOne) }, want: rollout.Seen{Hash: "2", Health: rollout.Available, Since: reported, UpSince: reported}},
		"compared in an earlier mode":                     {report: with(seen(), compared), want: rollout.Seen{Hash: "2", Health: rollout.Unknown, Since: reported}},
		"compared":                                        {report: with(seen(), compared), reports: true, want: rollout.Seen{Hash: "2", Health: rollout.DiffReported, Since: reported}},
		"compared in part":                                {report: with(seen(applyFailed), compared), reports: true, want: rollout.Seen{Hash: "2", Health: rollout.DiffFailed, Since: reported, Failure: "ConfigMap/web/a: forbidden"}},
		"compared without an object of another placement": {report: with(seen(), compared), reports: true, change: yields(true), want: rollout.Seen{Hash: "2", Health: rollout.DiffFailed, Since: reported}},
		"the latest content cannot be rendered":           {report: seen(), change: func(c *OnCluster) { c.Err = errors.New("bad patch") }, want: rollout.Seen{Hash: "2", Health: rollout.Failed, Since: assigned, Failure: "bad patch"}},
		"newer content cannot be rendered":                {report: seen(), change: func(c *OnCluster) { c.Err = errors.New("bad patch"); c.SetLatest(revisionOne) }, want: rollout.Seen{Hash: "2", Health: rollout.Available, Since: reported, UpSince: reported}},
		"the assigned content cannot be rendered":         {report: seen(), change: func(c *OnCluster) { c.notRenderable = true }, want: rollout.Seen{Hash: "2", Health: rollout.Failed, Since: assigned, Failure: "the assigned content can no longer be rendered"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := placement.Binding{Assigned: revisionTwo, AssignedAt: assigned}
			var reports []protocol.WorkSeen
			if test.report.Revision != (placement.Revision{}) {
				reports = append(reports, test.report)
			}
			l, e := ledgerWith(b, reports...)
			c := &OnCluster{Binding: &e.Binding, Content: &work.Rendered{}, Entry: e, latest: &revisionTwo}
			if test.change != nil {
				test.change(c)
			}
			p := &Placement{Spec: &hub.Placement{}}
			if test.reports {
				p.Spec.Spec.Strategy.ApplyStrategy = &api.ApplyStrategy{Type: api.ReportDiff}
			}
			pl := &placementPlanner{planner: &planner{Input: Input{Ledger: l, Now: noon}}}
			if got := pl.rolloutStatus(p, c); got != test.want {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

// While a member reconnects, that content was available is no proof that it is, also not for the time that it has to last. Content that has
// failed has still failed.
func TestRolloutHealthWhileReconnecting(t *testing.T) {
	reported := noon.Add(-time.Minute)
	for name, test := range map[string]struct {
		last []protocol.ObjectState
		want rollout.Seen
	}{
		"it was available":      {nil, rollout.Seen{Hash: "2", Health: rollout.Unknown, Since: reported}},
		"it was not":            {[]protocol.ObjectState{notReady}, rollout.Seen{Hash: "2", Health: rollout.Unknown, Since: reported}},
		"an object was refused": {[]protocol.ObjectState{applyFailed}, rollout.Seen{Hash: "2", Health: rollout.Unknown, Since: reported, Failure: "ConfigMap/web/a: forbidden"}},
		"an object had failed":  {[]protocol.ObjectState{crashed}, rollout.Seen{Hash: "2", Health: rollout.Unknown, Since: reported, Failure: "ConfigMap/web/b: the image cannot be pulled"}},
	} {
		complete := protocol.WorkSeen{At: reported.Add(-time.Minute), WorkState: protocol.WorkState{Revision: revisionTwo, Done: true, Exceptions: test.last}}
		l, e := ledgerWith(placement.Binding{Assigned: revisionTwo, AssignedAt: noon.Add(-time.Hour)}, complete,
			protocol.WorkSeen{At: reported, WorkState: protocol.WorkState{Revision: revisionTwo}})
		pl := &placementPlanner{planner: &planner{Input: Input{Ledger: l, Now: noon}}}
		c := &OnCluster{Binding: &e.Binding, Content: &work.Rendered{}, Entry: e, latest: &revisionTwo}
		if got := pl.rolloutStatus(&Placement{Spec: &hub.Placement{}}, c); got != test.want {
			t.Errorf("%s: got  %+v\nwant %+v", name, got, test.want)
		}
		comparing := *e.Seen
		comparing.Compared, e.Seen = true, &comparing
		if got := c.LastKnown(); got != &comparing {
			t.Errorf("%s: what was applied counts as compared: %+v", name, got)
		}
	}
}

// The availability timeout begins when the content was first observed to be unavailable, or when
// the cluster became reachable after that, and never before the member reports after a restart.
func TestAvailabilityTimeoutBegins(t *testing.T) {
	unavailable := protocol.WorkSeen{At: noon.Add(-time.Minute), WorkState: protocol.WorkState{Revision: revisionTwo, Done: true, Exceptions: []protocol.ObjectState{notReady}}}
	for name, test := range map[string]struct {
		change func(*ledger.Ledger)
		want   time.Time
	}{
		"when it was reported": {func(*ledger.Ledger) {}, unavailable.At},
		"when the cluster became reachable": {func(l *ledger.Ledger) {
			l.Fold(protocol.ClusterSeen{Cluster: "east", At: noon.Add(-50 * time.Second), Error: "no answer"})
			l.Fold(protocol.ClusterSeen{Cluster: "east", At: noon.Add(-20 * time.Second), Healthy: true})
		}, noon.Add(-20 * time.Second)},
		"now, after a restart": {nil, noon},
	} {
		t.Run(name, func(t *testing.T) {
			l, e := ledgerWith(placement.Binding{Assigned: revisionTwo, AssignedAt: noon.Add(-time.Hour)}, unavailable)
			if test.change != nil {
				test.change(l)
			} else {
				l = reloaded(t, ledger.Memory(), l)
				e = l.Placement(api.PlacementKey{Name: "web"}).Entry("east")
			}
			pl := &planner{Input: Input{Ledger: l, Now: noon}}
			pp := &placementPlanner{planner: pl}
			if got := pp.planner.unavailableSince(&OnCluster{Binding: &e.Binding, Content: &work.Rendered{}, Entry: e}); !got.Equal(test.want) {
				t.Errorf("since %s, want %s", got, test.want)
			}
		})
	}
}

// A cluster is known to be unavailable since the member's first report that says so, and not from before
// anything that may be the cause, or in which its state was not known.
func TestClusterIsUnavailableSince(t *testing.T) {
	key, reported := api.PlacementKey{Name: "web"}, noon.Add(-10*time.Minute)
	available := protocol.WorkSeen{Cluster: "east", Placement: key, At: reported.Add(-time.Second), WorkState: protocol.WorkState{Revision: revisionTwo, Done: true}}
	unavailable := available
	unavailable.At, unavailable.Exceptions = reported, []protocol.ObjectState{notReady}
	at := func(seconds int) time.Time { return reported.Add(time.Duration(seconds) * time.Second) }
	again := func(seconds int) protocol.WorkSeen {
		o := unavailable
		o.At = at(seconds)
		return o
	}
	wrote := func(o protocol.WorkSeen) protocol.WorkSeen {
		o.Wrote = true
		return o
	}
	health := func(seconds int, healthy bool) protocol.ClusterSeen {
		return protocol.ClusterSeen{Cluster: "east", At: at(seconds), Healthy: healthy}
	}
	for name, test := range map[string]struct {
		reports []protocol.Observation
		change  func(*ledger.Ledger) *ledger.Ledger
		want    time.Time
		writing bool
	}{
		"since it was reported":            {reports: []protocol.Observation{available, unavailable, again(5)}, want: reported},
		"never available":                  {reports: []protocol.Observation{unavailable, again(5)}, want: reported},
		"since it was reported again":      {reports: []protocol.Observation{unavailable, func() protocol.WorkSeen { o := available; o.At = at(1); return o }(), again(2)}, want: at(2)},
		"a write is in progress":           {reports: []protocol.Observation{available, wrote(unavailable), again(5)}, want: reported, writing: true},
		"a write during that":              {reports: []protocol.Observation{available, unavailable, wrote(again(5))}, want: reported, writing: true},
		"available after a write":          {reports: []protocol.Observation{wrote(available), unavailable}, want: reported},
		"since the cluster is reachable":   {reports: []protocol.Observation{available, unavailable, health(2, false), health(4, true), again(5)}, want: at(4)},
		"not reported since it is":         {reports: []protocol.Observation{available, unavailable, health(2, false), health(4, true)}},
		"not reported since a restart":     {reports: []protocol.Observation{available, unavailable}, change: func(l *ledger.Ledger) *ledger.Ledger { return reloaded(t, ledger.Memory(), l) }},
		"since the report after a restart": {reports: []protocol.Observation{available, unavailable}, change: func(l *ledger.Ledger) *ledger.Ledger { l = reloaded(t, ledger.Memory(), l); l.Fold(again(8)); return l }, want: at(8)},
		"since a suspension has ended": {reports: []protocol.Observation{available, unavailable, again(30)}, change: func(l *ledger.Ledger) *ledger.Ledger {
			l.Suspend(ledger.Suspension{Subject: ledger.Subject{Placement: key}})
			l.Resume(ledger.Subject{Placement: key}, at(20))
			return l
		}, want: at(20)},
		"since one of the cluster expired": {reports: []protocol.Observation{available, unavailable, again(30)}, change: func(l *ledger.Ledger) *ledger.Ledger {
			l.Suspend(ledger.Suspension{Subject: ledger.Subject{Cluster: "east"}, Until: at(20)})
			l.Resume(ledger.Subject{Cluster: "east"}, at(21))
			return l
		}, want: at(21)},
		"of another cluster": {reports: []protocol.Observation{available, unavailable, again(30)}, change: func(l *ledger.Ledger) *ledger.Ledger {
			l.Suspend(ledger.Suspension{Subject: ledger.Subject{Cluster: "west"}})
			l.Resume(ledger.Subject{Cluster: "west"}, at(20))
			return l
		}, want: reported},
		"since another placement took part": {reports: []protocol.Observation{available, unavailable, again(30)}, change: func(l *ledger.Ledger) *ledger.Ledger {
			l.SetDeviation(key, "east", ledger.Deviation{Yields: []ledger.Yield{{ID: configMap("a")}}}, at(20))
			return l
		}, want: at(20)},
		"since no other fleet holds it": {reports: []protocol.Observation{available, unavailable, again(30)}, change: func(l *ledger.Ledger) *ledger.Ledger {
			l.SetFleet(protocol.Fleet{Name: "shop", ID: "ours"})
			o := health(10, true)
			o.Owners = []protocol.Owner{{ID: "theirs"}}
			l.Fold(o)
			l.Adopt(protocol.Adoption{Cluster: "east", ID: "theirs", At: at(20)})
			return l
		}, want: at(20)},
		"renamed": {reports: []protocol.Observation{available, unavailable, again(5)}, change: func(l *ledger.Ledger) *ledger.Ledger {
			l.Rename(ledger.Rename{From: api.PlacementKey{Name: "web"}, To: api.PlacementKey{Name: "shop"}})
			return l
		}, want: reported},
		"found in an inventory": {change: func(*ledger.Ledger) *ledger.Ledger {
			l, o := ledger.New(), health(-60, true)
			o.Inventories = []protocol.InventorySeen{{Placement: key, Revision: revisionTwo}}
			l.Fold(o)
			l.Fold(unavailable)
			return l
		}, want: reported},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := ledgerWith(placement.Binding{Assigned: revisionTwo, AssignedAt: noon.Add(-time.Hour)})
			for _, o := range test.reports {
				l.Fold(o)
			}
			if test.change != nil {
				l = test.change(l)
			}
			record := l.Placement(key)
			if to := record.Into; to != (api.PlacementKey{}) {
				record = l.Placement(to)
			}
			e := record.Entry("east")
			pl := &placementPlanner{planner: &planner{Input: Input{Ledger: l, Now: noon}}}
			got := pl.rolloutStatus(&Placement{Spec: &hub.Placement{}}, &OnCluster{Binding: &e.Binding, Content: &work.Rendered{}, Entry: e, latest: &revisionTwo})
			if !got.DownSince.Equal(test.want) || got.Writing != test.writing {
				t.Errorf("%+v, want since %s", got, test.want)
			}
		})
	}
}

// The message about an availability timeout names the first object that is not available.
func TestTimeoutNamesTheObject(t *testing.T) {
	for name, test := range map[string]struct {
		states   []protocol.ObjectState
		timedOut bool
		want     string
	}{
		"not available":    {[]protocol.ObjectState{notReady}, true, "not available after 10m: ConfigMap/web/a: 0 of 1 replicas available"},
		"not applied":      {[]protocol.ObjectState{applyPending, crashed}, true, "not available after 10m: ConfigMap/web/a: the kind does not exist yet"},
		"suspended before": {[]protocol.ObjectState{suspended, notReady}, true, "not available after 10m: ConfigMap/web/a: 0 of 1 replicas available"},
		"only drifted":     {[]protocol.ObjectState{{ID: configMap("a"), Applied: protocol.Verdict{OK: true}, Available: protocol.Verdict{OK: true}, Drift: true}}, true, "not available after 10m"},
		"another failure":  {[]protocol.ObjectState{notReady}, false, "not available after 10m"},
	} {
		_, e := ledgerWith(placement.Binding{Assigned: revisionTwo}, protocol.WorkSeen{At: noon, WorkState: protocol.WorkState{Revision: revisionTwo, Done: true, Exceptions: test.states}})
		c := &OnCluster{Binding: &e.Binding, Content: &work.Rendered{}, Entry: e}
		c.setFailure(rollout.Failure{Cluster: "east", Reason: "not available after 10m", TimedOut: test.timedOut})
		if c.Unusual().Failure != test.want || c.TimedOut != test.timedOut {
			t.Errorf("%s: %q, timed out: %t, want %q", name, c.Unusual().Failure, c.TimedOut, test.want)
		}
	}
}

// If drift on a waiting cluster is not reverted because its content is not known, the message says
// why.
func TestNotRepairedReason(t *testing.T) {
	const prefix = "; until then it is left as it is, and drift there is not reverted: commit v1, which its content comes from, "
	lost := map[string]error{"v1": errors.New("it is gone")}
	for name, test := range map[string]struct {
		change func(*OnCluster)
		in     Input
		want   string
	}{
		"the commit is lost":           {func(*OnCluster) {}, Input{Lost: lost}, prefix + "cannot be loaded, which is retried (it is gone)"},
		"the commit renders otherwise": {func(*OnCluster) {}, Input{}, prefix + "renders to other content now"},
		"the commit was loaded since":  {func(*OnCluster) {}, Input{Lost: lost, Past: map[string]*hub.Snapshot{"v1": {}}}, prefix + "renders to other content now"},
		"the content is known":         {func(c *OnCluster) { c.PreviousContent = &work.Rendered{} }, Input{Lost: lost}, ""},
		"the content is not rendered":  {func(c *OnCluster) { c.notRenderable = true }, Input{Lost: lost}, ""},
		"the commit is being loaded":   {func(c *OnCluster) { c.Circumstances = &Circumstances{loading: "v1"} }, Input{}, ""},
		"it has the latest content":    {func(c *OnCluster) { c.SetLatest(c.Binding.Assigned) }, Input{Lost: lost}, ""},
		"a new binding":                {func(c *OnCluster) { c.Entry = nil }, Input{Lost: lost}, ""},
		"nothing was assigned":         {func(c *OnCluster) { c.Entry = &ledger.Entry{} }, Input{Lost: lost}, ""},
	} {
		b := placement.Binding{Cluster: "east", Assigned: revisionOne}
		c := &OnCluster{Binding: &b, Content: &work.Rendered{}, Entry: &ledger.Entry{Binding: b}, latest: &revisionTwo}
		test.change(c)
		pl := &planner{Input: test.in}
		if got := pl.notRepairedReason(c); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// A cluster that cannot be used is unreachable for the rollout, with the reason. The latest revision
// of a paused cluster is not known.
func TestRolloutBinding(t *testing.T) {
	for name, test := range map[string]struct {
		seen        *protocol.ClusterSeen
		foreign     string
		paused      bool
		unreachable bool
		why         string
	}{
		"healthy":                     {seen: &protocol.ClusterSeen{Healthy: true}},
		"never seen":                  {unreachable: true},
		"no answer":                   {seen: &protocol.ClusterSeen{Error: "no answer"}, unreachable: true},
		"no permissions":              {seen: &protocol.ClusterSeen{Error: "forbidden", Forbidden: []string{"list pods"}}, unreachable: true, why: "permissions are missing on it"},
		"some permissions":            {seen: &protocol.ClusterSeen{Healthy: true, Forbidden: []string{"list pods"}}},
		"another fleet":               {seen: &protocol.ClusterSeen{Healthy: true}, foreign: "held", unreachable: true, why: "another fleet has claimed it"},
		"another fleet, and no right": {seen: &protocol.ClusterSeen{Forbidden: []string{"list pods"}}, foreign: "held", unreachable: true, why: "another fleet has claimed it"},
		"paused":                      {seen: &protocol.ClusterSeen{Healthy: true}, paused: true},
	} {
		l := ledger.New()
		if test.seen != nil {
			test.seen.Cluster, test.seen.At = "east", noon
			l.Fold(*test.seen)
		}
		b := placement.Binding{Cluster: "east", Assigned: revisionOne}
		c := &OnCluster{Binding: &b, Content: &work.Rendered{}, Entry: &ledger.Entry{Binding: b}, latest: &revisionTwo, Circumstances: &Circumstances{Refusal: test.foreign, Suspended: "suspended by alice"}}
		pl := &placementPlanner{planner: &planner{Input: Input{Ledger: l, Now: noon}}}
		want := revisionTwo
		if test.paused {
			pl.planner.paused, want = map[string]string{"east": "v1"}, placement.Revision{}
		}
		got := pl.rolloutTarget(&Placement{Spec: &hub.Placement{}}, c)
		if got.Unreachable != test.unreachable || got.UnusableWhy != test.why || got.Latest != want || got.Suspended != c.Unusual().Suspended {
			t.Errorf("%s: unreachable: %t because %q, latest %v", name, got.Unreachable, got.UnusableWhy, got.Latest)
		}
	}
}

// A cluster is waiting for the reason that a user can act on first: another fleet, then missing
// permissions, then a commit that is being loaded, then the limits of the rollout.
func TestWaitingReason(t *testing.T) {
	const fleet = "clusters a b\nnamespace web\nplace web unavailable 1\nconfigmap web/one "
	for name, test := range map[string]struct {
		change func(*scene)
		want   string // a part of it
	}{
		"a limit": {func(*scene) {}, "maxUnavailable 1: waits for a to be available"},
		"another fleet": {func(s *scene) {
			s.in.Ledger.SetFleet(protocol.Fleet{Name: "shop", ID: "ours"})
			s.in.Ledger.Fold(protocol.ClusterSeen{Cluster: "b", At: s.in.Now, Forbidden: []string{"list pods"}, Owners: []protocol.Owner{{ID: "theirs"}}})
		}, "theirs"},
		"permissions": {func(s *scene) {
			s.in.Ledger.Fold(protocol.ClusterSeen{Cluster: "b", At: s.in.Now, Forbidden: []string{"list pods"}})
		}, "permissions are missing: list pods"},
		"unreachable": {func(s *scene) { s.do([]string{"down", "b"}) }, "the cluster is unreachable"},
		"suspended": {func(s *scene) {
			s.in.Ledger.Suspend(ledger.Suspension{Subject: ledger.Subject{Cluster: "b"}, By: "alice"})
		}, "suspended by alice"},
		"a commit": {func(s *scene) { s.do([]string{"restart"}) }, "commit v1, which the content of the cluster comes from, is still being loaded"},
		"a lost commit": {func(s *scene) { s.do([]string{"restart"}); s.do([]string{"lose", "v1"}) },
			"drift there is not reverted: commit v1, which its content comes from, cannot be loaded"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.commit("v1", nil, []byte(fleet+"old\n"))
			for _, step := range []string{"seen a b", "plan", "done", "plan"} {
				s.do(strings.Fields(step))
			}
			s.commit("v2", nil, []byte(fleet+"new\n"))
			s.resolve()
			s.do([]string{"slow", "web", "a"})
			test.change(s)
			if got := s.resolve().Placements.At(0).On("b").Waits; !strings.Contains(got, test.want) {
				t.Errorf("b waits for %q, want %q", got, test.want)
			}
		})
	}
}

// The budget of a rollout is of the clusters that the policy asks for, even if fewer are selected.
func TestRolloutTarget(t *testing.T) {
	for name, test := range map[string]struct {
		placement string
		lost      bool // the ledger, and c does not answer
		want      int
	}{
		"PickAll":                    {"place web", false, 3},
		"PickAll, with a filter":     {"place web near eu", false, 1},
		"PickN":                      {"place web pick 2", false, 2},
		"PickN, too few":             {"place web pick 5", false, 5},
		"PickN, the ledger was lost": {"place web pick 3", true, 3},
		"PickFixed":                  {"place web on a,nowhere", false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.commit("v1", nil, []byte("clusters a/region=eu b c\nnamespace web\n"+test.placement+"\n"))
			steps := []string{"seen a b c"}
			if test.lost {
				steps = []string{"seen a b c", "plan", "done", "down c", "forget"}
			}
			for _, step := range steps {
				s.do(strings.Fields(step))
			}
			p := s.resolve().Placements.At(0)
			if got := p.Rollout.Budget.Target; got != test.want || (p.Unanswered > 0) != test.lost {
				t.Errorf("target %d, want %d; %d unanswered", got, test.want, p.Unanswered)
			}
		})
	}
}
