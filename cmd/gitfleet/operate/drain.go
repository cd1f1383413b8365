package operate

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// NewDrain returns the command drain.
func NewDrain() *cobra.Command {
	var at client.Connection
	var o reconciler.Order
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "drain CLUSTER --reason TEXT",
		Short: "Keep a cluster from being selected, and evict what is there",
		Long: `Drain gives a member cluster the taint cordon-key=cordon-value:NoSchedule,
evicts each ClusterResourcePlacement from it as its disruption budget allows,
tries again what a budget blocks, and says what that is. It ends when everything
is removed, or with --timeout. The taint stays until "gitfleet uncordon".

Only ClusterResourcePlacements can be evicted. What has the policy PickFixed, is
a ResourcePlacement, or tolerates the taint stays. It is named at once, with
what to change in Git.

Exit codes: 0 the cluster is drained; 1 something is left, and the message says
what; 2 error.`,
		Example: `  gitfleet drain paris --reason "kernel update" --timeout 1h`,
		Args:    cobra.ExactArgs(1),
		PreRunE: func(*cobra.Command, []string) error { return requireReason(o.Reason, "kernel update") },
		RunE: at.WithClient(func(cmd *cobra.Command, args []string, c *client.Client) error {
			name := api.ClusterName(args[0])
			o.Subject = "cluster/" + name
			if err := act(cmd, c, "cordon", o); err != nil {
				return err
			}
			ctx := cmd.Context()
			if timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, timeout)
				defer cancel()
			}
			d := drain{cluster: name, reason: o.Reason, client: c, evicted: map[string]bool{}, messages: map[string]string{}, out: cmd.OutOrStdout(), errOut: cmd.ErrOrStderr()}
			err := d.run(ctx)
			if ctx.Err() != nil && cmd.Context().Err() == nil {
				fmt.Fprintf(cmd.ErrOrStderr(), "cluster/%s is not drained after %s: %s\n", name, timeout, strings.Join(slices.Sorted(maps.Keys(d.messages)), ", "))
				return exit.Attention
			}
			return err
		}),
	}
	at.Bind(cmd.Flags())
	cmd.Flags().StringVar(&o.Reason, "reason", "", "the reason, for the status and the history")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "how long to try; by default until it is done")
	cmd.MarkFlagRequired("reason") // for completion; the error is that of requireReason
	return cmd
}

// NewUncordon returns the command uncordon.
func NewUncordon() *cobra.Command {
	var at client.Connection
	cmd := &cobra.Command{
		Use:     "uncordon CLUSTER",
		Short:   "Let a drained cluster be selected again",
		Long:    `Remove the taint that "gitfleet drain" has given a member cluster.`,
		Example: `  gitfleet uncordon paris`,
		Args:    cobra.ExactArgs(1),
		RunE: at.WithClient(func(cmd *cobra.Command, args []string, c *client.Client) error {
			return act(cmd, c, "uncordon", reconciler.Order{Subject: "cluster/" + api.ClusterName(args[0])})
		}),
	}
	at.Bind(cmd.Flags())
	return cmd
}

// A drain empties a cluster.
type drain struct {
	cluster, reason string
	client          *client.Client
	// evicted are the placements whose eviction was executed, and messages has the last one about each.
	evicted     map[string]bool
	messages    map[string]string
	out, errOut io.Writer
}

// retryEvictions is the time after which a blocked eviction is tried again.
const retryEvictions = 5 * time.Second

// run evicts until nothing is left that can be evicted.
func (d *drain) run(ctx context.Context) error {
	for {
		r, err := d.client.Report(ctx, client.Subject{Cluster: d.cluster})
		if err != nil {
			return err
		}
		stays, left := 0, 0
		maps.DeleteFunc(d.messages, func(placement, _ string) bool {
			return !slices.ContainsFunc(r.Details, func(on *status.Detail) bool { return on.Placement == placement && len(on.Clusters) > 0 })
		})
		for _, on := range r.Details {
			if len(on.Clusters) == 0 {
				continue
			}
			switch why := d.whyItStays(r, on); {
			case on.Clusters[0].Removing:
				left++
				d.say(on.Placement, removalText(r))
			case why != "":
				stays++
				d.say(on.Placement, "stays: "+why)
			default:
				left++
				if err := d.evict(ctx, on.Placement); err != nil {
					return err
				}
			}
		}
		switch {
		case left == 0 && stays > 0:
			fmt.Fprintf(d.errOut, "cluster/%s is not drained: %s stay\n", d.cluster, output.Count(stays, "placement"))
			return exit.Attention
		case left == 0:
			_, err := fmt.Fprintf(d.out, "cluster/%s is drained\n", d.cluster)
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(retryEvictions):
		}
	}
}

// removalText says that a placement is being removed, or why that takes long.
func removalText(r *status.Report) string {
	if len(r.Clusters) > 0 && !status.IsHealthy(r.Clusters[0]) {
		return "is being removed, as soon as the cluster answers"
	}
	return "is being removed"
}

// whyItStays says why a placement on the cluster cannot be evicted; empty if it can.
func (d *drain) whyItStays(r *status.Report, on *status.Detail) string {
	at := slices.IndexFunc(r.Placements, func(p *api.ClusterResourcePlacement) bool { return "crp/"+p.Name == on.Placement })
	var policy *api.PlacementPolicy
	if at >= 0 {
		policy = r.Placements[at].Spec.Policy
	}
	switch {
	case policy.NamesClusters():
		return "its policy is PickFixed; remove the cluster from clusterNames in Git"
	case !strings.HasPrefix(on.Placement, "crp/"):
		return "it is no ClusterResourcePlacement; let its policy not select the cluster, in Git"
	case placement.Tolerates(policy, api.CordonTaint()):
		return "it tolerates the taint of drained clusters, so that it would come back; let its policy not select the cluster, in Git"
	case d.evicted[on.Placement]:
		return "it was evicted and has come back; drain the cluster again, if it was uncordoned meanwhile"
	}
	return ""
}

func (d *drain) evict(ctx context.Context, of string) error {
	executed, message, err := evict(ctx, d.client, reconciler.Order{Subject: of, Cluster: d.cluster, Reason: d.reason}, d.errOut)
	if err != nil {
		return err
	}
	d.evicted[of] = d.evicted[of] || executed
	d.say(of, message)
	return nil
}

// say prints a message about a placement, unless it was the last one.
func (d *drain) say(of, message string) {
	if d.messages[of] != message {
		d.messages[of] = message
		fmt.Fprintf(d.out, "%s: %s\n", of, message)
	}
}
