package reconciler

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// ordered returns the result of an order in words: the answer, or "error: " and the error.
func ordered(answer string, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	return answer
}

// newOrdered returns a settled historyScene whose works orders can name.
func newOrdered(t *testing.T) *historyScene {
	c := newSettled(t)
	c.recordWorks(c.last)
	return c
}

// orders returns a run of orders at the present time.
func (c *historyScene) orders() *orderRun { return c.newOrderRun(c.now) }

func TestSubjectOfAnOrder(t *testing.T) {
	c := newOrdered(t)
	widget := func(group string) *work.Manifest {
		return &work.Manifest{Object: &api.Object{ID: api.ID{Group: group, Kind: "Widget", Namespace: "web", Name: "x"}}}
	}
	c.works["west"] = append(c.works["west"], &work.Work{Manifests: []*work.Manifest{widget("a.io"), widget("b.io")}})
	for name, test := range map[string]struct {
		order Order
		want  string
	}{
		"a placement":                      {Order{Subject: "crp/web"}, "crp/web"},
		"a placement on a cluster":         {Order{Subject: "ClusterResourcePlacement/web", Cluster: "east"}, "crp/web on east"},
		"a cluster":                        {Order{Subject: "cluster/east"}, "cluster/east"},
		"a cluster by its short name":      {Order{Subject: "mc/east"}, "cluster/east"},
		"an object":                        {Order{Subject: "cm/one", Namespace: "web"}, "ConfigMap/web/one on every cluster"},
		"an object on a cluster":           {Order{Subject: "configmap/web/one", Cluster: "west"}, "ConfigMap/web/one on west"},
		"an object without a namespace":    {Order{Subject: "ns/web"}, "Namespace/web on every cluster"},
		"an object by its group":           {Order{Subject: "widget.b.io/web/x"}, "Widget.b.io/web/x on every cluster"},
		"an object of two kinds":           {Order{Subject: "widget/web/x"}, "error: widget/web/x may be Widget.a.io/web/x or Widget.b.io/web/x: write one of these"},
		"an object of another cluster":     {Order{Subject: "widget.b.io/web/x", Cluster: "east"}, "error: there is no object on cluster east, widget.b.io/web/x, and no other either"},
		"a name without a kind":            {Order{Subject: "web"}, `error: "web" names nothing; write crp/NAME, rp/NAMESPACE/NAME, cluster/NAME or KIND/NAME`},
		"a kind without a name":            {Order{Subject: "crp/"}, `error: "crp/" names nothing; write crp/NAME, rp/NAMESPACE/NAME, cluster/NAME or KIND/NAME`},
		"a placement without a namespace":  {Order{Subject: "rp/web"}, `error: "rp/web" names no placement; write crp/NAME, or rp/NAMESPACE/NAME`},
		"a placement with --namespace":     {Order{Subject: "crp/web", Namespace: "web"}, "error: crp/web is a placement: it goes without --namespace"},
		"a cluster with --cluster":         {Order{Subject: "cluster/east", Cluster: "west"}, "error: cluster/east is a cluster: it goes without --cluster and --namespace"},
		"a cluster with --namespace":       {Order{Subject: "cluster/east", Namespace: "web"}, "error: cluster/east is a cluster: it goes without --cluster and --namespace"},
		"too many parts":                   {Order{Subject: "cm/a/b/c"}, `error: "cm/a/b/c" names no object; write KIND/NAME with -n NAMESPACE, or KIND/NAMESPACE/NAME`},
		"an unknown placement":             {Order{Subject: "crp/shop"}, "error: there is no placement crp/shop; there are crp/web"},
		"an unknown cluster":               {Order{Subject: "cluster/mars"}, "error: there is no cluster mars; there are east, west"},
		"a placement on an unknown one":    {Order{Subject: "crp/web", Cluster: "mars"}, "error: there is no cluster mars; there are east, west"},
		"an unknown object of a kind":      {Order{Subject: "cm/web/two"}, "error: there is no object cm/web/two; there are ConfigMap/web/one"},
		"an unknown kind with a used name": {Order{Subject: "secret/web/one"}, "error: there is no object secret/web/one; there are ConfigMap/web/one"},
	} {
		t.Run(name, func(t *testing.T) {
			subject, err := c.orders().subjectOf(test.order)
			if got := ordered(subject.String(), err); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
	c.commits.inForce = nil
	if _, err := c.orders().subjectOf(Order{Subject: "crp/web"}); err == nil || err.Error() != "no commit is in force yet: try again in a moment" {
		t.Errorf("before the first commit: %v", err)
	}
}

func TestSuspensionsHaveAnEndAndAReason(t *testing.T) {
	c := newOrdered(t)
	now := c.now
	order := func(change func(o *Order)) Order {
		o := Order{Subject: "crp/web", Reason: "INC-1", By: "ada"}
		change(&o)
		return o
	}
	for name, test := range map[string]struct {
		order Order
		want  string
	}{
		"without an end":       {order(func(*Order) {}), "crp/web is suspended by ada: INC-1"},
		"for a time":           {order(func(o *Order) { o.For.Duration = time.Hour }), "crp/web is suspended by ada until " + now.Add(time.Hour).Format(time.RFC3339) + ": INC-1"},
		"until a time":         {order(func(o *Order) { o.Until = now.Add(time.Minute) }), "crp/web is suspended by ada until " + now.Add(time.Minute).Format(time.RFC3339) + ": INC-1"},
		"reason is trimmed":    {order(func(o *Order) { o.Reason = " INC-2\n" }), "crp/web is suspended by ada: INC-2"},
		"both ends":            {order(func(o *Order) { o.For.Duration, o.Until = time.Hour, now.Add(time.Hour) }), "error: --for and --until exclude each other"},
		"a negative time":      {order(func(o *Order) { o.For.Duration = -time.Hour }), "error: --for -1h0m0s: must be more than zero"},
		"an end that is now":   {order(func(o *Order) { o.Until = now }), "error: --until " + now.Format(time.RFC3339) + ": that is past"},
		"no reason":            {order(func(o *Order) { o.Reason = " " }), "error: --reason is required"},
		"a reason of 2 lines":  {order(func(o *Order) { o.Reason = "a\nb" }), "error: the reason and the name must be one line of text of at most 500 bytes"},
		"a reason of 501 byte": {order(func(o *Order) { o.Reason = strings.Repeat("a", 501) }), "error: the reason and the name must be one line of text of at most 500 bytes"},
		"a name of 2 lines":    {order(func(o *Order) { o.By = "a\nb" }), "error: the reason and the name must be one line of text of at most 500 bytes"},
		"an unknown subject":   {order(func(o *Order) { o.Subject = "crp/shop" }), "error: there is no placement crp/shop; there are crp/web"},
	} {
		t.Run(name, func(t *testing.T) {
			undo := c.ledger.Checkpoint()
			defer undo()
			if got := ordered(c.newOrderRun(now).suspend(test.order)); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if _, suspended := c.ledger.Suspension(ledger.Subject{Placement: web}); suspended == strings.HasPrefix(test.want, "error") {
				t.Errorf("suspended: %t", suspended)
			}
		})
	}
}

var web = api.PlacementKey{Name: "web"}

// setStops records failed updates of web on some clusters.
func (c *historyScene) setStops(clusters ...string) {
	next := *c.ledger.Placement(web)
	next.Stops = nil
	for _, name := range clusters {
		next.Stops = append(next.Stops, placement.Stop{Cluster: name})
	}
	c.ledger.SetPlacement(web, next)
}

func TestResume(t *testing.T) {
	const stillStopped = "its rollout is stopped by the failed update of east: to let it go on all the same, use gitfleet resume crp/web --stopped --reason TEXT"
	suspend := func(s ledger.Subject) func(*historyScene) {
		return func(c *historyScene) { c.ledger.Suspend(ledger.Suspension{Subject: s, By: "ada", Reason: "INC-1"}) }
	}
	stop := func(clusters ...string) func(*historyScene) { return func(c *historyScene) { c.setStops(clusters...) } }
	for name, test := range map[string]struct {
		before []func(*historyScene)
		order  Order
		want   string
	}{
		"a placement": {[]func(*historyScene){suspend(ledger.Subject{Placement: web})}, Order{Subject: "crp/web"},
			"crp/web is resumed; it was suspended by ada: INC-1"},
		"a placement that is stopped too": {[]func(*historyScene){suspend(ledger.Subject{Placement: web}), stop("east")}, Order{Subject: "crp/web"},
			"crp/web is resumed; it was suspended by ada: INC-1; " + stillStopped},
		"a cluster": {[]func(*historyScene){suspend(ledger.Subject{Cluster: "east"})}, Order{Subject: "cluster/east"},
			"cluster/east is resumed; it was suspended by ada: INC-1"},
		"an object that is no longer in Git": {[]func(*historyScene){suspend(ledger.Subject{Object: api.ID{Kind: "ConfigMap", Namespace: "web", Name: "gone"}})}, Order{Subject: "cm/web/gone"},
			"ConfigMap/web/gone on every cluster is resumed; it was suspended by ada: INC-1"},
		"a cluster that has left": {[]func(*historyScene){suspend(ledger.Subject{Cluster: "mars"})}, Order{Subject: "cluster/mars"},
			"cluster/mars is resumed; it was suspended by ada: INC-1"},
		"the same on one cluster only": {[]func(*historyScene){suspend(ledger.Subject{Placement: web, Cluster: "east"})}, Order{Subject: "crp/web"},
			"error: crp/web is not suspended; suspended are: crp/web on east"},
		"nothing suspended": {nil, Order{Subject: "cluster/east"}, "error: cluster/east is not suspended, and nothing else is either"},
		"stopped, without --stopped": {[]func(*historyScene){stop("east")}, Order{Subject: "crp/web"},
			"error: crp/web is not suspended; " + stillStopped},
		"clusters have not answered": {[]func(*historyScene){func(c *historyScene) { c.unanswered = map[api.PlacementKey]int{web: 2} }}, Order{Subject: "crp/web", By: "ada"},
			"all clusters of crp/web are chosen, although clusters that may hold it have not answered (2)"},
		"an unknown subject": {nil, Order{Subject: "crp/shop"}, "error: there is no placement crp/shop; there are crp/web"},

		"--stopped": {[]func(*historyScene){stop("east")}, Order{Subject: "crp/web", Stopped: true, Reason: "known"},
			"the rollout of crp/web continues within its budget, although cluster east is not available"},
		"--stopped by two clusters": {[]func(*historyScene){stop("east", "west")}, Order{Subject: "crp/web", Stopped: true, Reason: "known"},
			"the rollout of crp/web continues within its budget, although clusters east, west are not available"},
		"--stopped, not stopped": {nil, Order{Subject: "crp/web", Stopped: true, Reason: "known"}, "error: the rollout of crp/web is not stopped"},
		"--stopped without a reason": {[]func(*historyScene){stop("east")}, Order{Subject: "crp/web", Stopped: true},
			"error: --reason is required: why may the rollout continue although an update failed?"},
		"--stopped with a reason of two lines": {[]func(*historyScene){stop("east")}, Order{Subject: "crp/web", Stopped: true, Reason: "a\nb"},
			"error: the reason must be one line of text of at most 500 bytes"},
		"--stopped with --cluster": {[]func(*historyScene){stop("east")}, Order{Subject: "crp/web", Cluster: "east", Stopped: true, Reason: "known"},
			"error: --stopped is about the whole rollout of a placement: name crp/NAME or rp/NAMESPACE/NAME, without --cluster"},
		"--stopped of a cluster": {nil, Order{Subject: "cluster/east", Stopped: true, Reason: "known"},
			"error: --stopped is about the whole rollout of a placement: name crp/NAME or rp/NAMESPACE/NAME, without --cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newOrdered(t)
			for _, do := range test.before {
				do(c)
			}
			run := c.orders()
			if got := ordered(run.carryOut(test.order, (*orderRun).resume)); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			_, answered := strings.CutPrefix(test.want, "error")
			if answered = !answered; answered && len(c.ledger.Suspensions()) > 0 || answered && len(run.actions) != 1 || !answered && len(run.actions) > 0 {
				t.Errorf("suspensions %v and actions %v are left", c.ledger.Suspensions(), run.actions)
			}
		})
	}
}

// Only clusters of the fleet that have the subject check their objects; a sync without a
// subject is for all.
func TestSyncCountsTheClustersThatCheck(t *testing.T) {
	for name, test := range map[string]struct {
		members []string
		subject string
		want    string
	}{
		"all":                           {[]string{"east", "west"}, "", "2 clusters compare their objects with Git now"},
		"one":                           {[]string{"east"}, "", "1 cluster compares its objects with Git now"},
		"a cluster that leaves":         {[]string{"east", "mars"}, "", "1 cluster compares its objects with Git now"},
		"a placement":                   {[]string{"east", "west"}, "crp/web", "2 clusters compare their objects with Git now"},
		"a placement on no one of them": {[]string{"mars"}, "crp/web", "0 clusters compare their objects with Git now"},
		"an unknown placement":          {nil, "crp/shop", "error: there is no placement crp/shop; there are crp/web"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newOrdered(t)
			for _, m := range test.members {
				c.agents.members[m] = &runningMember{member: idle{}}
			}
			if got := ordered(c.orders().check(Order{Subject: test.subject})); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestAdoptFleet(t *testing.T) {
	const a, b = "0123456789abcdef", "0123456777777777"
	for name, test := range map[string]struct {
		owners map[string]protocol.Owner // by cluster
		order  Order
		want   string
	}{
		"by its short ID": {map[string]protocol.Owner{"east": {ID: a}}, Order{Subject: "01234567"}, "east"},
		"by its ID":       {map[string]protocol.Owner{"east": {ID: a}}, Order{Subject: a}, "east"},
		"on all clusters": {map[string]protocol.Owner{"east": {ID: a}, "west": {ID: a}}, Order{Subject: a}, "east, west"},
		"on one cluster":  {map[string]protocol.Owner{"east": {ID: a}, "west": {ID: a}}, Order{Subject: a, Cluster: "west"}, "west"},
		"without an ID":   {map[string]protocol.Owner{"east": {UnknownCommit: "c9"}}, Order{Subject: "none"}, "east"},
		"7 digits":        {map[string]protocol.Owner{"east": {ID: a}}, Order{Subject: "0123456"}, `error: "0123456" is no fleet that holds a cluster; there is: 01234567 on east`},
		"another ID":      {map[string]protocol.Owner{"east": {ID: a}}, Order{Subject: "none", Cluster: "east"}, `error: "none" is no fleet that holds east; there is: 01234567 on east`},
		"two fleets":      {map[string]protocol.Owner{"east": {ID: a}, "west": {ID: b}}, Order{Subject: "01234567"}, `error: more than one fleet's ID begins with "01234567": write all of it`},
		"no other fleet":  {nil, Order{Subject: a}, "error: no other fleet holds any cluster"},
		"none there":      {map[string]protocol.Owner{"east": {ID: a}}, Order{Subject: a, Cluster: "west"}, "error: no other fleet holds west"},
		"unknown cluster": {nil, Order{Subject: a, Cluster: "mars"}, "error: there is no cluster mars; there are east, west"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newHistoryScene(t)
			c.ledger.SetFleet(protocol.Fleet{Name: "prod", ID: "ours", Source: "https://git.example.com/ours"})
			c.commit("c1", "clusters east west\nnamespace web\nplace web")
			for _, cluster := range []string{"east", "west"} {
				owners := []protocol.Owner{}
				if o, held := test.owners[cluster]; held {
					owners = append(owners, o)
				}
				c.now = c.now.Add(time.Second)
				c.ledger.Fold(protocol.ClusterSeen{Cluster: cluster, At: c.now, Healthy: true, Inventories: []protocol.InventorySeen{}, Owners: owners})
			}
			test.order.By = "ada"
			got := ordered(c.orders().adoptFleet(test.order))
			if !strings.HasPrefix(test.want, "error") {
				var adopted []string
				for _, cluster := range []string{"east", "west"} {
					if len(c.ledger.Adopted(cluster)) == 1 && c.ledger.Refusal(cluster) == "" {
						adopted = append(adopted, cluster)
					}
				}
				if said := "has on " + test.want + " belongs to this fleet now"; !strings.Contains(got, said) || strings.Join(adopted, ", ") != test.want {
					t.Errorf("adopted %v, said %s; want %s", adopted, got, test.want)
				}
				return
			}
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
	c := newHistoryScene(t)
	if _, err := c.orders().adoptFleet(Order{Subject: a, By: "ada"}); err == nil {
		t.Error("adopted before a commit is in force")
	}
	c.commit("c1", "clusters east")
	if _, err := c.orders().adoptFleet(Order{Subject: a}); err == nil || !strings.Contains(err.Error(), "the user name must be one line") {
		t.Errorf("without a user: %v", err)
	}
}

// Orders are refused until the ledger is rebuilt, and undone if it cannot be saved.
func TestOrdersNeedASavedLedger(t *testing.T) {
	for name, test := range map[string]struct {
		prepare   func(*historyScene)
		want      error
		suspended bool
	}{
		"saved":      {func(*historyScene) {}, nil, true},
		"rebuilding": {func(c *historyScene) { c.rebuilding = true }, errFresh, false},
		"full disk":  {func(c *historyScene) { c.cfg.Store = fullStore{} }, errUnsaved, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newOrdered(t)
			test.prepare(c)
			var logged strings.Builder
			c.cfg.Log = slog.New(slog.NewTextHandler(&logged, nil))
			done := make(chan answer, 1)
			c.runOrders(t.Context(), []queuedOrder{{Order: Order{Subject: "crp/web", Reason: "INC-1", By: "ada"}, do: (*orderRun).suspend, done: done}}, c.now)
			if len(done) > 0 {
				t.Error("the answer is sent before the turn is over")
			}
			c.sendAnswers()
			if got := <-done; !errors.Is(got.err, test.want) {
				t.Errorf("answer %q, %v; want %v", got.text, got.err, test.want)
			}
			if _, suspended := c.ledger.Suspension(ledger.Subject{Placement: web}); suspended != test.suspended {
				t.Errorf("suspended: %t", suspended)
			}
			if strings.Contains(logged.String(), "msg=suspended") != test.suspended {
				t.Errorf("logged: %s", logged.String())
			}
		})
	}
}
