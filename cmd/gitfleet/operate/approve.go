package operate

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/reconciler"
)

// NewApprove returns the command approve.
func NewApprove() *cobra.Command {
	var at client.Connection
	var o reconciler.Order
	cmd := &cobra.Command{
		Use:   "approve crp/NAME --stage STAGE",
		Short: "Approve or reject a stage of a staged update run",
		Long: `Approve what a stage of the update run of a placement waits for: its beginning
or its end. The approval is for the content of this run only. It is recorded
with your name and the reason, and cannot be withdrawn. With --reject, the run
updates no further cluster.

"gitfleet describe crp/NAME" shows what the run waits for.`,
		Example: `  gitfleet approve crp/web --stage canary --reason "no errors for an hour"
  gitfleet approve crp/web --stage canary --run web-1a2b3c4d
  gitfleet approve crp/web --stage canary --reject --reason "twice the latency"`,
		Args: cobra.ExactArgs(1),
		PreRunE: func(*cobra.Command, []string) error {
			if o.Stage == "" {
				return errors.New("--stage is required: the stage to approve, such as --stage canary")
			}
			return nil
		},
		RunE: at.WithClient(func(cmd *cobra.Command, args []string, c *client.Client) error {
			return order(cmd, c, "approve", args[0], o)
		}),
	}
	at.Bind(cmd.Flags())
	cmd.Flags().StringVar(&o.Stage, "stage", "", "the stage")
	cmd.Flags().BoolVar(&o.Before, "before", false, "its beginning; by default what it waits for")
	cmd.Flags().BoolVar(&o.After, "after", false, "its end")
	cmd.Flags().StringVar(&o.Run, "run", "", "the run that you mean; it is refused if another one is under way")
	cmd.Flags().BoolVar(&o.Reject, "reject", false, "reject the stage instead, which stops the run")
	cmd.Flags().StringVar(&o.Reason, "reason", "", "the reason, for the history")
	cmd.MarkFlagRequired("stage") // for completion; the error is that of PreRunE
	return cmd
}
