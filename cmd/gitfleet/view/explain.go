package view

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/lookup"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/offline"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// NewExplain returns the command explain.
func NewExplain() *cobra.Command {
	var q explainCommand
	var out output.Format
	cmd := &cobra.Command{
		Use:   "explain crp/NAME|rp/NAMESPACE/NAME [CLUSTER]",
		Short: "Explain why a placement selects a cluster, or does not",
		Long: `Explain shows how a scheduling decision was made: for each cluster the filters,
the parts of its score, ties and missing properties, and for a cluster that is
not selected what would have to change.

It asks the daemon. With --path it computes the decision for a checkout instead,
as plan does, offline.`,
		Example: `  gitfleet explain crp/web
  gitfleet explain rp/shop/web member-3 -o json
  gitfleet explain crp/web --path . --clusters ../clusters.yaml`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			q.placement = args[0]
			if len(args) > 1 {
				q.cluster = api.ClusterName(args[1])
			}
			e, err := q.answer(cmd.Context())
			if err != nil {
				return err
			}
			if !out.IsText() {
				return out.Write(cmd.OutOrStdout(), e)
			}
			return printExplanation(cmd.OutOrStdout(), e)
		},
	}
	cmd.Flags().StringVar(&q.path, "path", "", "think about this checkout, instead of asking the daemon")
	out.Bind(cmd.Flags(), "text")
	q.in.Bind(cmd.Flags())
	q.at.Bind(cmd.Flags())
	return cmd
}

// An explainCommand has the arguments of explain.
type explainCommand struct {
	placement, cluster string // cluster may be empty for all
	at                 client.Connection
	path               string // a checkout; if it is empty, the daemon is asked
	in                 offline.Input
}

func (q explainCommand) answer(ctx context.Context) (*status.Explanation, error) {
	switch {
	case q.path != "":
		return q.plan()
	case q.in != offline.Input{}:
		return nil, errors.New("--clusters and --current go with --path: the daemon knows its own")
	}
	return q.ask(ctx)
}

// plan returns the explanation from the checkout.
func (q explainCommand) plan() (*status.Explanation, error) {
	s, err := offline.ReadDir(q.path, hub.Options{})
	var bad *hub.LoadError
	if errors.As(err, &bad) {
		return nil, fmt.Errorf("%s does not load:\n%w", q.path, bad)
	}
	if err != nil {
		return nil, err
	}
	o, err := q.in.Forecast(s)
	if err != nil {
		return nil, err
	}
	var known []string
	for _, d := range o.Report.Details {
		known = append(known, d.Placement)
	}
	if q.placement, err = lookup.Placement(q.placement, known); err != nil {
		return nil, err
	}
	e, err := o.Report.Explain(q.placement, q.cluster)
	if err != nil {
		return nil, err
	}
	e.Scheduled.LastTransitionTime = metav1.Time{} // nothing has happened
	return e, nil
}

// ask requests the explanation from the daemon.
func (q explainCommand) ask(ctx context.Context) (*status.Explanation, error) {
	c, err := q.at.Client()
	if err != nil {
		return nil, err
	}
	e := &status.Explanation{}
	name, err := c.Placement(ctx, q.placement)
	if err == nil {
		query := url.Values{"placement": {name}}
		if q.cluster != "" {
			query.Set("cluster", q.cluster)
		}
		err = c.Get(ctx, "/explain", query, e)
	}
	var silent *client.UnreachableError
	if errors.As(err, &silent) {
		return nil, fmt.Errorf("%w\nWithout a daemon, use --path", err)
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}
