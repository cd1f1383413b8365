// Command controlplane runs real Kubernetes control planes on this machine: an etcd and any
// number of kube-apiservers, each a process of its own. One binary contains all of them, so
// that a test or a demo needs Go and nothing else, and so that the processes share their pages
// in memory.
//
//	controlplane up --clusters 3 --dir /tmp/fleet
//
// starts etcd and the clusters member-1, member-2 and member-3, prints progress line by line,
// and runs until SIGINT or SIGTERM. It stops all processes before it ends. There are flags for
// names, ports, controllers, a scheduler and an audit log: see up -h. The directory contains:
//
//	kubeconfig                        every cluster, context = name of the cluster
//	kubeconfigs/member-1.kubeconfig   one per cluster, with embedded admin certificate
//	ready                             written last: the path of the merged kubeconfig
//	logs/                             one file per process
//	control                           a socket, for ctl
//
// A single cluster can be stopped and started again, on the same port with the same data:
//
//	controlplane ctl --dir /tmp/fleet stop member-2     connections are refused
//	controlplane ctl --dir /tmp/fleet start member-2    returns when it is ready
//	controlplane ctl --dir /tmp/fleet pause member-2    connections hang
//	controlplane ctl --dir /tmp/fleet resume member-2
//
// The data of the clusters is in the directory too; up with the same directory uses it again,
// with new ports and credentials.
//
// When a process ends unexpectedly, up ends too, with an error that quotes its log. No process
// outlives up, not even when up is killed with SIGKILL. With --exit-with-parent, up does not
// outlive its parent process either.
//
// The other sub-commands (etcd, apiserver, kcm, scheduler) are the programs themselves and take
// their own flags. If KUBEBUILDER_ASSETS names a directory with etcd, kube-apiserver,
// kube-controller-manager or kube-scheduler, those are run instead; a build with the tag
// prebuilt does not contain the programs and takes seconds.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sort"
	"strings"
	"syscall"
)

func main() {
	err := run(os.Args[1:])
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("no sub-command; there are %s", strings.Join(subcommands(), ", "))
	}
	switch name := args[0]; name {
	case "up":
		return runUp(args[1:])
	case "ctl":
		return runCtl(args[1:])
	default:
		program, ok := embedded[name]
		if !ok {
			return fmt.Errorf("no sub-command %q; there are %s", name, strings.Join(subcommands(), ", "))
		}
		followParentOfEnvironment()
		program(args[1:])
		return nil
	}
}

func runUp(args []string) error {
	opts, err := parseUp(args, os.Stderr)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	// The reader of standard output may end first; that must not interrupt the clean-up.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	if opts.exitWithParent {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		go followParent(opts.parent, cancel)
	}
	return up(ctx, opts, os.Stdout)
}

func subcommands() []string {
	names := []string{"up", "ctl"}
	for name := range embedded {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
