package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	kcm "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	args := os.Args[1:]
	switch args[0] {
	case "etcd":
		etcdmain.Main(args)
	case "apiserver":
		c := apiserver.NewAPIServerCommand()
		c.SetArgs(args[1:])
		os.Exit(cli.Run(c))
	case "kcm":
		c := kcm.NewControllerManagerCommand()
		c.SetArgs(args[1:])
		os.Exit(cli.Run(c))
	case "scheduler":
		c := scheduler.NewSchedulerCommand()
		c.SetArgs(args[1:])
		os.Exit(cli.Run(c))
	}
}
