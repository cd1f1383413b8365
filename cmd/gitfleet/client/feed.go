package client

import (
	"context"
	"errors"
	"time"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/overview"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A Feed returns a value from each new report.
type Feed[T any] func(ctx context.Context, after string) (news *T, number string, err error)

// Reports returns a feed of reports about a part, or of whole reports.
func (c *Client) Reports(of Part) Feed[status.Report] {
	return func(ctx context.Context, after string) (*status.Report, string, error) {
		return c.NextReport(ctx, after, of)
	}
}

// Overviews returns a feed of overviews.
func (c *Client) Overviews() Feed[overview.Overview] {
	return func(ctx context.Context, after string) (*overview.Overview, string, error) {
		o := &overview.Overview{}
		number, age, err := c.Newest(ctx, overview.Path, nil, after, o)
		o.Age = age
		return o, number, err
	}
}

// Follow calls show with each value until ctx is done or show returns false.
func (ask Feed[T]) Follow(ctx context.Context, show func(*T) (more bool, err error)) error {
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

// An Update is a new value, or the reason why there is none.
type Update[T any] struct {
	News *T
	Err  error
}

// retryInterval is the time between requests to a daemon that does not answer.
const retryInterval = time.Second

// Stream sends updates until ctx is done.
func (ask Feed[T]) Stream(ctx context.Context, updates chan<- Update[T]) {
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
		case updates <- Update[T]{news, err}:
		}
		if err == nil {
			after = number
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryInterval):
		}
	}
}
