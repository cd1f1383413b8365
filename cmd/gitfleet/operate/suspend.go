// Package operate has the commands that change what the daemon does, or create a commit for it.
package operate

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler"
)

// subjects lists what a suspension can be about, for help texts.
const subjects = `  crp/NAME, rp/NAMESPACE/NAME   a placement, on all clusters or on --cluster
  mc/NAME, cluster/NAME         a member cluster, with everything on it
  NAME                          a placement or a member cluster of that name
  KIND/NAMESPACE/NAME           an object, on all clusters or on --cluster;
                                KIND/NAME -n NAMESPACE as well`

// NewSuspend returns the command suspend.
func NewSuspend() *cobra.Command {
	var at client.Connection
	var o reconciler.Order
	var until string
	cmd := &cobra.Command{
		Use:   "suspend KIND/NAME --reason TEXT",
		Short: "Stop writing to a placement, a cluster or an object",
		Long: `Leave a placement, a member cluster or an object as it is on the clusters. While
it is suspended nothing is applied, reverted, deleted or rolled out there. It is
still watched, and its status and drift are reported. Everything else goes on as
usual, and a suspended cluster does not count as failed in a rollout.

A suspension lasts until "gitfleet resume", or ends by itself with --for or
--until.

` + subjects,
		Example: `  gitfleet suspend deployment/web -n shop --for 2h --reason "INC-17: by hand"
  gitfleet suspend cluster/east --until 18:00 --reason "network maintenance"`,
		Args: cobra.ExactArgs(1),
		PreRunE: func(*cobra.Command, []string) error {
			return requireReason(o.Reason, "INC-17: tuned by hand")
		},
		RunE: at.WithClient(func(cmd *cobra.Command, args []string, c *client.Client) error {
			var err error
			if o.Until, err = parseMoment(until, time.Now()); err != nil {
				return err
			}
			return order(cmd, c, "suspend", args[0], o)
		}),
	}
	bindOrder(cmd, &at, &o)
	bindReason(cmd, &o, &until)
	return cmd
}

// bindReason adds the flags that say why something is suspended, and for how long.
func bindReason(cmd *cobra.Command, o *reconciler.Order, until *string) {
	cmd.Flags().StringVar(&o.Reason, "reason", "", "the reason, for the status and the history")
	cmd.Flags().DurationVar(&o.For.Duration, "for", 0, "how long, such as 90m or 2h")
	cmd.Flags().StringVar(until, "until", "", "until when: 18:00, 2026-01-31 18:00, or 2026-01-31T18:00:00Z")
	cmd.MarkFlagRequired("reason") // for completion; the error is that of requireReason
}

// requireReason returns an error that shows how to give a reason, if there is none.
func requireReason(reason, example string) error {
	if strings.TrimSpace(reason) == "" {
		return errors.New("--reason is required, such as --reason \"" + example + "\"")
	}
	return nil
}

// NewResume returns the command resume.
func NewResume() *cobra.Command {
	var at client.Connection
	var o reconciler.Order
	cmd := &cobra.Command{
		Use:   "resume KIND/NAME",
		Short: "End a suspension, or with --stopped continue a stopped rollout",
		Long: `End a suspension. Name what was suspended as for "gitfleet suspend".

This does not continue a rollout that stopped because an update failed. Such a
rollout continues when the cluster recovers, when a commit changes the content,
or with --stopped and a --reason. Content that failed in a staged update run and
was rolled back, or that was rejected, runs again with --failed-content.

After a loss of the state directory, resume also ends the wait of a placement
for clusters that have not answered since.

` + subjects,
		Example: `  gitfleet resume deployment/web -n shop --cluster east
  gitfleet resume crp/web --stopped --reason "INC-17: east has a broken disk"`,
		Args: cobra.ExactArgs(1),
		PreRunE: func(*cobra.Command, []string) error {
			switch reason := strings.TrimSpace(o.Reason); {
			case o.Stopped && reason == "":
				return errors.New(`--stopped needs --reason: why the rollout may continue although an update failed, such as --reason "INC-17: east has a broken disk"`)
			case o.Stopped && o.FailedContent:
				return errors.New("--stopped and --failed-content exclude each other: the one is about rollouts, the other about staged update runs")
			case o.FailedContent && reason == "":
				return errors.New(`--failed-content needs --reason: why the content may run again although it failed, such as --reason "the registry was down"`)
			case !o.Stopped && !o.FailedContent && reason != "":
				return errors.New("--reason needs --stopped or --failed-content")
			}
			return nil
		},
		RunE: at.WithClient(func(cmd *cobra.Command, args []string, c *client.Client) error {
			return order(cmd, c, "resume", args[0], o)
		}),
	}
	bindOrder(cmd, &at, &o)
	cmd.Flags().BoolVar(&o.Stopped, "stopped", false, "continue a rollout that a failed update has stopped")
	cmd.Flags().BoolVar(&o.FailedContent, "failed-content", false, "let content run again that was rolled back or rejected")
	cmd.Flags().StringVar(&o.Reason, "reason", "", "with --stopped or --failed-content, why it may continue")
	return cmd
}

func bindOrder(cmd *cobra.Command, at *client.Connection, o *reconciler.Order) {
	at.Bind(cmd.Flags())
	cmd.Flags().StringVar(&o.Cluster, "cluster", "", "member cluster; by default all")
	cmd.Flags().StringVarP(&o.Namespace, "namespace", "n", "", "namespace of an object")
}

// order sends an order about a subject, and prints the answer.
func order(cmd *cobra.Command, c *client.Client, action, subject string, o reconciler.Order) error {
	var err error
	o.Cluster = api.ClusterName(o.Cluster)
	if o.Subject, o.Namespace, err = c.OrderSubject(cmd.Context(), subject, o.Namespace); err != nil {
		return err
	}
	return act(cmd, c, action, o)
}

// act sends an order, and prints the answer.
func act(cmd *cobra.Command, c *client.Client, action string, o reconciler.Order) error {
	a, err := c.Act(cmd.Context(), action, o)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), a.Message)
	return err
}

// parseMoment parses a time of day, which means its next occurrence, or a date with or without
// a time, by default in the local time zone. The zero time is returned for an empty text.
func parseMoment(text string, now time.Time) (time.Time, error) {
	if text = strings.TrimSpace(text); text == "" {
		return time.Time{}, nil
	}
	if t, err := time.ParseInLocation("15:04", text, now.Location()); err == nil {
		at := time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), 0, 0, now.Location())
		if !at.After(now) {
			at = at.AddDate(0, 0, 1)
		}
		return at, nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("--until %q: write 18:00, 2026-01-31 18:00, or 2026-01-31T18:00:00Z", text)
}
