package operate

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler"
)

// NewAdoptFleet returns the command adopt-fleet.
func NewAdoptFleet() *cobra.Command {
	var at client.Connection
	var o reconciler.Order
	cmd := &cobra.Command{
		Use:   "adopt-fleet [ID]",
		Short: "Take over the clusters of another fleet of the same name",
		Long: `Two daemons with the same fleetName would delete each other's objects. So a
daemon that finds inventories or the claim of another fleet on a cluster writes
nothing there, and says which fleet has claimed it. As a rule one of the two
needs another fleetName.

Adopt-fleet is for the other case: the other daemon is gone for good, or its
clusters move to this one. Without an ID it lists the clusters that other fleets
have claimed, and changes nothing. With the ID of the other fleet, as a
confirmation, it takes over the objects of that fleet, on one cluster or on all
that it has claimed:

  - objects that this repository has are updated as it says,
  - objects that it does not have are deleted only once a commit with the
    trailer Gitfleet-Allow-Delete names their placement, or "*",
  - the other daemon, if it still runs, writes nothing there any more.

"none" is the ID of inventories written by a version that knew no IDs.

Exit codes: 0 done, or no cluster is claimed; 1 a cluster is claimed and no ID
is given; 2 error.`,
		Example: `  gitfleet adopt-fleet
  gitfleet adopt-fleet 5f0c2a9e --cluster east
  gitfleet adopt-fleet 5f0c2a9e`,
		Args: cobra.MaximumNArgs(1),
		RunE: at.WithClient(func(cmd *cobra.Command, args []string, c *client.Client) error {
			if len(args) > 0 {
				o.Subject = args[0]
				return act(cmd, c, "adopt-fleet", o)
			}
			r, err := c.Report(cmd.Context(), client.Subject{Cluster: o.Cluster})
			if err != nil {
				return err
			}
			claimed := false
			for _, cluster := range r.Clusters {
				cond := meta.FindStatusCondition(cluster.Status.Conditions, api.Joined)
				if cond != nil && cond.Status == metav1.ConditionFalse && cond.Reason == api.MemberClusterForeign {
					claimed = true
					fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", cluster.Name, cond.Message)
				}
			}
			if claimed {
				return exit.Attention
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "no cluster is claimed by another fleet")
			return err
		}),
	}
	at.Bind(cmd.Flags())
	cmd.Flags().StringVar(&o.Cluster, "cluster", "", "member cluster; by default all that the other fleet has claimed")
	return cmd
}
