package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

func newExplain() *cobra.Command {
	var q inquiry
	var output string
	cmd := &cobra.Command{
		Use:   "explain crp/NAME|rp/NAMESPACE/NAME [CLUSTER]",
		Short: "Say why a placement goes to a cluster, or what would have to change",
		Long: `Explain tells everything that played a part in a decision: for each cluster
every filter, every point of its score, ties and missing properties, and for one
that is not selected what would have to be different.

It asks the daemon why things are as they are. With --path it thinks about a
checkout instead, as plan does, and asks nobody.`,
		Example: `  gitfleet explain crp/web
  gitfleet explain rp/shop/web member-3 -o json
  gitfleet explain crp/web --path . --clusters clusters.yaml`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "text" && output != "json" {
				return fmt.Errorf("-o %s: use text or json", output)
			}
			var err error
			if q.placement, err = placementName(args[0]); err != nil {
				return err
			}
			if len(args) > 1 {
				q.cluster = args[1]
			}
			e, err := q.answer(cmd.Context())
			if err != nil {
				return err
			}
			if output == "json" {
				return writeJSON(cmd.OutOrStdout(), e)
			}
			return printExplanation(cmd.OutOrStdout(), e)
		},
	}
	q.at.bind(cmd.Flags())
	cmd.Flags().StringVar(&q.path, "path", "", "think about this checkout, instead of asking the daemon")
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	q.in.bind(cmd.Flags())
	return cmd
}

// An inquiry is what explain is asked.
type inquiry struct {
	placement, cluster string // cluster may be empty: all
	at                 connection
	path               string // a checkout; empty: the daemon is asked
	in                 outlookInput
}

func (q inquiry) answer(ctx context.Context) (*status.Explanation, error) {
	switch {
	case q.path != "":
		return q.think()
	case q.in != outlookInput{}:
		return nil, errors.New("--clusters and --current go with --path: the daemon knows its own")
	}
	return q.ask(ctx)
}

// think answers from the checkout.
func (q inquiry) think() (*status.Explanation, error) {
	s, err := readDir(q.path, hub.Options{})
	var bad *hub.LoadError
	if errors.As(err, &bad) {
		return nil, fmt.Errorf("%s does not load:\n%w", q.path, bad)
	}
	if err != nil {
		return nil, err
	}
	o, err := q.in.about(s)
	if err != nil {
		return nil, err
	}
	e, err := o.report.Explain(q.placement, q.cluster)
	if err != nil {
		return nil, err
	}
	e.Scheduled.LastTransitionTime = metav1.Time{} // nothing has happened
	return e, nil
}

// ask asks the daemon.
func (q inquiry) ask(ctx context.Context) (*status.Explanation, error) {
	query := url.Values{"placement": {q.placement}}
	if q.cluster != "" {
		query.Set("cluster", q.cluster)
	}
	c, err := q.at.client()
	if err != nil {
		return nil, err
	}
	e := &status.Explanation{}
	err = c.get(ctx, "/explain", query, e)
	var silent *silentError
	if errors.As(err, &silent) {
		return nil, fmt.Errorf("%w\nWithout a daemon, use --path", err)
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

// placementName reads crp/NAME or rp/NAMESPACE/NAME; the kind may be written
// out.
func placementName(arg string) (string, error) {
	kind, rest, _ := strings.Cut(arg, "/")
	namespace, name, namespaced := strings.Cut(rest, "/")
	switch strings.ToLower(kind) {
	case "crp", "clusterresourceplacement", "clusterresourceplacements":
		if rest != "" && !namespaced {
			return api.PlacementKey{Name: rest}.String(), nil
		}
	case "rp", "resourceplacement", "resourceplacements":
		if namespace != "" && name != "" && !strings.Contains(name, "/") {
			return api.PlacementKey{Namespace: namespace, Name: name}.String(), nil
		}
	}
	return "", fmt.Errorf("%q names no placement; write crp/NAME, or rp/NAMESPACE/NAME", arg)
}
