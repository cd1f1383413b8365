//go:build !prebuilt

package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	kcm "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/spf13/cobra"
)

// embedded are the programs in this binary, by sub-command. Each parses its own flags and ends
// the process when it is done. Only one runs per process, so that their global flags and
// metrics do not conflict.
var embedded = map[string]func(args []string){
	"etcd":      func(args []string) { etcdmain.Main(append([]string{"etcd"}, args...)) },
	"apiserver": func(args []string) { execute(apiserver.NewAPIServerCommand(), args) },
	"kcm":       func(args []string) { execute(kcm.NewControllerManagerCommand(), args) },
	"scheduler": func(args []string) { execute(scheduler.NewSchedulerCommand(), args) },
}

func execute(command *cobra.Command, args []string) {
	command.SetArgs(args)
	os.Exit(cli.Run(command))
}
