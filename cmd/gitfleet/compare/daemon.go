package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/overview"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/gitsource/remote"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A daemonState has the inputs of a sync that only the daemon of the fleet knows.
type daemonState struct {
	suspended []status.Suspension
	// inForce is the commit that the daemon has accepted; empty if it has none.
	inForce string
	// fleet is the fleet of the daemon; zero if it has not answered.
	fleet overview.Fleet
	// unknown is the reason why the daemon has not answered; empty if it has.
	unknown string
}

// daemonTimeout is the timeout of the request to the daemon.
const daemonTimeout = 10 * time.Second

// ask sends the request to the daemon of the fleet. If none answers, that is not an error, and
// the members are inspected nevertheless.
func (d *diffCommand) ask(ctx context.Context, cfg settings.Config) daemonState {
	ctx, cancel := context.WithTimeout(ctx, daemonTimeout)
	defer cancel()
	c, err := d.daemon.Client()
	if err != nil {
		return daemonState{unknown: err.Error()}
	}
	o, _, err := c.Overviews()(ctx, "")
	if silent, ok := errors.AsType[*client.UnreachableError](err); ok {
		err = fmt.Errorf("no daemon answers at %s: %w", silent.Address, silent.Err)
	}
	if err != nil {
		return daemonState{unknown: err.Error()}
	}
	if ours := remote.Shown(cfg.Source.URL); cfg.Source.URL != "" && o.Source.URL != ours {
		return daemonState{unknown: fmt.Sprintf("the daemon at %s follows %s, not %s; set --server to the address of the right one", c.Address, cmp.Or(o.Source.URL, "nothing"), ours)}
	}
	w := daemonState{suspended: o.Suspended, fleet: o.Fleet}
	if o.Commit != nil {
		w.inForce = o.Commit.Hash
	}
	return w
}

// suspensionOf returns why an object of a placement is not written on a cluster; empty if it
// is.
func (w daemonState) suspensionOf(placement string, id api.ID, cluster string) string {
	for _, x := range w.suspended {
		if x.Effect != ledger.StopsWrites {
			continue
		}
		on := x.Cluster == "" || x.Cluster == cluster
		what := x.Object == (api.ID{}) || x.Object == id
		whose := x.Placement == "" || x.Placement == placement
		if on && what && whose {
			return ledger.Suspension{By: x.By, Reason: x.Reason, Until: x.Until}.String()
		}
	}
	return ""
}

// suspend marks a change that is not made during a suspension.
func (c *diffChange) suspend(why string) {
	if why == "" {
		return
	}
	c.Suspended = why
	for _, e := range effects {
		if string(e.effect) == c.Effect && e.effect != member.Differs && e.effect != member.Alters {
			c.Effect, c.Message = string(member.Differs), strings.TrimSuffix("once that is over: "+e.verb+"\n"+c.Message, "\n")
		}
	}
}
