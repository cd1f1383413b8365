package operate

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/reconciler/server/access"
)

// NewKubeconfig returns the command kubeconfig.
func NewKubeconfig() *cobra.Command {
	var c client.Connection
	var file string
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Write a kubeconfig for kubectl to read from the daemon",
		Long: `Kubeconfig writes a kubeconfig for the read-only Kubernetes API of the daemon.
It refers to the files of tokens and certificates, and contains no secret.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := c.Client(); err != nil {
				return err
			}
			raw, err := access.Client{
				Server: c.Address, CAFile: c.CAFile, TokenFile: c.TokenFile, CertFile: c.CertFile, KeyFile: c.KeyFile,
			}.Kubeconfig("gitfleet")
			if err != nil {
				return err
			}
			if file == "" {
				_, err = output.Raw(cmd.OutOrStdout()).Write(raw)
				return err
			}
			return os.WriteFile(file, raw, 0o600)
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "file to write; standard output if it is not set")
	c.Bind(cmd.Flags())
	return cmd
}
