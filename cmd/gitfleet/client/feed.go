package client

import (
	"context"
	"iter"
	"net/url"
	"time"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/overview"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A Feed returns a value from the newest report, and the number of the report. If after is the
// number of a known report, it waits up to half a minute for a newer one.
type Feed[T any] func(ctx context.Context, after string) (news *T, number string, err error)

// Reports returns a feed of reports about a placement or a cluster, or about everything. The time
// of a report is that of the response, since a report is valid until there is a newer one.
func (c *Client) Reports(of Subject) Feed[status.Report] {
	return func(ctx context.Context, after string) (*status.Report, string, error) {
		r := &status.Report{}
		number, age, err := c.newest(ctx, "/report", url.Values{"placement": {of.Placement}, "cluster": {of.Cluster}, "after": {after}}, r)
		r.At = r.At.Add(age)
		return r, number, err
	}
}

// Overviews returns a feed of overviews.
func (c *Client) Overviews() Feed[overview.Overview] {
	return func(ctx context.Context, after string) (*overview.Overview, string, error) {
		o := &overview.Overview{}
		number, age, err := c.newest(ctx, overview.Path, url.Values{"after": {after}}, o)
		o.Age = age
		return o, number, err
	}
}

// retryInterval is the time between requests to a daemon that does not answer.
const retryInterval = time.Second

// All returns each new value until ctx is done. If a request fails, it returns the reason, and
// repeats the request.
func (ask Feed[T]) All(ctx context.Context) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		after := ""
		for ctx.Err() == nil {
			news, number, err := ask(ctx, after)
			switch {
			case ctx.Err() != nil:
			case err != nil:
				if !yield(nil, err) {
					return
				}
				select {
				case <-ctx.Done():
				case <-time.After(retryInterval):
				}
			case number != after:
				after = number
				if !yield(news, nil) {
					return
				}
			}
		}
	}
}
