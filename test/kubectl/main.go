// Command kubectl is the stock kubectl, built from its Go module, so that tests
// need no other installed. Called jq, it is a jq.
package main

import (
	"os"
	"path/filepath"

	"github.com/itchyny/gojq/cli"
	component "k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	if filepath.Base(os.Args[0]) == "jq" {
		os.Exit(cli.Run())
	}
	if err := component.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
