package operate

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// NewEvict returns the command evict.
func NewEvict() *cobra.Command {
	var at client.Connection
	var o reconciler.Order
	cmd := &cobra.Command{
		Use:   "evict crp/NAME CLUSTER --reason TEXT",
		Short: "Remove a placement from a cluster, within its disruption budget",
		Long: `Remove a ClusterResourcePlacement from a cluster once, if its
ClusterResourcePlacementDisruptionBudget allows that now.

The cluster may be selected again as soon as everything is removed. To keep it
empty, use "gitfleet drain", or give it a taint in Git first.

Exit codes: 0 the placement is being removed; 1 it is not, and the message says
why; 2 error.`,
		Example: `  gitfleet evict crp/web paris --reason "INC-17: disk errors"`,
		Args:    cobra.ExactArgs(2),
		PreRunE: func(*cobra.Command, []string) error { return requireReason(o.Reason, "INC-17: disk errors") },
		RunE: at.WithClient(func(cmd *cobra.Command, args []string, c *client.Client) error {
			of, err := c.Subject(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			o.Subject, o.Cluster = of.String(), api.ClusterName(args[1])
			executed, message, err := evict(cmd.Context(), c, o, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s on %s: %s\n", o.Subject, o.Cluster, message)
			if !executed {
				return exit.Attention
			}
			return nil
		}),
	}
	at.Bind(cmd.Flags())
	cmd.Flags().StringVar(&o.Reason, "reason", "", "the reason, for the status and the history")
	cmd.MarkFlagRequired("reason") // for completion; the error is that of requireReason
	return cmd
}

// judgeTimeout is how long an eviction may wait for the reports of members.
const judgeTimeout = time.Minute

// evict orders an eviction, and waits for what comes of it.
func evict(ctx context.Context, c *client.Client, o reconciler.Order, errOut io.Writer) (executed bool, message string, err error) {
	key, err := api.ParsePlacement(o.Subject)
	if err != nil {
		return false, "", err
	}
	o.Name = reconciler.EvictionName(key.Name, o.Cluster)
	if _, err := c.Act(ctx, "evict", o); err != nil {
		return false, "", err
	}
	v, message, err := waitFor(ctx, c.Reports(client.Subject{Placement: o.Subject}), judgeTimeout, errOut, func(r *status.Report) (outcome, string) {
		for _, e := range r.Evictions {
			if n := len(e.Status.Conditions); e.Name == o.Name && n > 0 {
				executed = meta.IsStatusConditionTrue(e.Status.Conditions, api.EvictionExecuted)
				return met, e.Status.Conditions[n-1].Message
			}
		}
		return pending, "eviction " + o.Name + " waits for the reports of members"
	})
	if err == nil && v == pending {
		err = fmt.Errorf("eviction %s is not judged after %s; see gitfleet get crpe %s", o.Name, judgeTimeout, o.Name)
	}
	return executed, message, err
}
