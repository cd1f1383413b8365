package operate

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spf13/cobra"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/status"
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
nothing there, and says which fleet holds it. As a rule one of the two needs
another fleetName.

Adopt-fleet is for the other case: the other daemon is gone for good, or its
clusters move to this one. Without an ID it says what is held by whom, and does
nothing. With the ID of the other fleet, which confirms that it is meant, what
that fleet has belongs to this one, on one cluster or on all that it holds:

  - objects that this repository has are updated as it says,
  - objects that it does not have are held, and deleted only once a commit with
    the trailer Gitfleet-Allow-Delete names their placement, or "*",
  - the other daemon, if it still runs, writes nothing there any more.

"none" is the ID of inventories written by a version that knew no IDs.

Exit codes: 0 done, or nothing is held; 1 something is held and no ID was named;
2 error.`,
		Example: `  gitfleet adopt-fleet
  gitfleet adopt-fleet 5f0c2a9e --cluster east
  gitfleet adopt-fleet 5f0c2a9e`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := at.Client()
			if err != nil {
				return err
			}
			if len(args) > 0 {
				o.Subject, o.By = args[0], client.User()
				a, err := c.Act(cmd.Context(), "adopt-fleet", o)
				if err == nil {
					_, err = fmt.Fprintln(cmd.OutOrStdout(), a.Said)
				}
				return err
			}
			r, err := c.PartialReport(cmd.Context(), client.Part{Cluster: o.Cluster})
			if err != nil {
				return err
			}
			text, held := heldByOthers(r)
			if _, err := fmt.Fprint(cmd.OutOrStdout(), text); err != nil || !held {
				return err
			}
			return exit.Differences
		},
	}
	at.Bind(cmd.Flags())
	cmd.Flags().StringVar(&o.Cluster, "cluster", "", "member cluster; every one that the other fleet holds if it is not named")
	return cmd
}

// heldByOthers lists the clusters that another fleet holds.
func heldByOthers(r *status.Report) (text string, held bool) {
	var b strings.Builder
	for _, c := range r.Clusters {
		for _, cond := range c.Status.Conditions {
			if cond.Type == api.Joined && cond.Status == metav1.ConditionFalse && cond.Reason == api.MemberClusterForeign {
				fmt.Fprintf(&b, "%s: %s\n", c.Name, cond.Message)
			}
		}
	}
	if b.Len() == 0 {
		return "no cluster is held by another fleet\n", false
	}
	return b.String(), true
}
