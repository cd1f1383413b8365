package check

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/plantext"
)

// printPullRequestPlan requests the plan of a pull request from the daemon, and prints it.
func printPullRequestPlan(ctx context.Context, at *client.Connection, w io.Writer, number int64) error {
	daemon, err := at.Client()
	if err != nil {
		return err
	}
	var p plantext.PullRequest
	if err := daemon.Get(ctx, "/plan", url.Values{"pullRequest": {strconv.FormatInt(number, 10)}}, &p); err != nil {
		return err
	}
	if _, err := io.WriteString(w, p.Text); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	switch {
	case p.Failed:
		return exit.Failed
	case p.Changes:
		return exit.Differences
	}
	return nil
}
