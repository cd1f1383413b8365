package client

import (
	"context"
	"errors"
	"iter"
	"net/url"
	"time"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/overview"
	"github.com/gitfleet/gitfleet/reconciler/server"
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

var errNoNumber = errors.New("the daemon's answer has no header " + server.NumberHeader + "; does a proxy remove it?")

// All yields every value newer than number after (all values if after is empty) until ctx is
// done. If a request fails, it yields the reason, and then the newest value, so
// that the caller sees that the failure is over.
func (ask Feed[T]) All(ctx context.Context, after string) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for ctx.Err() == nil {
			news, number, err := ask(ctx, after)
			if err == nil && number == "" {
				err = errNoNumber
			}
			switch {
			case ctx.Err() != nil:
			case err != nil:
				after = ""
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
