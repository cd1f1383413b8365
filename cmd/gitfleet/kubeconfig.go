package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/gitfleet/gitfleet/reconciler/server/access"
)

func newKubeconfig() *cobra.Command {
	var c connection
	var output string
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Write a kubeconfig with which kubectl reads from the daemon",
		Long: `Write a kubeconfig with which kubectl, and everything else that speaks to
Kubernetes, reads the hub from the daemon. It names the files of tokens and
certificates, and has no secret in it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := c.client(); err != nil {
				return err
			}
			raw, err := access.Client{
				Server: c.address, CAFile: c.caFile, TokenFile: c.tokenFile, CertFile: c.certFile, KeyFile: c.keyFile,
			}.Kubeconfig("gitfleet")
			if err != nil {
				return err
			}
			if output == "" {
				_, err = cmd.OutOrStdout().Write(raw)
				return err
			}
			return os.WriteFile(output, raw, 0o600)
		},
	}
	c.bind(cmd.Flags())
	cmd.Flags().StringVarP(&output, "output", "o", "", "file to write; standard output if there is none")
	return cmd
}
