package main

import (
	"context"
	"errors"
	"time"

	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A feed returns something with each new report.
type feed[T any] func(ctx context.Context, after string) (news *T, number string, err error)

// reports returns a feed of reports about a part, or of whole reports.
func (c *client) reports(of part) feed[status.Report] {
	return func(ctx context.Context, after string) (*status.Report, string, error) {
		return c.next(ctx, after, of)
	}
}

// overviews returns a feed of overviews.
func (c *client) overviews() feed[overview] {
	return func(ctx context.Context, after string) (*overview, string, error) {
		o := &overview{}
		number, age, err := c.newest(ctx, overviewPath, nil, after, o)
		o.age = age
		return o, number, err
	}
}

// follow shows what is new until ctx is done or show returns false.
func (ask feed[T]) follow(ctx context.Context, show func(*T) (more bool, err error)) error {
	after := ""
	for {
		news, number, err := ask(ctx, after)
		if errors.Is(err, context.Canceled) {
			return nil
		}
		if err != nil {
			return err
		}
		if number == after {
			continue
		}
		after = number
		if more, err := show(news); err != nil || !more {
			return err
		}
	}
}

// An update is what is new, or why there is nothing.
type update[T any] struct {
	news *T
	err  error
}

// retry is the time between requests to a daemon that does not answer.
const retry = time.Second

// keep sends updates until ctx is done.
func (ask feed[T]) keep(ctx context.Context, updates chan<- update[T]) {
	after := ""
	for ctx.Err() == nil {
		news, number, err := ask(ctx, after)
		if ctx.Err() != nil {
			return // nobody waits for the result any more
		}
		if err == nil && number == after {
			continue
		}
		if err != nil {
			news = nil
		}
		select {
		case <-ctx.Done():
			return
		case updates <- update[T]{news, err}:
		}
		if err == nil {
			after = number
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
	}
}
