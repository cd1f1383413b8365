package operate

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/reconciler"
)

// NewFreeze returns the command freeze.
func NewFreeze() *cobra.Command {
	var at client.Connection
	var o reconciler.Order
	var until string
	cmd := &cobra.Command{
		Use:   "freeze [crp/NAME] --reason TEXT",
		Short: "Keep new content from the clusters, of one placement or of all",
		Long: `Keep new content from the clusters: of one placement, or, without a name, of all
placements. Commits are still loaded and planned, and what they change waits
until "gitfleet unfreeze", or until --for or --until is over.

Only new content waits. Drift is corrected, clusters that leave a placement are
cleaned up, clusters that join get the last content that was available
everywhere, and a commit that returns to earlier content that was available
everywhere, such as one of "gitfleet rollback", is rolled out.

A rollout that is under way stops where it is: a cluster keeps the content it
has. With --overrun it may finish.`,
		Example: `  gitfleet freeze --until "2027-01-02 08:00" --reason "holidays"
  gitfleet freeze crp/web --for 4h --reason "INC-17: traffic is rerouted"`,
		Args:    cobra.MaximumNArgs(1),
		PreRunE: func(*cobra.Command, []string) error { return requireReason(o.Reason, "release week") },
		RunE: at.WithClient(func(cmd *cobra.Command, args []string, c *client.Client) error {
			var err error
			if o.Until, err = parseMoment(until, time.Now()); err != nil {
				return err
			}
			return orderPlacement(cmd, c, "freeze", args, o)
		}),
	}
	at.Bind(cmd.Flags())
	bindReason(cmd, &o, &until)
	cmd.Flags().BoolVar(&o.Overrun, "overrun", false, "let rollouts finish that have reached a cluster")
	return cmd
}

// NewUnfreeze returns the command unfreeze.
func NewUnfreeze() *cobra.Command {
	var at client.Connection
	cmd := &cobra.Command{
		Use:   "unfreeze [crp/NAME]",
		Short: "End a freeze",
		Long: `End a freeze: name the placement for which it was ordered, or nothing if it was
for the whole fleet. What waits is rolled out at once, within its budget, unless
it waits for another freeze.`,
		Example: `  gitfleet unfreeze
  gitfleet unfreeze crp/web`,
		Args: cobra.MaximumNArgs(1),
		RunE: at.WithClient(func(cmd *cobra.Command, args []string, c *client.Client) error {
			return orderPlacement(cmd, c, "unfreeze", args, reconciler.Order{})
		}),
	}
	at.Bind(cmd.Flags())
	return cmd
}

// orderPlacement sends an order about a placement or, without arguments, about all of them.
func orderPlacement(cmd *cobra.Command, c *client.Client, action string, args []string, o reconciler.Order) error {
	if len(args) == 0 {
		return act(cmd, c, action, o)
	}
	return order(cmd, c, action, args[0], o)
}
