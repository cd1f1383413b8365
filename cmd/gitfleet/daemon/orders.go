package daemon

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/approval"
	"github.com/gitfleet/gitfleet/reconciler/crashguard"
	"github.com/gitfleet/gitfleet/reconciler/proposal"
	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/reconciler/server/kubeapi"
)

// orders executes the orders that users send to the daemon as actions: suspend, resume and others.
type orders struct {
	loop *reconciler.Reconciler
	// proposals decides about held drift.
	proposals *proposal.Proposer
	poll      *poller
}

// mount makes the server accept the actions.
func (o *orders) mount(srv *server.Server) {
	act := srv.MountAction
	act("suspend", orderAction(o.loop.Suspend))
	act("resume", orderAction(o.loop.Resume))
	act("freeze", orderAction(o.loop.Freeze))
	act("unfreeze", orderAction(o.loop.Unfreeze))
	act("approve", orderAction(o.loop.Approve))
	act("evict", orderAction(o.loop.Evict))
	act("cordon", orderAction(o.loop.Cordon))
	act("uncordon", orderAction(o.loop.Uncordon))
	act("close-proposal", orderAction(func(ctx context.Context, order reconciler.Order) (string, error) {
		return o.proposals.Close(ctx, order.Subject, order.By)
	}))
	act("open-proposal", orderAction(func(ctx context.Context, order reconciler.Order) (string, error) {
		return o.proposals.Open(ctx, order.Subject, order.By)
	}))
	act("adopt-fleet", orderAction(o.loop.AdoptFleet))
	act("sync", func(ctx context.Context, by string, body []byte) (any, error) {
		order, err := readOrder(by, body)
		if err != nil {
			return nil, err
		}
		return o.sync(ctx, order)
	})
}

// approve carries out an approval, or a rejection, that a Kubernetes client has written.
func (d *daemon) approve(ctx context.Context, a kubeapi.Decision) (refused bool, err error) {
	o := reconciler.Order{
		Subject: a.Placement.String(), Stage: a.Stage, Before: a.Before, After: !a.Before, Run: a.Run, Reject: a.Reject,
		Reason: a.Message, Code: a.Code, By: cmp.Or(a.By, localUser),
	}
	_, err = d.loop.Approve(ctx, o)
	_, refused = errors.AsType[*reconciler.OrderError](err)
	return refused, err
}

// decide carries out an approval, or a rejection, that was given on a pull request.
func (d *daemon) decide(ctx context.Context, a approval.Decision) (answer string, err error) {
	answer, err = d.loop.Approve(ctx, reconciler.Order{
		Subject: a.Placement.String(), Run: a.Run, Stage: a.Stage, Before: a.Before, After: a.After, Reject: a.Reject, By: a.By, Reason: a.Reason,
	})
	if refused, ok := errors.AsType[*reconciler.OrderError](err); ok {
		return "", &approval.RefusedError{Why: refused.Why}
	}
	return answer, err
}

// localUser is who sends an action without authentication and does not give a name.
const localUser = "somebody on the daemon's machine"

// orderAction returns an action of the server that the loop executes.
func orderAction(do func(context.Context, reconciler.Order) (string, error)) server.Action {
	return func(ctx context.Context, by string, body []byte) (any, error) {
		order, err := readOrder(by, body)
		if err != nil {
			return nil, err
		}
		answer, err := do(ctx, order)
		return server.ActionResult{Message: answer}, refusal(err)
	}
}

// readOrder decodes an order as strictly as a configuration file. An authenticated user cannot
// give another name.
func readOrder(by string, body []byte) (reconciler.Order, error) {
	var o reconciler.Order
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		return o, &server.RefusedError{Err: errors.New("the body is not an order: " + err.Error())}
	}
	switch {
	case by != "":
		o.By = by
	case o.By == "":
		o.By = localUser
	}
	return o, nil
}

// refusal distinguishes invalid orders from failures of the daemon.
func refusal(err error) error {
	if own, ok := errors.AsType[*reconciler.OrderError](err); ok {
		return &server.RefusedError{Err: own}
	}
	if decided, ok := errors.AsType[*proposal.RefusedError](err); ok {
		return &server.RefusedError{Err: decided}
	}
	return err
}

// sync polls the repository now, and makes members check everything again.
func (o *orders) sync(ctx context.Context, order reconciler.Order) (any, error) {
	commit, pollError := o.poll.poll(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	answer, err := o.loop.Check(ctx, order)
	return server.ActionResult{Message: answer, Commit: commit, PollError: pollError}, refusal(err)
}

// A poller polls the repository on request.
type poller struct {
	repo *gitsource.Repo
	// guard records fetches that ended the process, and bases those of remote bases: a server of these delays no other fetch.
	guard, bases *crashguard.Guard

	mu      sync.Mutex
	waiting []waiter
}

// A waiter waits for a poll that begins after its request.
type waiter struct {
	asked time.Time
	done  chan struct{}
}

// fetching records that a fetch begins. It returns the function to call when the fetch ends.
func (p *poller) fetching(object string) (end func(), err error) { return beginFetch(p.guard, object) }

// fetchingBase is fetching for a remote base.
func (p *poller) fetchingBase(object string) (end func(), err error) {
	return beginFetch(p.bases, object)
}

func beginFetch(guard *crashguard.Guard, object string) (end func(), err error) {
	if end, err = guard.Begin(object); err != nil {
		return nil, fmt.Errorf("fetching or checking %s has ended the daemon before, probably because of a lack of memory, so it is not done again; lower limits.objectBytes, or give the daemon more memory, and run gitfleet sync to retry it", object)
	}
	return end, nil
}

// longestPoll is how long a request waits for a poll.
const longestPoll = time.Minute

// poll polls the repository now. It returns the newest known commit, and the error if the
// repository could not be read; empty if it could.
func (p *poller) poll(ctx context.Context) (commit, pollError string) {
	w := waiter{time.Now(), make(chan struct{})}
	p.mu.Lock()
	p.waiting = append(p.waiting, w)
	p.mu.Unlock()
	p.guard.Reset()
	p.bases.Reset()
	p.repo.Retry()
	late := time.NewTimer(longestPoll)
	defer late.Stop()
	select {
	case <-w.done:
	case <-ctx.Done():
	case <-late.C:
		return p.repo.Status().Head, "the repository has not answered within " + longestPoll.String()
	}
	s := p.repo.Status()
	return s.Head, s.Error
}

// polled is called after every poll.
func (p *poller) polled(took time.Duration, _ error) {
	began := p.repo.Status().LastPoll.Add(-took)
	p.mu.Lock()
	defer p.mu.Unlock()
	var later []waiter
	for _, w := range p.waiting {
		if began.Before(w.asked) {
			later = append(later, w)
		} else {
			close(w.done)
		}
	}
	if p.waiting = later; len(later) > 0 {
		p.repo.RequestPoll()
	}
}
